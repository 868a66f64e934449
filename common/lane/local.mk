# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/lane: attributes of lanes and where they come from.
libmultilane_common_la_SOURCES += \
	common/lane/attr.c common/lane/attr.h \
	common/lane/declared.c common/lane/declared.h \
	common/lane/foreign.c common/lane/foreign.h
