# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/mpi: programs that test/mpi/run starts.
MPI_CPPFLAGS = $(MULTILANE_CPPFLAGS) $(OMPI_CPPFLAGS)
mpi_link_flags = $(AM_LDFLAGS) $(OMPI_LDFLAGS)

check_PROGRAMS += test/mpi/ring
test_mpi_ring_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_ring_LDFLAGS = $(mpi_link_flags)
test_mpi_ring_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/components
test_mpi_components_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_components_LDFLAGS = $(mpi_link_flags)
test_mpi_components_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)

check_PROGRAMS += test/mpi/inner
test_mpi_inner_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_inner_LDFLAGS = $(mpi_link_flags)
test_mpi_inner_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)

check_PROGRAMS += test/mpi/queued
test_mpi_queued_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_queued_LDFLAGS = $(mpi_link_flags)
test_mpi_queued_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/asleep
test_mpi_asleep_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_asleep_LDFLAGS = $(mpi_link_flags)
test_mpi_asleep_LDADD = $(OMPI_LIBS) -lpthread

check_PROGRAMS += test/mpi/collective
test_mpi_collective_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_collective_LDFLAGS = $(mpi_link_flags)
test_mpi_collective_LDADD = $(OMPI_LIBS) -lpthread

check_PROGRAMS += test/mpi/no_memory
test_mpi_no_memory_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_no_memory_LDFLAGS = $(mpi_link_flags)
test_mpi_no_memory_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)

# Bits that are wrong on their way.
check_PROGRAMS += test/mpi/verify
test_mpi_verify_SOURCES = test/mpi/verify.c
test_mpi_verify_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_verify_LDFLAGS = $(mpi_link_flags)
test_mpi_verify_LDADD = $(OMPI_LIBS) -ldl

# One fault at each call of a BTL.
check_PROGRAMS += test/mpi/each_call
test_mpi_each_call_SOURCES = test/mpi/each_call.c test/fake/btl_flaky.h
test_mpi_each_call_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_each_call_LDFLAGS = $(mpi_link_flags)
test_mpi_each_call_LDADD = $(OMPI_LIBS) -ldl

# Who calls the ports of btl/sock.
check_PROGRAMS += test/mpi/strangers
test_mpi_strangers_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_strangers_LDFLAGS = $(mpi_link_flags)
test_mpi_strangers_LDADD = $(OMPI_LIBS)

# A process that has no descriptor left.
check_PROGRAMS += test/mpi/descriptors
test_mpi_descriptors_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_descriptors_LDFLAGS = $(mpi_link_flags)
test_mpi_descriptors_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/counters
test_mpi_counters_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_counters_LDFLAGS = $(mpi_link_flags)
test_mpi_counters_LDADD = $(OMPI_LIBS)

# Events of MPI_T about lanes that fail.
check_PROGRAMS += test/mpi/events
test_mpi_events_SOURCES = test/mpi/events.c test/fake/btl_flaky.h
test_mpi_events_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_events_LDFLAGS = $(mpi_link_flags)
test_mpi_events_LDADD = $(OMPI_LIBS) -ldl

check_PROGRAMS += test/mpi/other_device
test_mpi_other_device_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_other_device_LDFLAGS = $(mpi_link_flags)
test_mpi_other_device_LDADD = $(OMPI_LIBS) -ldl

# What test/mpi/costs.py counts.
check_PROGRAMS += test/mpi/costs
test_mpi_costs_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_costs_LDFLAGS = $(mpi_link_flags)
test_mpi_costs_LDADD = $(OMPI_LIBS)

# What is sent from the user's memory.
check_PROGRAMS += test/mpi/in_place
test_mpi_in_place_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_in_place_LDFLAGS = $(mpi_link_flags)
test_mpi_in_place_LDADD = $(OMPI_LIBS)

# One that changes what a process publishes.
check_LTLIBRARIES += libpreload_record.la
libpreload_record_la_SOURCES = test/mpi/preload_record.c
libpreload_record_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
libpreload_record_la_LIBADD = -ldl

