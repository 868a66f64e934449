# SPDX-License-Identifier: BSD-3-Clause
# Part clang: the unit tests built with the other compiler, whose warnings differ.
about="unit tests, built with clang and every warning an error"
runs_beside=1

. "$top/test/unit/run.sh"

part_cannot_run() {
    command -v clang >/dev/null || packages_need clang >/dev/null ||
        echo "clang is not there and could not be installed"
}

# The walks of all interleavings know no compiler: --long walks them here as well. Its warnings do not depend on
# optimizing, and the build takes two thirds of the time.
part_run() {
    MULTILANE_WALKS=${MULTILANE_LONG:-no} unit_run clang CC=clang CFLAGS=-O0
}
