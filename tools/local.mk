# SPDX-License-Identifier: BSD-3-Clause
# Sources of tools: the programs that users run.

# What a user's shell reads; the folders are known only to make.
tools/env.sh: tools/env.sh.in Makefile
	$(AM_V_GEN)$(MKDIR_P) tools && \
	sed -e 's|@componentdir[@]|$(componentdir)|; s|@bindir[@]|$(bindir)|' \
		-e 's|@PMIX_COMPONENT_DIR[@]|$(PMIX_COMPONENT_DIR)|' $(srcdir)/tools/env.sh.in > $@
pkgdata_DATA = tools/env.sh
CLEANFILES += tools/env.sh

# make bindist: a tarball to unpack anywhere. Nothing in it knows where it was built: env.sh and the
# modulefile ask where they are, and Open MPI's libraries are in the process that loads a component.
bindist = multilane-$(VERSION)-ompi$(OMPI_VERSION)-$(host_cpu)
bindist: all
	rm -rf $(bindist) $(bindist).tar.xz
	$(MKDIR_P) $(bindist)/lib/openmpi $(bindist)/share/multilane $(bindist)/share/modulefiles
	for name in $(component_LTLIBRARIES:.la=.so); do cp .libs/$$name $(bindist)/lib/openmpi/ || exit 1; done
	$(MAKE) $(AM_MAKEFLAGS) DESTDIR= bindir=$(abs_builddir)/$(bindist)/bin \
		mandir=$(abs_builddir)/$(bindist)/share/man \
		install-binPROGRAMS install-dist_binSCRIPTS install-man
	$(STRIP) --strip-unneeded $(bindist)/lib/openmpi/*.so $(bin_PROGRAMS:%=$(bindist)/bin/%)
	@if readelf -d $(bindist)/lib/openmpi/*.so $(bin_PROGRAMS:%=$(bindist)/bin/%) | grep 'R.*PATH'; then \
		echo "make bindist: these paths are of this machine only; build for an Open MPI in a system folder." >&2; \
		exit 1; \
	fi
	sed -e 's|@componentdir[@]|$$multilane_home/lib/openmpi|; s|@bindir[@]|$$multilane_home/bin|' \
		-e 's|@PMIX_COMPONENT_DIR[@]|$(PMIX_COMPONENT_DIR)|' \
		-e '/^pmix_components=/i multilane_home=$$(CDPATH= cd -- "$$(dirname "$${BASH_SOURCE:-$$0}")/../.." && pwd)' \
		-e '/^pmix_components=/i [ -e "$$multilane_home/lib/openmpi/mca_pml_multilane.so" ] || {' \
		-e '/^pmix_components=/i \    echo "multilane: this shell does not say where env.sh lies: read it by bash or zsh" >&2' \
		-e '/^pmix_components=/i \    unset multilane_home' \
		-e '/^pmix_components=/i \    return 1' \
		-e '/^pmix_components=/i }' \
		-e '$$a unset multilane_home' \
		$(srcdir)/tools/env.sh.in >$(bindist)/share/multilane/env.sh
	for kind in "" .lua; do \
		sed -e 's|@VERSION[@]|$(VERSION)|; s|@OMPI_VERSION[@]|$(OMPI_VERSION)|' \
			-e 's|@PMIX_COMPONENT_DIR[@]|$(PMIX_COMPONENT_DIR)|' \
			$(srcdir)/tools/modulefile$$kind.in >$(bindist)/share/modulefiles/multilane$$kind || exit 1; \
	done
	cp $(srcdir)/LICENSE $(bindist)/
	$(MKDIR_P) $(bindist)/doc
	cp $(srcdir)/README.md $(srcdir)/NEWS $(srcdir)/CHANGELOG.md $(srcdir)/SECURITY.md $(bindist)/
	cp $(srcdir)/doc/*.md $(bindist)/doc/
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w --mtime=@$${SOURCE_DATE_EPOCH:-0} \
		-cJf $(bindist).tar.xz $(bindist)
	rm -rf $(bindist)
.PHONY: bindist

dist_bin_SCRIPTS += tools/multilane-doctor

# What the programs and the unit tests share: models that no component needs, files of lanes.
noinst_LTLIBRARIES += libmultilane_tools.la
libmultilane_tools_la_SOURCES = \
	tools/options.c tools/options.h \
	tools/model/cluster.c tools/model/cluster.h \
	tools/model/equation.c tools/model/equation.h \
	tools/model/exact.c tools/model/exact.h \
	tools/lane/lane_input.c tools/lane/lane_input.h \
	tools/lane/lane_of_times.c tools/lane/lane_of_times.h \
	tools/lane/profile_write.c tools/lane/profile_write.h \
	tools/replay/recording.c tools/replay/recording.h \
	tools/replay/replay.c tools/replay/replay.h \
	tools/replay/report.c
# As common/model is: every compiler decides the same.
libmultilane_tools_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
libmultilane_tools_la_LIBADD = libmultilane_common.la

bin_PROGRAMS += multilane-plan
multilane_plan_SOURCES = \
	tools/multilane_plan.c \
	tools/plan_report.c tools/plan_report.h
multilane_plan_LDADD = libmultilane_tools.la -lm

# Measures lanes, so it is an MPI program, built for the same Open MPI as the components.
bin_PROGRAMS += multilane-calibrate
multilane_calibrate_SOURCES = \
	tools/calibrate/calibrate.c \
	tools/calibrate/job.c tools/calibrate/job.h \
	tools/calibrate/lane_test.c tools/calibrate/lane_test.h \
	tools/calibrate/measure.c tools/calibrate/measure.h \
	tools/calibrate/traffic.c tools/calibrate/traffic.h
multilane_calibrate_CPPFLAGS = $(COMPONENT_CPPFLAGS)
multilane_calibrate_LDFLAGS = $(AM_LDFLAGS) $(OMPI_LDFLAGS)
multilane_calibrate_LDADD = libmultilane_tools.la $(OMPI_LIBS) -ldl -lm

# Looks at running ranks through /proc; knows no MPI. The library is for the unit tests as well.
noinst_LTLIBRARIES += libmultilane_top.la
libmultilane_top_la_SOURCES = \
	tools/top/edges.c tools/top/edges.h \
	tools/top/export.c \
	tools/top/find.c tools/top/find.h \
	tools/top/ask.c tools/top/ask.h \
	tools/top/left.c tools/top/left.h \
	tools/top/rank.c tools/top/rank.h \
	tools/top/show.c tools/top/show.h \
	tools/top/why.c tools/top/why.h
libmultilane_top_la_LIBADD = libmultilane_common.la
bin_PROGRAMS += multilane-top
multilane_top_SOURCES = tools/top/multilane_top.c
multilane_top_LDADD = libmultilane_top.la libmultilane_tools.la
