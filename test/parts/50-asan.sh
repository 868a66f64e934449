# SPDX-License-Identifier: BSD-3-Clause
# Part asan: unit and MPI tests under AddressSanitizer and UndefinedBehaviorSanitizer.
about="unit and MPI tests under AddressSanitizer and UndefinedBehaviorSanitizer"

. "$top/test/unit/run.sh"

part_run() {
    unit_run asan --enable-asan &&
        mpi_run "$build_root/asan" "$part."
}