# A library to preload: a machine whose times are never twice the same.
check_LTLIBRARIES += libpreload_unsteady.la
libpreload_unsteady_la_SOURCES = test/mpi/preload_unsteady.c
libpreload_unsteady_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# Libraries to preload: versions, one known to be like the one built for, another of its series, and one of no
# series.
check_LTLIBRARIES += libpreload_point.la libpreload_unknown.la libpreload_other.la
libpreload_unknown_la_SOURCES = test/mpi/preload_version.c
libpreload_unknown_la_CPPFLAGS = -DMULTILANE_FAKE_VERSION='"$(OMPI_UNKNOWN_UPDATE)"'
libpreload_unknown_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
libpreload_point_la_SOURCES = test/mpi/preload_version.c
libpreload_point_la_CPPFLAGS = -DMULTILANE_FAKE_VERSION='"$(OMPI_POINT_UPDATE)"'
libpreload_point_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
libpreload_other_la_SOURCES = test/mpi/preload_version.c
libpreload_other_la_CPPFLAGS = -DMULTILANE_FAKE_VERSION='"3.9.9"'
libpreload_other_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# Open MPI's types, for gdb.
check_LTLIBRARIES += libdebugger_types.la
libdebugger_types_la_SOURCES = test/mpi/debugger_types.c
libdebugger_types_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
libdebugger_types_la_CFLAGS = $(AM_CFLAGS) -g -fno-eliminate-unused-debug-types
libdebugger_types_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# The lane over shared memory.
shm_tests = test/mpi/shm_sizes test/mpi/shm_traffic test/mpi/shm_rma test/mpi/shm_unsent test/mpi/shm_heir
check_PROGRAMS += $(shm_tests)
test_mpi_shm_sizes_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_sizes_LDFLAGS = $(mpi_link_flags)
test_mpi_shm_sizes_LDADD = $(OMPI_LIBS)
test_mpi_shm_traffic_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_traffic_LDFLAGS = $(mpi_link_flags)
test_mpi_shm_traffic_LDADD = $(OMPI_LIBS)
test_mpi_shm_rma_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_rma_LDFLAGS = $(mpi_link_flags)
test_mpi_shm_rma_LDADD = $(OMPI_LIBS)
test_mpi_shm_unsent_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_unsent_LDFLAGS = $(mpi_link_flags)
test_mpi_shm_unsent_LDADD = $(OMPI_LIBS)
test_mpi_shm_heir_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_shm_heir_LDFLAGS = $(mpi_link_flags)
test_mpi_shm_heir_LDADD = $(OMPI_LIBS)
test_mpi_shm_sizes_SOURCES = test/mpi/shm_sizes.c test/mpi/refuse.h

check_PROGRAMS += test/mpi/shm_confine
test_mpi_shm_confine_SOURCES = test/mpi/shm_confine.c test/mpi/refuse.h

# A rank that the other one waits for.
check_PROGRAMS += test/mpi/steps
test_mpi_steps_SOURCES = test/mpi/steps.c
test_mpi_steps_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_steps_LDFLAGS = $(mpi_link_flags)
test_mpi_steps_LDADD = $(OMPI_LIBS)
check_PROGRAMS += test/mpi/waited
test_mpi_waited_SOURCES = test/mpi/waited.c
test_mpi_waited_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_waited_LDFLAGS = $(mpi_link_flags)
test_mpi_waited_LDADD = $(OMPI_LIBS)

# Programs that hang, and some that only look like it.
check_PROGRAMS += test/mpi/hang
test_mpi_hang_SOURCES = test/mpi/hang.c test/fake/btl_flaky.h
test_mpi_hang_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_hang_LDFLAGS = $(mpi_link_flags)
test_mpi_hang_LDADD = $(OMPI_LIBS) -ldl -lpthread

# The conformance suite, by chapters of the MPI standard, and the random traffic. They are plain MPI
# programs: mpicc -std=c11 PROGRAM.c suite.c layout.c -pthread builds one by hand.
check_LTLIBRARIES += test/mpi/libsuite.la
test_mpi_libsuite_la_SOURCES = test/mpi/suite.c test/mpi/suite.h test/mpi/layout.c test/mpi/layout.h
test_mpi_libsuite_la_CPPFLAGS = $(MPI_CPPFLAGS)
SUITE_LDADD = test/mpi/libsuite.la $(OMPI_LIBS) -lpthread

