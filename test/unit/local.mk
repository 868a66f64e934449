# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/unit: unit tests without MPI.

# Programs of which each is a test.
unit_tests =

# The model.
model_tests = \
	test/unit/lane_of_times \
	test/unit/model_cluster \
	test/unit/model_equation \
	test/unit/model_learned \
	test/unit/model_number \
	test/unit/model_plan \
	test/unit/model_property \
	test/unit/replay
unit_tests += $(model_tests)
noinst_HEADERS += test/unit/check.h test/unit/model_lanes.h test/unit/strict_case.h
# Tests of sources and scripts, which do not depend on what a build makes of them.
source_tests = test/unit/model_alone.sh test/unit/results.sh
TESTS += test/unit/model_alone.sh test/unit/results.sh
EXTRA_DIST += test/unit/model_alone.sh test/unit/results.sh test/unit/model_digest.c

# multilane-plan as a user meets it, its thresholds against fractions.
if HAVE_PYTHON3
TESTS += test/unit/plan_tool.py
# The documents name what is there: files, functions, parameters.
source_tests += test/unit/doc_driver.py test/unit/doc_names.py test/unit/doc_parameters.py
TESTS += test/unit/doc_driver.py test/unit/doc_names.py test/unit/doc_parameters.py
endif
EXTRA_DIST += test/unit/plan_tool.py test/unit/doc_driver.py test/unit/doc_names.py test/unit/doc_parameters.py
test_unit_model_cluster_LDADD = libmultilane_tools.la
test_unit_lane_of_times_LDADD = libmultilane_tools.la -lm
test_unit_model_equation_LDADD = libmultilane_tools.la
test_unit_model_learned_LDADD = libmultilane_common.la -lm
test_unit_model_number_LDADD = libmultilane_tools.la
test_unit_model_plan_LDADD = libmultilane_common.la
test_unit_model_property_LDADD = libmultilane_tools.la
test_unit_replay_LDADD = libmultilane_tools.la -lm

# What multilane-top concludes from pages.
unit_tests += test/unit/top_why
test_unit_top_why_LDADD = libmultilane_top.la
test_unit_top_why_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ranks_find

# The two rules of common/compat.
unit_tests += test/unit/test_compat
test_unit_test_compat_SOURCES = test/unit/test_compat.c
test_unit_test_compat_LDADD = libmultilane_compat.la libmultilane_common.la $(OMPI_LDFLAGS) $(OPAL_LIBS)

