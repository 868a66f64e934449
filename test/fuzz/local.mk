# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fuzz: tests with arbitrary input.

# The PML as it is, but for what happens in the end when a lane fails, and with the fuzzer inside.
check_LTLIBRARIES += test/fuzz/mca_pml_multilane.la
noinst_HEADERS += test/fuzz/errors_standin.h test/fuzz/inside.h
test_fuzz_mca_pml_multilane_la_SOURCES = test/fuzz/errors_standin.c test/fuzz/inside.c
test_fuzz_mca_pml_multilane_la_CPPFLAGS = $(PML_CPPFLAGS) $(COMPONENT_CPPFLAGS)
test_fuzz_mca_pml_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS) -rpath /nowhere
# The PML's own objects (compiled again they would be a fifth of all that is compiled), with that of the
# component in place of liveness/errors.c.
fuzz_objects = $(libmultilane_pml_la_OBJECTS:liveness/libmultilane_pml_la-errors.lo=entry/mca_pml_multilane_la-component.lo)
test_fuzz_mca_pml_multilane_la_LIBADD = $(fuzz_objects) $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
test_fuzz_mca_pml_multilane_la_DEPENDENCIES = $(fuzz_objects) $(COMPONENT_LIBADD)

# Lane files and profiles: any bytes at all.
check_PROGRAMS += test/fuzz/fuzz_lane_file
TESTS += test/fuzz/fuzz_lane_file
test_fuzz_fuzz_lane_file_LDADD = libmultilane_tools.la -lm

# Run by test/mpi/runs/70-fuzz.sh.
check_PROGRAMS += test/fuzz/headers
test_fuzz_headers_CPPFLAGS = $(MPI_CPPFLAGS)
test_fuzz_headers_LDFLAGS = $(mpi_link_flags)
test_fuzz_headers_LDADD = $(OMPI_LIBS) -ldl

# Pages of ranks: any bytes at all.
check_PROGRAMS += test/fuzz/fuzz_page
TESTS += test/fuzz/fuzz_page
test_fuzz_fuzz_page_LDADD = libmultilane_top.la
