# SPDX-License-Identifier: BSD-3-Clause
# Sources of btl/verbs, the lane over InfiniBand, RoCE and soft RoCE.
if BUILD_VERBS
component_LTLIBRARIES += mca_btl_verbs.la
# The unit tests link it as well.
noinst_LTLIBRARIES += libmultilane_verbs.la
libmultilane_verbs_la_SOURCES = \
	btl/verbs/cache.c \
	btl/verbs/choice.c \
	btl/verbs/choice.h \
	btl/verbs/clock.c \
	btl/verbs/completion.c \
	btl/verbs/connect.c \
	btl/verbs/cost.c \
	btl/verbs/device.c \
	btl/verbs/dmabuf.c \
	btl/verbs/dmabuf.h \
	btl/verbs/extension.c \
	btl/verbs/failure.c \
	btl/verbs/fence.c \
	btl/verbs/flush.c \
	btl/verbs/greeter.c \
	btl/verbs/greeting.h \
	btl/verbs/pair.c \
	btl/verbs/peer.c \
	btl/verbs/procs.c \
	btl/verbs/progress.c \
	btl/verbs/queue.c \
	btl/verbs/receives.c \
	btl/verbs/remote.c \
	btl/verbs/returns.c \
	btl/verbs/route.c \
	btl/verbs/route.h \
	btl/verbs/send.c \
	btl/verbs/submit.c \
	btl/verbs/verbs.c \
	btl/verbs/verbs.h \
	btl/verbs/work.c
libmultilane_verbs_la_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
# Not linked with libibverbs, which library.c opens.
mca_btl_verbs_la_SOURCES = btl/verbs/component.c btl/verbs/library.c btl/verbs/library.h
mca_btl_verbs_la_CPPFLAGS = $(COMPONENT_CPPFLAGS) $(VERBS_CPPFLAGS)
mca_btl_verbs_la_LDFLAGS = $(COMPONENT_LDFLAGS)
mca_btl_verbs_la_LIBADD = libmultilane_verbs.la $(COMPONENT_LIBADD) $(OPAL_LIBS)
endif
