# SPDX-License-Identifier: BSD-3-Clause
# Alone: it measures when messages come.
# What a finished call has sent has left: the other side does not wait while the sender computes.
# test/mpi/leaves.c says what a case is; each group of cases is one job of 4 ranks, which is more than
# the processors of a small machine.
# tcp's lanes are those of every series.
elsewhere_only "series=leaves.@(@(new|all|warm|partitioned).shm|@(new-late|warm).$sm|warm.tcp|rndv-put.shm)"
leaves_bound="--bound 0.15 --compute 1 --tries 3"
[ -z "$sanitizer" ] || leaves_bound="--bound 0.5 --compute 2 --tries 3"
limit_s=60
# Pairs that have not talked before, each a size of its own.
leaves_new="send:8 send:1000 send:16k send:100k bsend sendrecv"
# A connection needs both ends, so MPI_Bsend, which ends at once, is not among these.
leaves_new_late="--late 0.1 send:8 send:1000 send:100k isend-wait:8"
# The first of these is the first of the job.
leaves_all="bcast barrier reduce allgather bcast:16k"
leaves_warm="send:8 send:1000 send:16k send:100k send:1m isend-wait isend-wait:1m isend-test rsend
    start-wait sendrecv bsend strided strided:16k ssend ssend:16k recv"
# The lanes are full when the call begins. What MPI_Bsend leaves behind is moved on by calls of the
# next 10 ms, in which a ring of shared memory empties and a slow rail may not.
leaves_full="--late 0.1 --flood 3000 send send:16k send:100k send:1m isend-wait isend-test start-wait
    sendrecv strided ssend"
leaves_full_here="$leaves_full bsend"
leaves_few="--late 0.1 send:1m isend-wait:100k strided:100k recv --flood 3000 send:1m isend-wait:100k recv"

# leaves NAME CASES [mpirun's arguments]
# shellcheck disable=SC2086
leaves() {
    local name=$1 cases=$2
    shift 2
    rm -f "$build/leaves.meet"
    mpi "leaves.$name" "${leaves_ranks:-4}" --mca mpi_yield_when_idle 1 --mca btl_tcp_if_include lo "$@" -- \
        leaves --meet "$build/leaves.meet" $leaves_bound $cases
}

# leaves_over NAME [mpirun's arguments]: all groups.
leaves_over() {
    local name=$1
    shift
    leaves "new.$name" "$leaves_new" "$@"
    leaves "new-late.$name" "$leaves_new_late" "$@"
    leaves "all.$name" "$leaves_all" "$@"
    leaves "warm.$name" "$leaves_warm $leaves_full_here" "$@"
    if [ "$series" = 4.1 ]; then
        skip "${prefix}leaves.partitioned.$name" "MPI 4, which Open MPI 4.1 is not"
    else
        leaves_ranks=2 leaves "partitioned.$name" "psend psend:100k --late 0.1 --flood 3000 psend" "$@"
    fi
}

leaves_lanes() {
    local lane protocol ours="--mca pml multilane --mca btl"
    for lane in shm $sm tcp sock; do
        # shellcheck disable=SC2086
        leaves_over $lane $ours self,$lane
    done
    for lane in shm ${MULTILANE_LONG:+$sm tcp}; do
        for protocol in rndv-put rndv-am ${MULTILANE_LONG:+rndv-get rndv-both eager-copy eager-zcopy}; do
            # shellcheck disable=SC2086
            leaves "$protocol.$lane" "$leaves_few" $ours self,$lane \
                --mca pml_multilane_protocol $protocol:20000-inf
        done
    done
    # shellcheck disable=SC2086
    leaves small-ring.shm "$leaves_warm $leaves_full_here" $ours self,shm --mca btl_shm_ring_bytes 16k
    # shellcheck disable=SC2086
    leaves "warm.$sm-and-sock" "$leaves_warm $leaves_full_here" $ours self,$sm,sock
    [ -n "${MULTILANE_LONG:-}" ] || return 0
    # What the other PML needs, so that a bound which is missed is not the machine's.
    for lane in $sm tcp; do
        leaves_over "ob1.$lane" --mca pml ob1 --mca btl self,$lane
    done
}

# leaves_rails NAME RATES CASES [mpirun's arguments]: two hosts; without mpirun_run, since ranks have
# places there.
# shellcheck disable=SC2086
leaves_rails() {
    local name=$1 rates=$2 cases=$3
    shift 3
    check "${prefix}leaves.$name" leaves_in_lab "$rates" "$@" -- $cases
}

# shellcheck disable=SC2086
leaves_in_lab() {
    local rates=$1 before=()
    shift
    while [ "$1" != -- ]; do before+=("$1"); shift; done
    shift
    rm -f "$build/leaves.meet"
    timeout --kill-after=10 "$limit_s" "$top/test/lab/rails" --rails "$rates" -- "$mpirun" -n 4 \
        --host a:2,b:2 --mca mpi_yield_when_idle 1 --mca btl self,tcp "${before[@]}" "$build/test/mpi/leaves" \
        --meet "$build/leaves.meet" $leaves_bound "$@" </dev/null
}

# In the lab a start costs most of the time.
leaves_over_rails() { # NAME RATES [mpirun's arguments]
    local name=$1 rates=$2
    shift 2
    leaves_rails "new.$name" "$rates" "$leaves_new" "$@"
    leaves_rails "all.$name" "$rates" "$leaves_all $leaves_warm $leaves_full" "$@"
    [ -n "${MULTILANE_LONG:-}" ] || return 0
    leaves_rails "new-late.$name" "$rates" "$leaves_new_late" "$@"
    leaves_rails "rndv-am.$name" "$rates" "$leaves_few" "$@" \
        --mca pml_multilane_protocol rndv-am:20000-inf
}

leaves_lanes
build_root=$build packages_need iproute2 mount >"$build/rails-packages.log" 2>&1
leaves_reason=$("$top/test/lab/rails" --check 2>&1)
if [ -n "$leaves_reason" ]; then
    skip "${prefix}leaves.rails" "$leaves_reason"
    return 0
fi
ours="--mca pml multilane"
# shellcheck disable=SC2086
{
    leaves_over_rails 2-rails 800,800 $ours
    leaves_rails new.1-rail 800 "$leaves_new" $ours
    if [ -n "${MULTILANE_LONG:-}" ]; then
        leaves_rails all.1-rail 800 "$leaves_all $leaves_warm $leaves_full" $ours
        leaves_over_rails 3-rails 200,400,800 $ours
        leaves_over_rails ob1.2-rails 800,800 --mca pml ob1
    fi
}
