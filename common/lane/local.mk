# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/lane: attributes of lanes and where they come from.
libmultilane_common_la_SOURCES += \
	common/lane/attr.c common/lane/attr.h \
	common/lane/declared.c common/lane/declared.h \
	common/lane/fingerprint.c common/lane/fingerprint.h \
	common/lane/cgroup.c common/lane/cgroup.h \
	common/lane/crowd.c common/lane/crowd.h \
	common/lane/history.c common/lane/history.h \
	common/lane/host.c common/lane/host.h \
	common/lane/kernel_text.c common/lane/kernel_text.h \
	common/lane/lane_keys.c common/lane/lane_keys.h \
	common/lane/lane_parse.c common/lane/lane_file.h \
	common/lane/last_cache.c common/lane/last_cache.h common/lane/processor_list.h \
	common/lane/locality.c common/lane/locality.h \
	common/lane/profile.c common/lane/profile.h \
	common/lane/readers.c common/lane/readers.h \
	common/lane/startup.c common/lane/startup.h \
	common/lane/startup_measure.c common/lane/startup_measure.h \
	common/lane/subnet.c common/lane/subnet.h
