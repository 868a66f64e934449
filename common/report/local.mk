# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/report: tables for people.
libmultilane_common_la_SOURCES += common/report/table.c common/report/table.h
