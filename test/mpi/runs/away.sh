# SPDX-License-Identifier: BSD-3-Clause
# Alone: it measures how long calls take.
# Large messages move while one end computes, and nothing is lost or changed by that (doc/overlap.md).
elsewhere_only 'series=away.@(programs|programs.sock|between|calls)' 'asan=away.@(programs.4|programs.rndv|between)'

# away NAME RANKS [mpirun's arguments] -- away's arguments
away() {
    local name=$1 ranks=$2 arguments=()
    shift 2
    while [ "$1" != -- ]; do arguments+=("$1"); shift; done
    shift
    mpi "away.$name" "$ranks" --mca pml multilane --mca btl "${away_btl:-self,shm}" "${arguments[@]}" -- \
        away "$@"
}

away_runs() {
    local programs=${MULTILANE_LONG:+1000} none="--mca btl_shm_single_copy none"
    programs=${programs:-${whole:+100}}
    programs=${programs:-20}
    away programs 2 -- programs 1 "$programs" 500
    away programs.4 4 -- programs 5001 "$programs" 200
    # shellcheck disable=SC2086
    away programs.no-copies 3 $none -- programs 7001 "$((programs / 4))" 200
    away programs.rndv 2 --mca pml_multilane_protocol rndv-am -- programs 8001 "$((programs / 4))" 200
    away_btl=self,shm,sock away programs.sock 2 -- programs 9001 "$((programs / 4))" 200
    away between 2 -- between
    away between.rndv 2 --mca pml_multilane_protocol rndv-am -- between
    [ -n "$sanitizer" ] || away stopped 2 -- stopped
    # Before, a round of progress took one piece: 512 tests for 8 MiB, and all the time that the sender
    # computed.
    [ -n "$sanitizer" ] && return
    away calls 2 -- calls 4 8388608
    away calls.rndv 2 --mca pml_multilane_protocol rndv-am -- calls 4 8388608
    # Each test takes what the ring holds, 256 KiB: 32 tests, and more where its ends wrap around; a
    # sender that is on a processor fills it meanwhile.
    # shellcheck disable=SC2086
    away calls.no-copies 2 $none -- calls-of-receiver 64 8388608
}
away_runs
