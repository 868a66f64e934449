# SPDX-License-Identifier: BSD-3-Clause
# Part asan: unit and MPI tests under AddressSanitizer and UndefinedBehaviorSanitizer.
about="unit and MPI tests under AddressSanitizer and UndefinedBehaviorSanitizer"

. "$top/test/unit/run.sh"

# All files of test/mpi/runs but those whose tests wait by the clock most of the time, and which the
# parts without a sanitizer run: they come with --long.
asan_runs() {
    local file
    for file in "$top"/test/mpi/runs/*.sh; do
        case $(basename "$file" .sh).$MULTILANE_LONG in
        rails. | leaves. | inside.) ;;
        *) basename "$file" .sh ;;
        esac
    done
}

part_build() {
    unit_build_ahead asan --enable-asan "CFLAGS=-g -O1"
}

# AddressSanitizer does not wholly follow the coroutines of the walks of all interleavings: --long.
part_run() {
    # shellcheck disable=SC2046
    MULTILANE_WALKS=${MULTILANE_LONG:-no} unit_run asan --enable-asan "CFLAGS=-g -O1" &&
        mpi_run "$build_root/asan" "$part." $(asan_runs)
}
