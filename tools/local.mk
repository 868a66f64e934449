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
	tools/plan_json.c \
	tools/plan_plot.c \
	tools/plan_report.h \
	tools/plan_text.c
multilane_plan_LDADD = libmultilane_common.la

# Measures lanes, so it is an MPI program, built for the same Open MPI as the components.
bin_PROGRAMS += multilane-calibrate
multilane_calibrate_SOURCES = \
	tools/calibrate/calibrate.c tools/calibrate/calibrate.h \
	tools/calibrate/measure.c \
	tools/calibrate/orders.c \
	tools/calibrate/report.c
multilane_calibrate_CPPFLAGS = $(COMPONENT_CPPFLAGS)
multilane_calibrate_LDFLAGS = $(AM_LDFLAGS) $(OMPI_LDFLAGS)
multilane_calibrate_LDADD = libmultilane_common.la $(OMPI_LIBS) -ldl -lm
