# SPDX-License-Identifier: BSD-3-Clause
# Sources of tools: the programs that users run.

# What a user's shell reads; the folders are known only to make.
tools/env.sh: tools/env.sh.in Makefile
	$(AM_V_GEN)$(MKDIR_P) tools && \
	sed -e 's|@componentdir[@]|$(componentdir)|' \
		-e 's|@PMIX_COMPONENT_DIR[@]|$(PMIX_COMPONENT_DIR)|' $(srcdir)/tools/env.sh.in > $@
pkgdata_DATA = tools/env.sh
CLEANFILES += tools/env.sh

bin_PROGRAMS += multilane-plan
multilane_plan_SOURCES = \
	tools/multilane_plan.c \
	tools/lane_file.c tools/lane_file.h \
	tools/plan_json.c \
	tools/plan_plot.c \
	tools/plan_report.h \
	tools/plan_text.c
multilane_plan_LDADD = libmultilane_common.la
