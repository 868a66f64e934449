# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/lab: labs: several hosts or devices on one machine.

# Traffic for the labs.
check_PROGRAMS += test/lab/rails_mix
test_lab_rails_mix_SOURCES = test/lab/rails_mix.c
test_lab_rails_mix_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_rails_mix_LDFLAGS = $(MPI_LDFLAGS)
test_lab_rails_mix_LDADD = $(OMPI_LIBS)
