# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/sock, the lane over TCP.
component_LTLIBRARIES += mca_btl_sock.la
# The unit tests link it as well.
noinst_LTLIBRARIES += libmultilane_sock.la
libmultilane_sock_la_SOURCES = \
	btl/sock/address.c \
	btl/sock/address.h \
	btl/sock/encrypt.c \
	btl/sock/encrypt.h \
	btl/sock/extension.c \
	btl/sock/fence.c \
	btl/sock/greeting.c \
	btl/sock/greeting.h \
	btl/sock/guests.c \
	btl/sock/growth.c \
	btl/sock/intake.c \
	btl/sock/link.c \
	btl/sock/links.c \
	btl/sock/peer.c \
	btl/sock/procs.c \
	btl/sock/progress.c \
	btl/sock/queue.c \
	btl/sock/rate.c \
	btl/sock/seal.c \
	btl/sock/seal.h \
	btl/sock/send.c \
	btl/sock/sock.c \
	btl/sock/sock.h \
	btl/sock/sockets.c \
	btl/sock/wake.c \
	btl/sock/work.c
libmultilane_sock_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_sock_la_SOURCES = btl/sock/component.c
mca_btl_sock_la_CPPFLAGS = $(COMPONENT_CPPFLAGS)
mca_btl_sock_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_btl_sock_la_LIBADD = libmultilane_sock.la $(COMPONENT_LIBADD) $(OPAL_LIBS)
