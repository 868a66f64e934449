# SPDX-License-Identifier: BSD-3-Clause
# Part tsan: unit tests under ThreadSanitizer.
about="unit tests under ThreadSanitizer"

. "$top/test/unit/run.sh"

part_run() {
    unit_run tsan --enable-tsan
}
