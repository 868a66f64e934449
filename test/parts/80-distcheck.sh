# SPDX-License-Identifier: BSD-3-Clause
# Part distcheck: the tarball builds, tests, installs and uninstalls on its own.
about="the tarball builds, tests and all, installs and uninstalls on its own"

. "$top/test/unit/run.sh"

# The unit tests are built; they run in other parts, and one of them here.
distcheck() {
    unit_build gcc && make -C "$build_root/gcc" -j"$jobs" distcheck TESTS=test/unit/ring_test \
        DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0
}

part_run() {
    check distcheck distcheck
}
