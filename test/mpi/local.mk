# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/mpi: programs that test/mpi/run starts.
MPI_CPPFLAGS = $(MULTILANE_CPPFLAGS) $(OMPI_CPPFLAGS)
MPI_LDFLAGS = $(AM_LDFLAGS) $(OMPI_LDFLAGS)

check_PROGRAMS += test/mpi/ring
test_mpi_ring_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_ring_LDFLAGS = $(MPI_LDFLAGS)
test_mpi_ring_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/components
test_mpi_components_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_components_LDFLAGS = $(MPI_LDFLAGS)
test_mpi_components_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)

# Two libraries to preload: a version that is like every other, and one that nobody knows.
check_LTLIBRARIES += libpreload_point.la libpreload_other.la
libpreload_point_la_SOURCES = test/mpi/preload_version.c
libpreload_point_la_CPPFLAGS = -DMULTILANE_FAKE_VERSION='"$(OMPI_POINT_UPDATE)"'
libpreload_point_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
libpreload_other_la_SOURCES = test/mpi/preload_version.c
libpreload_other_la_CPPFLAGS = -DMULTILANE_FAKE_VERSION='"3.9.9"'
libpreload_other_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# The lane over shared memory.
shm_tests = test/mpi/shm_sizes test/mpi/shm_traffic test/mpi/shm_rma
check_PROGRAMS += $(shm_tests)
test_mpi_shm_sizes_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_sizes_LDFLAGS = $(MPI_LDFLAGS)
test_mpi_shm_sizes_LDADD = $(OMPI_LIBS)
test_mpi_shm_traffic_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_traffic_LDFLAGS = $(MPI_LDFLAGS)
test_mpi_shm_traffic_LDADD = $(OMPI_LIBS)
test_mpi_shm_rma_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_rma_LDFLAGS = $(MPI_LDFLAGS)
test_mpi_shm_rma_LDADD = $(OMPI_LIBS)
test_mpi_shm_sizes_SOURCES = test/mpi/shm_sizes.c test/mpi/refuse.h

check_PROGRAMS += test/mpi/shm_confine
test_mpi_shm_confine_SOURCES = test/mpi/shm_confine.c test/mpi/refuse.h
