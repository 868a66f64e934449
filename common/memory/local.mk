# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/memory: what kind of memory a pointer is, copies of device memory, kernels.
libmultilane_common_la_SOURCES += \
	common/memory/copier.c common/memory/copier.h \
	common/memory/device_measure.c common/memory/device_measure.h \
	common/memory/driver.c common/memory/driver.h \
	common/memory/kernels.c common/memory/kernels.h \
	common/memory/loaded.c common/memory/loaded.h \
	common/memory/memory.c common/memory/memory.h \
	common/memory/host_only.c common/memory/host_only.h \
	common/memory/other_devices.c common/memory/other_devices.h \
	common/memory/pack.h common/memory/packer.c common/memory/packer.h

NVCC_FATBIN = $(NVCC) $(KERNEL_ARCHS) $(NVCCFLAGS) -I$(srcdir) -Xfatbin -compress-all -fatbin

# Device code, as an array of bytes; an empty one where configure found no nvcc that makes it.
nodist_libmultilane_common_la_SOURCES = common/memory/kernels_image.c
EXTRA_DIST += common/memory/kernels.cu common/memory/embed
CLEANFILES += common/memory/kernels_image.c common/memory/kernels.fatbin
common/memory/kernels.fatbin: common/memory/kernels.cu common/memory/pack.h
if HAVE_KERNELS
	$(AM_V_GEN)$(MKDIR_P) common/memory && $(NVCC_FATBIN) -o $@ $(srcdir)/common/memory/kernels.cu
else
	$(AM_V_GEN)$(MKDIR_P) common/memory && : >$@
endif
common/memory/kernels_image.c: common/memory/kernels.fatbin common/memory/embed
	$(AM_V_GEN)$(SHELL) $(srcdir)/common/memory/embed common/memory/kernels.fatbin kernels_image >$@.new && mv $@.new $@