# Calls between libraries that the dynamic linker connects when they are first made, at the start,
# and without a table of calls.
calls_libraries = test/unit/libcalls_lazy.so test/unit/libcalls_now.so test/unit/libcalls_plain.so
calls_parts = $(srcdir)/test/unit/library_calls_parts.c
calls_build = $(CC) $(MULTILANE_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fPIC -shared \
	$(MULTILANE_LDFLAGS) $(LDFLAGS) -o $@ $(calls_parts)
asks_build = $(calls_build) -DASKS -Wl,-z,relro,-rpath,'$(abs_builddir)/test/unit' test/unit/libcalls_answer.so
unit_tests += test/unit/library_calls
test_unit_library_calls_SOURCES = test/unit/library_calls.c common/compat/library_calls.c
test_unit_library_calls_CPPFLAGS = $(MULTILANE_CPPFLAGS) -DLIBRARIES='"$(abs_builddir)/test/unit"'
test_unit_library_calls_LDADD = -ldl
check_DATA += $(calls_libraries)
CLEANFILES += $(calls_libraries) test/unit/libcalls_answer.so
EXTRA_DIST += test/unit/library_calls_parts.c
test/unit/libcalls_answer.so: test/unit/library_calls_parts.c
	$(AM_V_CC)$(MKDIR_P) test/unit && $(calls_build)
$(calls_libraries): test/unit/library_calls_parts.c test/unit/libcalls_answer.so
test/unit/libcalls_lazy.so:
	$(AM_V_CC)$(asks_build) -Wl,-z,lazy
test/unit/libcalls_now.so:
	$(AM_V_CC)$(asks_build) -Wl,-z,now
test/unit/libcalls_plain.so:
	$(AM_V_CC)$(asks_build) -Wl,-z,now -fno-plt

# The ring and biased locks: their tests, and all interleavings of small ones.
ring_tests = test/unit/bias_test test/unit/ring_test test/unit/ring_model test/unit/ring_move_model test/unit/bell_model \
	test/unit/offer_model test/unit/node_model
unit_tests += $(ring_tests)
test_unit_ring_test_SOURCES = test/unit/ring_test.c
test_unit_ring_test_LDADD = libmultilane_common.la -lpthread
test_unit_bias_test_LDADD = libmultilane_common.la -lpthread
test_unit_bell_model_SOURCES = test/unit/bell_model.c test/unit/walk.c test/unit/walk.h
test_unit_ring_model_SOURCES = test/unit/ring_model.c test/unit/walk.c test/unit/walk.h
test_unit_offer_model_SOURCES = test/unit/offer_model.c test/unit/walk.c test/unit/walk.h
test_unit_ring_move_model_SOURCES = test/unit/ring_move_model.c test/unit/walk.c test/unit/walk.h
test_unit_node_model_SOURCES = test/unit/node_model.c

# Sums of messages.
unit_tests += test/unit/sum_crc32c

# What the processes of a communicator agree on for it.
unit_tests += test/unit/node_areas
test_unit_node_areas_SOURCES = test/unit/node_areas.c coll/node/agree.c coll/node/area.c coll/node/levels.c
test_unit_node_areas_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_node_areas_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=ompi_comm_split,--wrap=ompi_comm_free
test_unit_node_areas_LDADD = $(PML_TEST_LDADD)

# The PML: product code all but for what lies around it (its BTLs, Open MPI's progress, the clock).
# Of the PML's library each takes the files that it needs.
pml_tests = test/unit/flow_model test/unit/pml_datatype test/unit/pml_explain test/unit/pml_handle test/unit/pml_returned test/unit/pml_summed \
	test/unit/pml_lanes \
	test/unit/pml_match test/unit/pml_page test/unit/pml_page_fill \
	test/unit/pml_peer test/unit/pml_pieces test/unit/pml_profile test/unit/pml_record \
	test/unit/pml_rma test/unit/pml_scale test/unit/pml_send \
	test/unit/pml_spans \
	test/unit/pml_stripe test/unit/pml_transfer test/unit/pml_waits test/unit/pml_watch \
	test/unit/pml_worse
unit_tests += $(pml_tests)
noinst_HEADERS += test/unit/lanes_standin.h test/unit/open_mpi.h test/unit/progress_standin.h
PML_TEST_CPPFLAGS = $(PML_CPPFLAGS) $(MULTILANE_CPPFLAGS) $(OMPI_CPPFLAGS)
PML_TEST_LDADD = libmultilane_compat.la libmultilane_common.la $(OMPI_LDFLAGS) $(OMPI_LIBS) $(OPAL_LIBS) -lpthread
pml_ldadd = libmultilane_pml.la $(PML_TEST_LDADD) -ldl -lm
EXTRA_DIST += test/unit/explain.txt test/unit/explain.json
test_unit_flow_model_SOURCES = test/unit/flow_model.c
test_unit_flow_model_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_flow_model_LDADD = $(pml_ldadd)
test_unit_pml_explain_SOURCES = test/unit/pml_explain.c test/unit/lanes_standin.c
test_unit_pml_explain_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_explain_LDADD = $(pml_ldadd)
test_unit_pml_handle_SOURCES = test/unit/pml_handle.c
test_unit_pml_handle_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_handle_LDADD = $(pml_ldadd)
test_unit_pml_summed_SOURCES = test/unit/pml_summed.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_summed_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_summed_LDADD = $(pml_ldadd)
test_unit_pml_returned_SOURCES = test/unit/pml_returned.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_returned_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_returned_LDADD = $(pml_ldadd)
test_unit_pml_lanes_SOURCES = test/unit/pml_lanes.c test/unit/lanes_standin.c
test_unit_pml_lanes_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_lanes_LDADD = $(pml_ldadd)
test_unit_pml_match_SOURCES = test/unit/pml_match.c
test_unit_pml_match_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_match_LDADD = $(pml_ldadd)
test_unit_pml_page_SOURCES = test/unit/pml_page.c
test_unit_pml_page_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_page_LDADD = libmultilane_top.la $(pml_ldadd)
test_unit_pml_page_fill_SOURCES = test/unit/pml_page_fill.c test/unit/lanes_standin.c
test_unit_pml_page_fill_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_page_fill_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=peer_next
test_unit_pml_page_fill_LDADD = $(pml_ldadd)
test_unit_pml_peer_SOURCES = test/unit/pml_peer.c test/unit/lanes_standin.c
test_unit_pml_peer_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_peer_LDADD = $(pml_ldadd)
test_unit_pml_datatype_SOURCES = test/unit/pml_datatype.c
test_unit_pml_datatype_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_datatype_LDADD = $(pml_ldadd)
test_unit_pml_pieces_SOURCES = test/unit/pml_pieces.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_pieces_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_pieces_LDADD = $(pml_ldadd)
test_unit_pml_profile_SOURCES = test/unit/pml_profile.c test/unit/lanes_standin.c
test_unit_pml_profile_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_profile_LDADD = libmultilane_pml.la libmultilane_tools.la $(PML_TEST_LDADD) -ldl -lm
test_unit_pml_profile_DEPENDENCIES = libmultilane_pml.la libmultilane_tools.la libmultilane_compat.la \
	libmultilane_common.la multilane-plan
test_unit_pml_record_SOURCES = test/unit/pml_record.c test/unit/lanes_standin.c
test_unit_pml_record_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_record_LDADD = $(pml_ldadd)
test_unit_pml_rma_SOURCES = test/unit/pml_rma.c test/unit/lanes_standin.c
test_unit_pml_rma_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_rma_LDADD = $(pml_ldadd)
test_unit_pml_scale_SOURCES = test/unit/pml_scale.c test/unit/lanes_standin.c
test_unit_pml_scale_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_scale_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=comm_name_of
test_unit_pml_scale_LDADD = $(pml_ldadd)
test_unit_pml_send_SOURCES = test/unit/pml_send.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_send_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_send_LDADD = $(pml_ldadd)
test_unit_pml_spans_SOURCES = test/unit/pml_spans.c
test_unit_pml_spans_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_spans_LDADD = $(pml_ldadd)
test_unit_pml_stripe_SOURCES = test/unit/pml_stripe.c test/unit/lanes_standin.c
test_unit_pml_stripe_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_stripe_LDADD = $(pml_ldadd)
test_unit_pml_transfer_SOURCES = test/unit/pml_transfer.c test/unit/progress_standin.c
test_unit_pml_transfer_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_transfer_LDADD = $(pml_ldadd)
test_unit_pml_waits_SOURCES = test/unit/pml_waits.c test/unit/lanes_standin.c
test_unit_pml_waits_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_waits_LDADD = $(pml_ldadd)
test_unit_pml_watch_SOURCES = test/unit/pml_watch.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_watch_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_watch_LDADD = $(pml_ldadd)
test_unit_pml_worse_SOURCES = test/unit/pml_worse.c test/unit/lanes_standin.c
test_unit_pml_worse_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_worse_LDADD = $(pml_ldadd)

# The whole of it in a job without a job.
job_tests = test/unit/pml_apart test/unit/pml_direct test/unit/pml_credit test/unit/pml_inbound test/unit/pml_join test/unit/pml_lost \
	test/unit/pml_job_pages test/unit/pml_queue test/unit/pml_recv test/unit/pml_timer
unit_tests += $(job_tests)
noinst_HEADERS += test/unit/job_standin.h
job_standin = test/unit/job_standin.c test/unit/lanes_standin.c test/unit/progress_standin.c
test_unit_pml_credit_SOURCES = test/unit/pml_credit.c $(job_standin)
test_unit_pml_credit_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_credit_LDADD = $(pml_ldadd)
test_unit_pml_inbound_SOURCES = test/unit/pml_inbound.c $(job_standin)
test_unit_pml_inbound_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_inbound_LDADD = $(pml_ldadd)
test_unit_pml_apart_SOURCES = test/unit/pml_apart.c $(job_standin)
test_unit_pml_apart_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_apart_LDADD = $(pml_ldadd)
test_unit_pml_direct_SOURCES = test/unit/pml_direct.c $(job_standin)
test_unit_pml_direct_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_direct_LDADD = $(pml_ldadd)
test_unit_pml_job_pages_SOURCES = test/unit/pml_job_pages.c $(job_standin)
test_unit_pml_job_pages_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_job_pages_LDADD = libmultilane_top.la $(pml_ldadd)
test_unit_pml_join_SOURCES = test/unit/pml_join.c $(job_standin)
test_unit_pml_join_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_join_LDADD = $(pml_ldadd)
test_unit_pml_lost_SOURCES = test/unit/pml_lost.c $(job_standin)
test_unit_pml_lost_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_lost_LDADD = $(pml_ldadd)
test_unit_pml_recv_SOURCES = test/unit/pml_recv.c $(job_standin)
test_unit_pml_recv_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_recv_LDADD = $(pml_ldadd)
test_unit_pml_queue_SOURCES = test/unit/pml_queue.c $(job_standin)
test_unit_pml_queue_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_queue_LDADD = $(pml_ldadd)
test_unit_pml_timer_SOURCES = test/unit/pml_timer.c $(job_standin)
test_unit_pml_timer_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_pml_timer_LDADD = $(pml_ldadd)

# Attributes of lanes, and tables.
lane_tests = test/unit/lane_attr test/unit/lane_declared test/unit/lane_history test/unit/lane_stock_btl \
	test/unit/lane_user test/unit/lane_locality test/unit/lane_profile test/unit/report_table
unit_tests += $(lane_tests)
test_unit_lane_attr_SOURCES = test/unit/lane_attr.c
test_unit_lane_attr_LDADD = libmultilane_common.la -lm
test_unit_lane_history_SOURCES = test/unit/lane_history.c
test_unit_lane_history_LDADD = libmultilane_common.la -lm
test_unit_lane_declared_SOURCES = test/unit/lane_declared.c
test_unit_lane_declared_LDADD = libmultilane_common.la -lm
test_unit_lane_stock_btl_SOURCES = test/unit/lane_stock_btl.c
test_unit_lane_stock_btl_LDADD = libmultilane_common.la -lm
test_unit_lane_user_SOURCES = test/unit/lane_user.c
test_unit_lane_user_LDADD = libmultilane_common.la -lm
test_unit_lane_profile_SOURCES = test/unit/lane_profile.c
test_unit_lane_profile_LDADD = libmultilane_tools.la -lm
unit_tests += test/unit/crowd test/unit/startup_threads
test_unit_startup_threads_LDADD = libmultilane_common.la -lpthread -ldl -lm
test_unit_crowd_LDADD = libmultilane_common.la -lm
test_unit_lane_locality_SOURCES = test/unit/lane_locality.c
test_unit_lane_locality_LDADD = libmultilane_common.la -lm
test_unit_report_table_SOURCES = test/unit/report_table.c
test_unit_report_table_LDADD = libmultilane_common.la

# What multilane-calibrate does before any message.
unit_tests += test/unit/calibrate_registration
test_unit_calibrate_registration_SOURCES = test/unit/calibrate_registration.c \
	tools/calibrate/measure.c tools/calibrate/traffic.c
test_unit_calibrate_registration_CPPFLAGS = $(COMPONENT_CPPFLAGS)
test_unit_calibrate_registration_LDFLAGS = $(AM_LDFLAGS) $(OMPI_LDFLAGS)
test_unit_calibrate_registration_LDADD = libmultilane_tools.la $(OMPI_LIBS) -lm

# The segments of btl/shm.
unit_tests += test/unit/lane_readers test/unit/last_cache
test_unit_last_cache_SOURCES = test/unit/last_cache.c
test_unit_last_cache_LDADD = libmultilane_common.la -lm
test_unit_lane_readers_SOURCES = test/unit/lane_readers.c common/lane/readers.c

unit_tests += test/unit/shm_segment
test_unit_shm_segment_SOURCES = test/unit/shm_segment.c btl/shm/segment.c
test_unit_shm_segment_LDADD = libmultilane_common.la -lm -lpthread

# The same with pages of 16 and 64 KiB, of a kernel that the test plays.
unit_tests += test/unit/shm_pages
test_unit_shm_pages_SOURCES = test/unit/shm_pages.c btl/shm/segment.c
test_unit_shm_pages_LDADD = libmultilane_common.la -lm
test_unit_shm_pages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=mmap,--wrap=madvise

# Which of its rings are looked at.
unit_tests += test/unit/shm_attended
test_unit_shm_attended_SOURCES = test/unit/shm_attended.c
test_unit_shm_attended_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_shm_attended_LDADD = libmultilane_shm.la $(PML_TEST_LDADD)

# Its puts, gets and atomics by message.
# A proof that another thread asks about.
unit_tests += test/unit/shm_copy
test_unit_shm_copy_SOURCES = test/unit/shm_copy.c
test_unit_shm_copy_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_shm_copy_LDADD = libmultilane_shm.la $(PML_TEST_LDADD)
unit_tests += test/unit/shm_remote
test_unit_shm_remote_SOURCES = test/unit/shm_remote.c
test_unit_shm_remote_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_shm_remote_LDADD = libmultilane_shm.la $(PML_TEST_LDADD)
unit_tests += test/unit/shm_pieces
test_unit_shm_pieces_SOURCES = test/unit/shm_pieces.c btl/shm/pieces.c
test_unit_shm_pieces_CPPFLAGS = $(PML_TEST_CPPFLAGS) -Dmalloc=malloc_at_times
test_unit_shm_pieces_LDADD = $(PML_TEST_LDADD)

# The connections of btl/sock, and what returns from one that is given up, in all orders.
unit_tests += test/unit/return_model test/unit/sock_model
test_unit_return_model_SOURCES = test/unit/return_model.c test/unit/walk.c test/unit/walk.h
test_unit_sock_model_SOURCES = test/unit/sock_model.c test/unit/walk.c test/unit/walk.h

# The parts of btl/sock that need no second process.
unit_tests += test/unit/sock_parts
test_unit_sock_parts_SOURCES = test/unit/sock_parts.c
test_unit_sock_parts_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_sock_parts_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime,--wrap=getsockopt,--wrap=getifaddrs,--wrap=freeifaddrs
test_unit_sock_parts_LDADD = libmultilane_sock.la $(PML_TEST_LDADD)

# The rules of btl/verbs, which need no device.
unit_tests += test/unit/verbs_choice
test_unit_verbs_choice_SOURCES = test/unit/verbs_choice.c btl/verbs/choice.c
test_unit_verbs_choice_LDADD = libmultilane_common.la -lm

# The kernel's routes, by which its ports are joined.
unit_tests += test/unit/verbs_route
test_unit_verbs_route_SOURCES = test/unit/verbs_route.c btl/verbs/route.c btl/verbs/choice.c
test_unit_verbs_route_LDADD = libmultilane_common.la -lm

# Its connections, made and failing, over stand-ins for the device.
if BUILD_VERBS
unit_tests += test/unit/verbs_connect test/unit/verbs_peer
endif
test_unit_verbs_connect_SOURCES = test/unit/verbs_connect.c
test_unit_verbs_connect_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_connect_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=component_record_of -Wl,--wrap=sysconf
test_unit_verbs_connect_LDADD = libmultilane_verbs.la $(PML_TEST_LDADD) $(VERBS_LIBS)
test_unit_verbs_peer_SOURCES = test/unit/verbs_peer.c
test_unit_verbs_peer_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_peer_LDADD = libmultilane_verbs.la $(PML_TEST_LDADD)

# Where it opens libibverbs. In a folder without it a library of another name takes its place.
if BUILD_VERBS
unit_tests += test/unit/verbs_library
endif
test_unit_verbs_library_SOURCES = test/unit/verbs_library.c btl/verbs/library.c
test_unit_verbs_library_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_library_LDADD = libmultilane_common.la -ldl

# The stand-in that its jobs run over without a device.
if BUILD_VERBS
unit_tests += test/unit/verbs_strict
endif
test_unit_verbs_strict_SOURCES = test/unit/verbs_strict.c test/fake/verbs/device.c \
	test/fake/verbs/fabric.c test/fake/verbs/profile.c test/fake/verbs/queue.c \
	test/fake/verbs/request.c test/fake/verbs/strict.h
test_unit_verbs_strict_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_strict_LDADD = $(VERBS_LIBS) -lpthread

# Its ports, over that stand-in.
if BUILD_VERBS
unit_tests += test/unit/verbs_device
endif
test_unit_verbs_device_SOURCES = test/unit/verbs_device.c test/fake/verbs/device.c \
	test/fake/verbs/fabric.c test/fake/verbs/profile.c test/fake/verbs/queue.c \
	test/fake/verbs/request.c test/fake/verbs/strict.h
test_unit_verbs_device_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_create_ah \
	-Wl,--wrap=_ibv_query_gid_table -Wl,--wrap=ibv_query_device -Wl,--wrap=ibv_reg_mr \
	-Wl,--wrap=ibv_reg_mr_iova2 -Wl,--wrap=mca_rcache_base_module_create -Wl,--wrap=verbs_works_open
test_unit_verbs_device_LDADD = libmultilane_verbs.la $(PML_TEST_LDADD) $(VERBS_LIBS)

# Its registrations of device memory, against the stand-in of test/fake.
if BUILD_VERBS
unit_tests += test/unit/verbs_dmabuf
endif
test_unit_verbs_dmabuf_SOURCES = test/unit/verbs_dmabuf.c btl/verbs/dmabuf.c btl/verbs/dmabuf.h
test_unit_verbs_dmabuf_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CPPFLAGS)
test_unit_verbs_dmabuf_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sysconf
test_unit_verbs_dmabuf_LDADD = libmultilane_common.la -lpthread

