# SPDX-License-Identifier: BSD-3-Clause
# Part tsan: unit tests under ThreadSanitizer, and of the MPI runs those with threads, the program's
# or ours.
about="unit tests and MPI runs with threads under ThreadSanitizer"

. "$top/test/unit/run.sh"

part_build() {
    unit_build_ahead tsan --enable-tsan
}

part_run() {
    unit_run tsan --enable-tsan &&
        mpi_run "$build_root/tsan" "$part." asleep conform flaky progress_thread
}
