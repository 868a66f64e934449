# SPDX-License-Identifier: BSD-3-Clause
# Part demo: what test/demo shows a newcomer.
about="test/demo runs the main job"

part_run() {
    check demo.runs demo_runs
}

demo_runs() {
    local output
    output=$("$top/test/demo" 2>&1)
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] || return 1
    # Both runs had all their bytes, the second went over our lane, and the line to type is there.
    [ "$(grep -c '^2 ranks, 0 wrong bytes' <<<"$output")" = 2 ] || return 1
    grep -q 'multilane: plans of rank 0' <<<"$output" || return 1
    grep -Eq 'rndv-[a-z]+ +[a-z ]+ +shm:shm' <<<"$output" || return 1
    grep -q 'mpirun --mca pml multilane --mca btl self,shm' <<<"$output"
}
