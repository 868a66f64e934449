# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/file: files as a whole.
libmultilane_common_la_SOURCES += \
	common/file/whole_file.c common/file/whole_file.h
