# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fake: stand-ins for hardware, and for hardware that fails.

# A stand-in for the CUDA driver: test/fake/libcuda.so.1, by no rule of libtool's, whose names it
# must not have.
check_DATA += test/fake/libcuda.so.1 test/fake/kernels
CLEANFILES += test/fake/libcuda.so.1 test/fake/kernels
EXTRA_DIST += test/fake/cuda.c
noinst_HEADERS += test/fake/cuda_calls.h
test/fake/libcuda.so.1: test/fake/cuda.c common/memory/driver.h common/memory/pack.h \
		test/bench/device_ring.h test/fake/cuda_calls.h
	$(AM_V_CC)$(MKDIR_P) test/fake && $(CC) $(MULTILANE_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fPIC -shared \
		-Wl,-soname,libcuda.so.1 $(MULTILANE_LDFLAGS) $(LDFLAGS) -o $@ $(srcdir)/test/fake/cuda.c -lpthread
# Device code as that stand-in knows it: the name of the file is pml_multilane_device_code.
test/fake/kernels:
	$(AM_V_GEN)$(MKDIR_P) test/fake && echo stand-in >$@

# Stand-ins for the libraries of devices that are not CUDA's: all they do is be there and give out
# memory that the processor cannot touch. In a folder that no search for libraries comes to: UCX
# would take them for the real ones.
other_devices = test/fake/other/libamdhip64.so.6 test/fake/other/libze_loader.so.1
check_DATA += $(other_devices)
CLEANFILES += $(other_devices)
EXTRA_DIST += test/fake/other_device.c
$(other_devices): test/fake/other_device.c
	$(AM_V_CC)$(MKDIR_P) test/fake/other && $(CC) $(MULTILANE_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fPIC -shared \
		$(MULTILANE_LDFLAGS) $(LDFLAGS) -o $@ $(srcdir)/test/fake/other_device.c

# Connections that break at any byte, for btl/sock, to be preloaded.
check_DATA += test/fake/libsock_faults.so
CLEANFILES += test/fake/libsock_faults.so
EXTRA_DIST += test/fake/sock_faults.c
test/fake/libsock_faults.so: test/fake/sock_faults.c
	$(AM_V_CC)$(MKDIR_P) test/fake && $(CC) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fno-sanitize=all -fPIC -shared \
		$(LDFLAGS) -o $@ $(srcdir)/test/fake/sock_faults.c -ldl

# A stand-in for an RDMA device that registers dmabufs, to be preloaded. Run in test/lab/rdma.
if BUILD_VERBS
check_DATA += test/fake/libverbs_dmabuf.so
CLEANFILES += test/fake/libverbs_dmabuf.so
test/fake/libverbs_dmabuf.so: test/fake/verbs_dmabuf.c
	$(AM_V_CC)$(MKDIR_P) test/fake && $(CC) $(MULTILANE_CPPFLAGS) $(VERBS_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fPIC -shared \
		$(MULTILANE_LDFLAGS) $(VERBS_LDFLAGS) $(LDFLAGS) -o $@ $(srcdir)/test/fake/verbs_dmabuf.c $(VERBS_LIBS) -lpthread

# A stand-in for RDMA devices that are strict, to be preloaded, and a program that asks it for events.
strict_sources = test/fake/verbs/device.c test/fake/verbs/fabric.c test/fake/verbs/profile.c \
	test/fake/verbs/queue.c test/fake/verbs/request.c
strict_build = $(CC) $(MULTILANE_CPPFLAGS) $(VERBS_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS)
check_DATA += test/fake/libverbs_strict.so test/fake/strict_do
CLEANFILES += test/fake/libverbs_strict.so test/fake/strict_do
test/fake/libverbs_strict.so: $(strict_sources) test/fake/verbs/strict.h
	$(AM_V_CC)$(MKDIR_P) test/fake && $(strict_build) -fPIC -shared $(MULTILANE_LDFLAGS) $(LDFLAGS) \
		-o $@ $(strict_sources:%=$(srcdir)/%) -lpthread
test/fake/strict_do: $(strict_sources) test/fake/verbs/strict_do.c test/fake/verbs/strict.h
	$(AM_V_CC)$(MKDIR_P) test/fake && $(strict_build) $(MULTILANE_LDFLAGS) $(LDFLAGS) \
		-o $@ $(strict_sources:%=$(srcdir)/%) $(srcdir)/test/fake/verbs/strict_do.c -lpthread
endif
EXTRA_DIST += test/fake/verbs_dmabuf.c test/fake/verbs/device.c test/fake/verbs/fabric.c \
	test/fake/verbs/profile.c test/fake/verbs/queue.c test/fake/verbs/request.c \
	test/fake/verbs/strict.h test/fake/verbs/strict_do.c

# Lanes that break, by a seed. Run by test/mpi/runs/flaky.sh.
check_LTLIBRARIES += test/fake/mca_btl_flaky.la
test_fake_mca_btl_flaky_la_SOURCES = test/fake/btl_flaky.c test/fake/btl_flaky.h
test_fake_mca_btl_flaky_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
test_fake_mca_btl_flaky_la_LDFLAGS = $(COMPONENT_LDFLAGS) -rpath /nowhere
test_fake_mca_btl_flaky_la_LIBADD = $(COMPONENT_LIBADD) $(OPAL_LIBS)
