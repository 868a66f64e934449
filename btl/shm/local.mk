# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/shm, the lane over shared memory.
component_LTLIBRARIES += mca_btl_shm.la
# The unit tests link it as well.
noinst_LTLIBRARIES += libmultilane_shm.la
libmultilane_shm_la_SOURCES = \
	btl/shm/accept.c \
	btl/shm/attended.c \
	btl/shm/copy.c \
	btl/shm/doorbell.c \
	btl/shm/extension.c \
	btl/shm/identity.c \
	btl/shm/liveness.c \
	btl/shm/outbound.c \
	btl/shm/own_segments.c \
	btl/shm/peer.c \
	btl/shm/pieces.c \
	btl/shm/procs.c \
	btl/shm/receive.c \
	btl/shm/remote.c \
	btl/shm/remote.h \
	btl/shm/segment.c \
	btl/shm/segment.h \
	btl/shm/send.c \
	btl/shm/serve.c \
	btl/shm/shm.c \
	btl/shm/shm.h \
	btl/shm/sleep.c
libmultilane_shm_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_shm_la_SOURCES = btl/shm/component.c
mca_btl_shm_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_shm_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_btl_shm_la_LIBADD = libmultilane_shm.la $(COMPONENT_LIBADD) $(OPAL_LIBS)
