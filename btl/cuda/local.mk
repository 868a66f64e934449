# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/cuda, the lane over the memory of CUDA devices.
if BUILD_CUDA
component_LTLIBRARIES += mca_btl_cuda.la
mca_btl_cuda_la_SOURCES = \
	btl/cuda/component.c \
	btl/cuda/copy.c \
	btl/cuda/cuda.h \
	btl/cuda/key.c \
	btl/cuda/list.c \
	btl/cuda/mapping.c \
	btl/cuda/share.c
mca_btl_cuda_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_cuda_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_btl_cuda_la_LIBADD = $(COMPONENT_LIBADD) $(OPAL_LIBS)
endif
