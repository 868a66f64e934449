# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/sum: sums by which wrong bytes are found.
libmultilane_common_la_SOURCES += common/sum/crc32c.c common/sum/crc32c.h common/sum/fnv.h
