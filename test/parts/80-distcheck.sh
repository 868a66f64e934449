# SPDX-License-Identifier: BSD-3-Clause
# Part distcheck: the tarball builds, tests, installs and uninstalls on its own.
about="the tarball builds, tests, installs and uninstalls on its own"

. "$top/test/unit/run.sh"

distcheck() {
    unit_build gcc && make -C "$build_root/gcc" -j"$jobs" distcheck
}

part_run() {
    check distcheck distcheck
}
