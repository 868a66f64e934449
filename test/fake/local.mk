# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fake: stand-ins for hardware.

# A stand-in for the CUDA driver: test/fake/libcuda.so.1, by no rule of libtool's, whose names it
# must not have.
check_DATA = test/fake/libcuda.so.1
CLEANFILES += test/fake/libcuda.so.1
EXTRA_DIST += test/fake/cuda.c
test/fake/libcuda.so.1: test/fake/cuda.c common/memory/driver.h
	$(AM_V_CC)$(MKDIR_P) test/fake && $(CC) $(MULTILANE_CPPFLAGS) $(CPPFLAGS) $(MULTILANE_CFLAGS) $(CFLAGS) -fPIC -shared \
		-Wl,-soname,libcuda.so.1 $(MULTILANE_LDFLAGS) $(LDFLAGS) -o $@ $(srcdir)/test/fake/cuda.c -lpthread
