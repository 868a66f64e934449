# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/report: tables for people.
libmultilane_common_la_SOURCES += \
	common/report/plan_table.c common/report/plan_table.h \
	common/report/table.c common/report/table.h
