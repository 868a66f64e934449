# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/memory: what kind of memory a pointer is, and copies of device memory.
libmultilane_common_la_SOURCES += \
	common/memory/copier.c common/memory/copier.h \
	common/memory/driver.c common/memory/driver.h \
	common/memory/memory.c common/memory/memory.h
