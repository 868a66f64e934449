# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/bench: benchmarks.

# The bare ring, and the two ways of waiting.
check_PROGRAMS += test/bench/ring_bench
test_bench_ring_bench_SOURCES = test/bench/ring_bench.c test/bench/median.h
test_bench_ring_bench_LDADD = libmultilane_common.la

# What a plan costs to look up and to build.
check_PROGRAMS += test/bench/plan_lookup
test_bench_plan_lookup_SOURCES = test/bench/plan_lookup.c test/bench/median.h
test_bench_plan_lookup_LDADD = libmultilane_common.la

# What test/bench/regret starts.
check_PROGRAMS += test/bench/regret_measure
test_bench_regret_measure_SOURCES = test/bench/regret_measure.c test/bench/median.h
test_bench_regret_measure_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_regret_measure_LDFLAGS = $(mpi_link_flags)
test_bench_regret_measure_LDADD = $(OMPI_LIBS)

# What test/bench/rails starts.
check_PROGRAMS += test/bench/rails_measure
test_bench_rails_measure_SOURCES = test/bench/rails_measure.c test/bench/median.h
test_bench_rails_measure_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_rails_measure_LDFLAGS = $(mpi_link_flags)
test_bench_rails_measure_LDADD = $(OMPI_LIBS)

# What test/bench/overlap starts.
check_PROGRAMS += test/bench/overlap_measure
test_bench_overlap_measure_SOURCES = test/bench/overlap_measure.c test/bench/median.h
test_bench_overlap_measure_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_overlap_measure_LDFLAGS = $(mpi_link_flags)
test_bench_overlap_measure_LDADD = $(OMPI_LIBS)

# What test/bench/crowd starts.
check_PROGRAMS += test/bench/crowd_measure
test_bench_crowd_measure_SOURCES = test/bench/crowd_measure.c
test_bench_crowd_measure_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_crowd_measure_LDFLAGS = $(mpi_link_flags)
test_bench_crowd_measure_LDADD = $(OMPI_LIBS)
# Many senders to one receiver, on the hosts of test/lab/rails.
check_PROGRAMS += test/bench/incast
test_bench_incast_SOURCES = test/bench/incast.c
test_bench_incast_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_incast_LDFLAGS = $(mpi_link_flags)
test_bench_incast_LDADD = $(OMPI_LIBS)

# What it costs to ask whose memory a buffer is.
check_PROGRAMS += test/bench/pointer_kind
test_bench_pointer_kind_SOURCES = test/bench/pointer_kind.c
test_bench_pointer_kind_LDADD = libmultilane_common.la -lpthread -ldl

# What packing irregular blocks of device memory takes. Needs a real GPU, and says so.
check_PROGRAMS += test/bench/device_pack
test_bench_device_pack_SOURCES = test/bench/device_pack.c
test_bench_device_pack_LDADD = libmultilane_common.la -lpthread

# A ring of chunks in device memory, and the two ways of waiting there. Needs a real GPU, and says so.
check_PROGRAMS += test/bench/device_ring
test_bench_device_ring_SOURCES = test/bench/device_ring.c test/bench/device_ring.h \
	test/bench/median.h
nodist_test_bench_device_ring_SOURCES = test/bench/device_ring_image.c
test_bench_device_ring_LDADD = libmultilane_common.la -lpthread -ldl
EXTRA_DIST += test/bench/device_ring.cu
CLEANFILES += test/bench/device_ring_image.c test/bench/device_ring.fatbin
test/bench/device_ring.fatbin: test/bench/device_ring.cu test/bench/device_ring.h
if HAVE_KERNELS
	$(AM_V_GEN)$(MKDIR_P) test/bench && $(NVCC_FATBIN) -o $@ $(srcdir)/test/bench/device_ring.cu
else
	$(AM_V_GEN)$(MKDIR_P) test/bench && : >$@
endif
test/bench/device_ring_image.c: test/bench/device_ring.fatbin common/memory/embed
	$(AM_V_GEN)$(SHELL) $(srcdir)/common/memory/embed test/bench/device_ring.fatbin \
		device_ring_image >$@.new && mv $@.new $@

# Would a message end sooner if a part of it went by way of the host? Needs a real GPU, better two.
check_PROGRAMS += test/bench/device_links
test_bench_device_links_SOURCES = test/bench/device_links.c test/bench/median.h
test_bench_device_links_LDADD = libmultilane_common.la -lpthread -ldl

# What test/bench/device starts.
check_PROGRAMS += test/bench/device_messages
test_bench_device_messages_SOURCES = test/bench/device_messages.c
test_bench_device_messages_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_device_messages_LDFLAGS = $(mpi_link_flags)
test_bench_device_messages_LDADD = libmultilane_common.la $(OMPI_LIBS) -lpthread -ldl

# What test/bench/flooded starts.
check_PROGRAMS += test/bench/flooded_messages
test_bench_flooded_messages_SOURCES = test/bench/flooded_messages.c
test_bench_flooded_messages_CPPFLAGS = $(MPI_CPPFLAGS)
test_bench_flooded_messages_LDFLAGS = $(mpi_link_flags)
test_bench_flooded_messages_LDADD = $(OMPI_LIBS)
