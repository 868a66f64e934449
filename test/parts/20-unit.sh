# SPDX-License-Identifier: BSD-3-Clause
# Part unit: `make check`, one result for each program.
about="unit tests, built with gcc and every warning an error"

. "$top/test/unit/run.sh"

part_run() {
    unit_run gcc
}
