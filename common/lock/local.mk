# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/lock: locks that are biased to one thread, threads, and the clock.
libmultilane_common_la_SOURCES += \
	common/lock/bias.c common/lock/bias.h \
	common/lock/clock.h \
	common/lock/quiet_thread.h
