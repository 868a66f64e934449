# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/report: tables for people, and what the page of a rank says.
libmultilane_common_la_SOURCES += \
	common/report/json.c common/report/json.h \
	common/report/page_take.c common/report/page_take.h \
	common/report/page_text.c common/report/page_text.h \
	common/report/plan_table.c common/report/plan_table.h \
	common/report/table.c common/report/table.h
