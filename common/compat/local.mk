# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/compat: what differs between the versions of Open MPI, and the helpers that
# need Open MPI and that every component shares.
libmultilane_compat_la_SOURCES += \
	common/compat/accelerator.h common/compat/btl.h common/compat/coll.h common/compat/collective.h common/compat/compat.h common/compat/threads.c common/compat/threads.h \
	common/compat/component.c common/compat/component.h \
	common/compat/fragment.c common/compat/fragment.h \
	common/compat/tool_event.c common/compat/tool_event.h \
	common/compat/layout.h \
	common/compat/library_calls.c common/compat/library_calls.h \
	common/compat/osc.h \
	common/compat/peer_list.c common/compat/peer_list.h \
	common/compat/modex.c common/compat/modex.h \
	common/compat/named.c common/compat/named.h \
	common/compat/tsan.h \
	common/compat/param.c common/compat/param.h \
	common/compat/registered.c common/compat/registered.h \
	common/compat/version.c common/compat/version.h