check_PROGRAMS += test/mpi/conform
test_mpi_conform_SOURCES = test/mpi/conform.c test/mpi/point.c test/mpi/request.c test/mpi/error.c \
    test/mpi/datatype.c test/mpi/communicator.c test/mpi/onesided.c test/mpi/partitioned.c
test_mpi_conform_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_conform_LDFLAGS = $(mpi_link_flags)
test_mpi_conform_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/thread
test_mpi_thread_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_thread_LDFLAGS = $(mpi_link_flags)
test_mpi_thread_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/thread_error
test_mpi_thread_error_CPPFLAGS = $(PML_CPPFLAGS) $(MPI_CPPFLAGS)
test_mpi_thread_error_LDFLAGS = $(mpi_link_flags)
test_mpi_thread_error_LDADD = $(OMPI_LIBS) $(OPAL_LIBS)

check_PROGRAMS += test/mpi/dynamic
test_mpi_dynamic_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_dynamic_LDFLAGS = $(mpi_link_flags)
test_mpi_dynamic_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/session
test_mpi_session_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_session_LDFLAGS = $(mpi_link_flags)
test_mpi_session_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/large
test_mpi_large_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_large_LDFLAGS = $(mpi_link_flags)
test_mpi_large_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/traffic
test_mpi_traffic_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_traffic_LDFLAGS = $(mpi_link_flags)
test_mpi_traffic_LDADD = $(SUITE_LDADD)
test_mpi_traffic_SOURCES = test/mpi/traffic.c test/mpi/traffic_script.c test/mpi/traffic_oracle.c \
    test/mpi/traffic.h

check_PROGRAMS += test/mpi/failure
test_mpi_failure_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_failure_LDFLAGS = $(mpi_link_flags)
test_mpi_failure_LDADD = $(OMPI_LIBS)

# Messages from and to device memory.
check_PROGRAMS += test/mpi/device
test_mpi_device_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_device_LDFLAGS = $(mpi_link_flags)
test_mpi_device_LDADD = libmultilane_common.la $(OMPI_LIBS) -lpthread

check_PROGRAMS += test/mpi/device_collective
test_mpi_device_collective_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_device_collective_LDFLAGS = $(mpi_link_flags)
test_mpi_device_collective_LDADD = libmultilane_common.la $(OMPI_LIBS)

check_PROGRAMS += test/mpi/lost
test_mpi_lost_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_lost_LDFLAGS = $(mpi_link_flags)
test_mpi_lost_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/first_thread
test_mpi_first_thread_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_first_thread_LDFLAGS = $(mpi_link_flags)
test_mpi_first_thread_LDADD = $(OMPI_LIBS) -lpthread

check_PROGRAMS += test/mpi/life
test_mpi_life_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_life_LDFLAGS = $(mpi_link_flags)
test_mpi_life_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/away
test_mpi_away_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_away_LDFLAGS = $(mpi_link_flags)
test_mpi_away_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/flood
test_mpi_flood_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_flood_LDFLAGS = $(mpi_link_flags)
test_mpi_flood_LDADD = $(OMPI_LIBS)

check_PROGRAMS += test/mpi/clients
test_mpi_clients_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_clients_LDFLAGS = $(mpi_link_flags)
test_mpi_clients_LDADD = $(SUITE_LDADD)

check_PROGRAMS += test/mpi/leaves
test_mpi_leaves_CPPFLAGS = $(MPI_CPPFLAGS)
test_mpi_leaves_LDFLAGS = $(mpi_link_flags)
test_mpi_leaves_LDADD = $(SUITE_LDADD)

# Two more: an Open MPI with a larger class or a larger object, as other options of its build make it.
check_LTLIBRARIES += libpreload_class.la libpreload_object.la
libpreload_class_la_SOURCES = test/mpi/preload_layout.c
libpreload_class_la_CPPFLAGS = $(MULTILANE_CPPFLAGS) $(OMPI_CPPFLAGS)
libpreload_class_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
libpreload_class_la_LIBADD = -ldl
libpreload_object_la_SOURCES = test/mpi/preload_layout.c
libpreload_object_la_CPPFLAGS = $(MULTILANE_CPPFLAGS) $(OMPI_CPPFLAGS) \
	-DMULTILANE_GROWN=mca_pml_base_selected_component
libpreload_object_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
