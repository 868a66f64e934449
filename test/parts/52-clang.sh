# SPDX-License-Identifier: BSD-3-Clause
# Part clang: the unit tests built with the other compiler, whose warnings differ.
about="unit tests, built with clang and every warning an error"

. "$top/test/unit/run.sh"

part_cannot_run() {
    command -v clang >/dev/null || packages_need clang >/dev/null ||
        echo "clang is not there and could not be installed"
}

part_run() {
    unit_run clang CC=clang
}
