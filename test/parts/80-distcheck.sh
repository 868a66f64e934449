# SPDX-License-Identifier: BSD-3-Clause
# Part distcheck: the tarball builds, tests, installs and uninstalls on its own.
about="the tarball builds, tests and all, installs and uninstalls on its own"
runs_beside=1

. "$top/test/unit/run.sh"

# The tarball holds every file of git, so that no test can lack one: one is built and run, all with --long.
distcheck() {
    local one=(check_PROGRAMS=test/unit/ring_test check_LTLIBRARIES=)
    [ -z "$MULTILANE_LONG" ] || one=()
    unit_build gcc && make -C "$build_root/gcc" -j"$jobs" distcheck TESTS=test/unit/ring_test "${one[@]}" \
        DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0
}

part_run() {
    check distcheck distcheck
}
