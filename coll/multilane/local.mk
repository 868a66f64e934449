# SPDX-License-Identifier: BSD-3-Clause
# Sources of coll/multilane: collective operations on device memory.
if BUILD_CUDA
component_LTLIBRARIES += mca_coll_multilane.la
mca_coll_multilane_la_SOURCES = \
	coll/multilane/blocks.c \
	coll/multilane/coll.h \
	coll/multilane/component.c \
	coll/multilane/module.c \
	coll/multilane/pack.c \
	coll/multilane/request.c \
	coll/multilane/staging.c \
	coll/multilane/transfer.c
mca_coll_multilane_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_coll_multilane_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_coll_multilane_la_LIBADD = $(COMPONENT_LIBADD) $(OMPI_LIBS) $(OPAL_LIBS)
endif
