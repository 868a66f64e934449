# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/ring: the ring of slots between two processes.
libmultilane_common_la_SOURCES += common/ring/bell.h common/ring/move.h common/ring/ring.c \
	common/ring/ring.h