# What test/bench/run and test/bench/device make of their measurements; what test/lab/real
# says and cuts; what test/mpi/mpi4py_compare leaves behind.
if HAVE_PYTHON3
source_tests += test/unit/bench_run.py test/unit/bench_device.py test/unit/lab_real.py \
    test/unit/mpi4py_compare.py
TESTS += test/unit/bench_run.py test/unit/bench_device.py test/unit/lab_real.py \
    test/unit/mpi4py_compare.py
endif
EXTRA_DIST += test/unit/bench_run.py test/unit/bench_device.py test/unit/lab_real.py \
    test/unit/mpi4py_compare.py

# Lists of chunks of mapped memory, forged ones too.
if BUILD_CUDA
unit_tests += test/unit/cuda_list
test_unit_cuda_list_SOURCES = test/unit/cuda_list.c btl/cuda/list.c
test_unit_cuda_list_CPPFLAGS = $(PML_TEST_CPPFLAGS)
test_unit_cuda_list_LDADD = $(OPAL_LIBS)
endif

# Device memory, against the stand-in of test/fake.
unit_tests += test/unit/memory_cuda
test_unit_memory_cuda_SOURCES = test/unit/memory_cuda.c
test_unit_memory_cuda_LDADD = libmultilane_common.la -lpthread

check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
