# SPDX-License-Identifier: BSD-3-Clause
# Part demo: what test/demo shows a newcomer.
about="test/demo runs the main job, without and with Multilane"

. "$top/test/unit/run.sh"

# The unit tests' build serves: that test/demo builds by itself is shown by the part fresh.
part_run() {
    check demo.build unit_build gcc || return
    check demo.runs demo_runs
}

demo_runs() {
    local output
    output=$(MULTILANE_DEMO_BUILD=gcc "$top/test/demo" 2>&1)
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] || return 1
    # Six runs had all their bytes, each size has its three figures, the messages went over our lane, and
    # the line to type is there.
    [ "$(cat "$build_root"/gcc/{ob1,multilane}.{1,2,3} | grep -c '^2 ranks, 0 wrong bytes')" = 6 ] || return 1
    [ "$(grep -Ec '^ +[0-9]+ +[0-9.]+ us +[0-9.]+ us +[0-9.]+$' <<<"$output")" = 6 ] || return 1
    [ "$(grep -c '^\[x\] ' <<<"$output")" = 4 ] || return 1
    grep -q 'multilane: plans of rank 0' <<<"$output" || return 1
    grep -Eq 'rndv-[a-z]+ +[a-z ]+ +shm:shm' <<<"$output" || return 1
    grep -q '^\. .*/tools/env.sh && mpirun --mca pml multilane --mca btl self,shm' <<<"$output"
}
