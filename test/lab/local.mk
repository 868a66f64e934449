# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/lab: labs: several hosts or devices on one machine.

# Traffic for the labs.
check_PROGRAMS += test/lab/rails_mix
test_lab_rails_mix_SOURCES = test/lab/rails_mix.c
test_lab_rails_mix_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_rails_mix_LDFLAGS = $(mpi_link_flags)
test_lab_rails_mix_LDADD = libmultilane_common.la $(OMPI_LIBS)

# One lane of btl/verbs by itself, for test/lab/rdma.
check_PROGRAMS += test/lab/verbs_lane
test_lab_verbs_lane_SOURCES = test/lab/verbs_lane.c
test_lab_verbs_lane_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_verbs_lane_LDFLAGS = $(mpi_link_flags)
test_lab_verbs_lane_LDADD = $(OMPI_LIBS) $(OPAL_LIBS) -ldl

# What a peer costs over btl/verbs.
check_PROGRAMS += test/lab/verbs_memory
test_lab_verbs_memory_SOURCES = test/lab/verbs_memory.c
test_lab_verbs_memory_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_verbs_memory_LDFLAGS = $(mpi_link_flags)
test_lab_verbs_memory_LDADD = $(OMPI_LIBS)

# Each pair of ranks talks at once: more connections than a device may have.
check_PROGRAMS += test/lab/all_to_all
test_lab_all_to_all_SOURCES = test/lab/all_to_all.c
test_lab_all_to_all_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_all_to_all_LDFLAGS = $(mpi_link_flags)
test_lab_all_to_all_LDADD = $(OMPI_LIBS)

# A device's event while a process computes.
check_PROGRAMS += test/lab/verbs_event
test_lab_verbs_event_SOURCES = test/lab/verbs_event.c
test_lab_verbs_event_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_verbs_event_LDFLAGS = $(mpi_link_flags)
test_lab_verbs_event_LDADD = $(OMPI_LIBS) -ldl

# One-sided operations while lanes come and go.
check_PROGRAMS += test/lab/windows
test_lab_windows_SOURCES = test/lab/windows.c
test_lab_windows_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_windows_LDFLAGS = $(mpi_link_flags)
test_lab_windows_LDADD = $(OMPI_LIBS)

# Messages that are not the PML's, by a lane that comes and goes.
check_PROGRAMS += test/lab/others
test_lab_others_SOURCES = test/lab/others.c
test_lab_others_CPPFLAGS = $(MPI_CPPFLAGS)
test_lab_others_LDFLAGS = $(mpi_link_flags)
test_lab_others_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)
