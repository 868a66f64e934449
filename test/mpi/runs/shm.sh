# SPDX-License-Identifier: BSD-3-Clause
# The lane over shared memory: sizes, traffic and one-sided operations under Open MPI's own PML,
# messages that both ends copy under ours.
shm="--mca pml ob1 --mca btl self,shm"
both="--mca pml multilane --mca btl self,shm --mca pml_multilane_protocol rndv-both:20000-inf"
# What the series changes: the calls of its PML and of osc/rdma, threads, how a job begins and ends. What a
# sanitizer sees: each kind of memory and each way to go without, once.
elsewhere_only 'series=shm.@(sizes|traffic.5|traffic.64.multilane|both.sizes|first-thread.*.4|rma|rma.no-single-copy|
rma.threads|rma.unlike-rings|bad-single-copy|copy-refused-later|copy-refused.rma.multilane|hidden|none-left.multilane|no-memfd.5|
later-no-copy.4|no-memory|two-pid-namespaces|one-memory|unsent.multilane|killed)' \
    'asan=shm.@(sizes.@(no-single-copy|small-ring|pieces)|traffic.@(5|5.small-ring|5.pieces|10.*)|grows.large|both.@(sizes|traffic.5|
first-thread|copy-refused-later)|first-thread.after.4|rma.unlike-rings|rma.threads*|bad-*|lane-latency-of-ages|
copy-refused-@(later|unproven.multilane)|hidden|scarce|none-left.multilane*|no-@(memfd|locks|pidfd|seals).5|later-*.4|
no-memory|two-pid-namespaces|container-without-shm|small-dev-shm|killed.files)'
crowd_measure=$build/test/bench/crowd_measure
one_processor=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
shm_seconds=1
[ -z "$whole" ] || shm_seconds=2
[ -z "$MULTILANE_LONG" ] || shm_seconds=60

# shm_grows LINES PROGRAM...: the lines of the largest ring, which may have 65536 (4m) or $grows_to; the usual has 4096.
# shellcheck disable=SC2086
shm_grows() {
    local lines=$1 said
    shift
    said=$(mpirun_run 2 ${grows_over:-$shm} --mca btl_shm_ring_bytes "${grows_to:-4m}" --mca btl_base_verbose 10 -- "$@" 2>&1) &&
        [ "$(sed -n 's/.*the ring to process .* has \([0-9]*\) lines now.*/\1/p' <<<"$said" | sort -n |
            tail -n 1)" = "$lines" ] || { printf '%s\n' "$said"; return 1; }
}

# shellcheck disable=SC2086
shm_runs() {
    local step=7 n
    [ -z "$whole" ] || step=3
    [ -z "$MULTILANE_LONG" ] || step=1
    mpi shm.sizes 2 $shm -- shm_sizes $step
    mpi shm.sizes.no-single-copy 2 $shm --mca btl_shm_single_copy none -- shm_sizes 7
    # Messages of any length, and those that the protocol of one-sided operations does not fit into.
    mpi shm.sizes.send-size-most 2 $shm --mca btl_shm_max_send_size -1 --mca btl_shm_eager_limit -1 -- shm_sizes 7
    mpi shm.sizes.send-size-least 2 $shm --mca btl_shm_max_send_size 1 --mca btl_shm_single_copy none -- shm_sizes 7
    mpi shm.sizes.small-ring 2 $shm --mca btl_shm_ring_bytes 16k -- shm_sizes 7
    mpi shm.traffic.2 2 $shm -- shm_traffic $shm_seconds
    mpi shm.traffic.5 5 $shm -- shm_traffic $shm_seconds
    mpi shm.traffic.5.no-single-copy 5 $shm --mca btl_shm_single_copy none -- shm_traffic $shm_seconds
    mpi shm.traffic.5.small-ring 5 $shm --mca btl_shm_ring_bytes 16k -- shm_traffic $shm_seconds
    mpi shm.traffic.64 64 $shm -- shm_traffic $shm_seconds
    # 10 rings of 32 KiB, but not the page that each of them has beside: they must be smaller.
    mpi shm.traffic.10.little-memory 10 $shm --mca btl_shm_memory_max 320k -- shm_traffic 1
    # Rings grow with the traffic, and go back to 16 lines in silence.
    mpi_says shm.traffic.10.grows 'the ring to process .* has 256 lines now' 10 $shm \
        --mca btl_shm_memory_max 320k --mca btl_base_verbose 10 -- shm_traffic 1
    # Beyond 256 KiB (4,096 lines) for messages that gain by it, and not for short ones.
    # ob1 gets messages of this size by the kernel, and so does a plan where a sanitizer slows copies down.
    local grows_over="--mca pml multilane --mca btl self,shm --mca pml_multilane_protocol eager-short"
    check "${prefix}shm.grows.large" shm_grows 65536 "$crowd_measure" 16000 30000 0
    # In steps of four, each not before its pages pay: after 16 MiB, and then after 64.
    check "${prefix}shm.grows.in-steps" shm_grows 16384 "$crowd_measure" 16000 4000 0
    check "${prefix}shm.grows.not-early" shm_grows 4096 "$crowd_measure" 16000 500 0
    grows_over=
    check "${prefix}shm.grows.short" shm_grows 4096 "$crowd_measure" 8 100000 0
    # On one processor 512, and more only where a ring is full again and again.
    check "${prefix}shm.grows.crowded" shm_grows 512 "$(command -v taskset)" -c "$one_processor" "$crowd_measure" 4000 5000 0
    local grows_to=128k
    check "${prefix}shm.grows.crowded-flood" shm_grows 2048 "$(command -v taskset)" -c "$one_processor" \
        "$build/test/mpi/flood" --small 1 --large 8000 --bytes 4000 mutual
    [ -z "${MULTILANE_LONG:-}" ] || mpi_says shm.shrinks 'the ring to process .* has 16 lines now' 4 $shm \
        --mca btl_base_verbose 10 -- "$build/test/bench/crowd_measure" 8 300 6
    # No memory for any larger ring: all goes in pieces.
    mpi shm.traffic.5.pieces 5 $shm --mca btl_shm_memory_max 0 -- shm_traffic 1
    mpi shm.sizes.pieces 2 $shm --mca btl_shm_memory_max 0 --mca btl_shm_single_copy none -- shm_sizes 97
    mpi shm.sizes.pieces.multilane 2 --mca pml multilane --mca btl self,shm --mca btl_shm_memory_max 0 -- shm_sizes 97
    mpi shm.traffic.2.any-memory 2 $shm --mca btl_shm_memory_max inf -- shm_traffic 1
    mpi shm.traffic.64.multilane 64 --mca pml multilane --mca btl self,shm -- shm_traffic $shm_seconds
    mpi shm.both.sizes 2 $both -- shm_sizes 31
    mpi shm.both.traffic.5 5 $both -- shm_traffic $shm_seconds
    for n in 2 4; do
        mpi "shm.first-thread.before.$n" $n --mca pml multilane --mca btl self,shm -- first_thread before
        mpi "shm.first-thread.after.$n" $n --mca pml multilane --mca btl self,shm -- first_thread after
    done
    mpi shm.both.first-thread 2 $both -- first_thread before
    mpi shm.rma 4 $shm --mca osc rdma -- shm_rma
    mpi shm.rma.no-single-copy 4 $shm --mca osc rdma --mca btl_shm_single_copy none -- shm_rma
    mpi shm.rma.send-size-least 4 $shm --mca osc rdma --mca btl_shm_single_copy none --mca btl_shm_max_send_size 56 -- shm_rma
    # Who answers a get has smaller rings than who asks.
    # shellcheck disable=SC2016
    mpi shm.rma.unlike-rings 2 $shm --mca osc rdma --mca btl_shm_single_copy none -- /bin/sh -c \
        '[ "$OMPI_COMM_WORLD_RANK" = 0 ] && export OMPI_MCA_btl_shm_ring_bytes=16k; exec "$0"' \
        "$build/test/mpi/shm_rma"
    mpi shm.rma.threads 2 $shm --mca osc rdma -- shm_rma 4
    mpi shm.rma.threads.no-single-copy 2 $shm --mca osc rdma --mca btl_shm_single_copy none -- shm_rma 4
    mpi_fails shm.bad-single-copy 'btl_shm_single_copy is "xpmem"; it can be auto, cma or none' \
        2 $shm --mca btl_shm_single_copy xpmem -- shm_sizes 10000
    mpi_fails shm.bad-ring-bytes 'btl_shm_ring_bytes is "100k"; it can be a power of two' \
        2 $shm --mca btl_shm_ring_bytes 100k -- shm_sizes 10000
    mpi_fails shm.bad-memory-max 'btl_shm_memory_max: "64q" is not a size' \
        2 $shm --mca btl_shm_memory_max 64q -- shm_sizes 10000
    mpi_fails shm.bad-lane-latency 'btl_shm_lane_latency is "abc": "abc" is not a number' \
        2 $shm --mca btl_shm_lane_latency abc -- shm_sizes 10000
    mpi_fails shm.lane-latency-of-ages 'btl_shm_lane_latency is "1e12": .* is not a time' \
        2 $shm --mca btl_shm_lane_latency 1e12 -- shm_sizes 10000
}
shm_runs

# --- what an administrator or a container may do to a process ---

confine=$build/test/mpi/shm_confine
shm_sizes=$build/test/mpi/shm_sizes
ring=$build/test/mpi/ring
unshare=$(command -v unshare)
apart=(--propagation "$(mount_propagation)")

# mixed BTLS NAME COMMAND...: the first of two ranks is as always, the second is started so.
mixed() {
    local btls=$1 name=$2
    shift 2
    # shellcheck disable=SC2016
    mpi "$name" 2 --mca pml ob1 --mca btl "$btls" -- /bin/sh -c \
        'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec "$0" 97; else exec "$@"; fi' "$shm_sizes" "$@"
}

shm_refused_all() {
    build_root=$build packages_need strace && "$top/test/mpi/refused.py" "$build"
}

# shellcheck disable=SC2086
shm_confined() {
    local pml call n
    mpi shm.copy-refused 2 $shm -- "$confine" no-copy "$shm_sizes" 97
    mixed self,shm shm.copy-refused-to-one "$confine" no-copy "$shm_sizes" 97
    # Windows, by whatever component Open MPI chooses.
    for pml in ob1 multilane; do
        mpi shm.copy-refused.rma.$pml 2 --mca pml $pml --mca btl self,shm -- "$confine" no-copy "$build/test/mpi/shm_rma"
    done
    mpi shm.copy-refused-later 2 $shm -- shm_sizes 97 refuse
    # Refused before the first copy of a peer, after another one's memory could be copied.
    mpi shm.copy-refused-unproven 4 $shm -- shm_sizes 97 refuse
    mpi shm.copy-refused-unproven.multilane 4 --mca pml multilane --mca btl self,shm -- shm_sizes 97 refuse
    mpi shm.both.copy-refused-unproven 4 $both -- shm_sizes 97 refuse
    mpi_says shm.copy-refused-aloud 'btl_shm_single_copy is cma, but the memory of process .* cannot be read' \
        2 $shm --mca btl_shm_single_copy cma -- "$confine" no-copy "$shm_sizes" 97
    # Half way through the job, and so half way through messages that both ends copy.
    mpi shm.both.copy-refused-later 2 $both -- shm_sizes 97 refuse
    mpi shm.both.copy-refused 2 $both -- "$confine" no-copy "$shm_sizes" 97
    # The system lets no process have another's descriptors, or not those of one of them.
    mpi shm.hidden 2 $shm -- shm_sizes 97 hide
    mixed self,shm shm.one-hidden "$shm_sizes" 97 hide
    mpi_says shm.hidden-aloud 'btl_shm_single_copy is cma, but the memory of process .* cannot be read' \
        2 $shm --mca btl_shm_single_copy cma -- shm_sizes 97 hide
    mpi_says shm.scarce 'cannot be mapped by process .*: Too many open files' 2 $shm -- shm_sizes 97 scarce
    for pml in ob1 multilane; do
        mpi_says shm.none-left.$pml 'Its messages go by a small ring' 4 --mca pml $pml --mca btl self,shm -- \
            shm_sizes 97 none-left
        mpi shm.none-left.$pml.pieces 2 --mca pml $pml --mca btl self,shm --mca btl_shm_memory_max 80k -- \
            shm_sizes 97 none-left
    done
    for pml in ob1 multilane; do
        mpi shm.unsent.$pml 2 --mca pml $pml --mca btl self,shm -- shm_unsent
    done
    # Each call that has another way, refused from the start, and from MPI_Init on as by a daemon that
    # drops its rights.
    for call in seals memfd fallocate locks random pidfd fcntl; do
        mpi shm.no-$call.2 2 $shm -- "$confine" no-$call "$shm_sizes" 997
        mpi shm.no-$call.5 5 --mca pml multilane --mca btl self,shm -- "$confine" no-$call:enosys "$ring" 3
        mixed self,shm shm.no-$call.one "$confine" no-$call "$shm_sizes" 97
    done
    for call in no-memfd no-fallocate no-locks no-pidfd no-fcntl no-copy hide $([ "$(id -u)" != 0 ] || echo setuid); do
        for n in 2 4; do
            mpi shm.later-$call.$n $n --mca pml multilane --mca btl self,shm -- shm_sizes 997 later $call
        done
    done
    # Calls that Multilane makes and ob1 does not, or not for the same reason; with --long all that a job makes.
    if [ "$(uname -m)" = x86_64 ]; then
        check "${prefix}shm.refused" "$top/test/mpi/refused.py" "$build" --ranks 5 --errors EPERM access fchmod getcpu \
            get_mempolicy prctl prlimit64 uname
    else
        skip "${prefix}shm.refused" "the calls it names are those of x86-64"
    fi
    if [ -n "$MULTILANE_LONG" ]; then
        check "${prefix}shm.refused.all" shm_refused_all
    else
        skip "${prefix}shm.refused.all" "nearly 500 jobs: with --long"
    fi
    if [ -n "$sanitizer" ]; then
        skip "${prefix}shm.little-address-space" "a sanitizer takes terabytes of address space itself"
    else
        mpi_says shm.little-address-space 'the address space .* holds larger rings' 2 --mca pml multilane \
            --mca btl self,shm --mca btl_base_verbose 10 -- /bin/sh -c 'ulimit -v 400000 && exec "$0"' "$ring"
    fi
    # Too little memory for the lane: one sentence, and another lane.
    mpi_says shm.no-memory 'the memory to share with other processes .*: cannot create it: File too large' \
        2 --mca pml ob1 --mca btl self,shm,tcp --mca btl_tcp_if_include lo -- "$confine" little-memory "$shm_sizes" 9700
    if ! unshare -p -f true 2>/dev/null; then
        skip "${prefix}shm.other-pid-namespace" "this user may not make PID namespaces"
    else
        mixed self,shm shm.other-pid-namespace "$unshare" -p -f "$shm_sizes" 97
    fi
    if ! unshare "${apart[@]}" -p -f --mount-proc true 2>/dev/null; then
        skip "${prefix}shm.two-pid-namespaces" "no /proc can be mounted for a new PID namespace here"
    else
        mpi shm.two-pid-namespaces 2 $shm -- "$unshare" "${apart[@]}" -p -f --mount-proc "$shm_sizes" 97
    fi
    if [ -n "$sanitizer" ]; then
        skip "${prefix}shm.no-proc" "a sanitizer reads /proc itself"
    elif ! unshare "${apart[@]}" -m sh -c "mount -t tmpfs none /proc" 2>/dev/null; then
        skip "${prefix}shm.no-proc" "nothing can be mounted over /proc in a namespace of its own here"
    else
        for n in 2 5; do
            mpi shm.no-proc.$n $n --mca pml multilane --mca btl self,shm -- "$unshare" "${apart[@]}" -m /bin/sh -c \
                "mount -t tmpfs none /proc; exec $ring 8 2"
        done
        mixed self,shm shm.no-proc.one "$unshare" "${apart[@]}" -m /bin/sh -c "mount -t tmpfs none /proc; exec $shm_sizes 97"
    fi
    if ! unshare -U -r true 2>/dev/null; then
        skip "${prefix}shm.other-user-namespace" "this user may not make user namespaces"
    else
        mixed self,shm shm.other-user-namespace "$unshare" -U -r "$shm_sizes" 97
    fi
    if ! unshare "${apart[@]}" -p -m -f sh -c "mount -t tmpfs none /dev/shm" 2>/dev/null; then
        skip "${prefix}shm.container-without-shm" "nothing can be mounted over /dev/shm in a namespace of its own here"
    else
        # Neither the descriptor nor a file leads there: another lane, and no noise about it.
        mixed self,shm,tcp shm.container-without-shm "$unshare" "${apart[@]}" -p -m -f /bin/sh -c \
            "mount -t tmpfs none /dev/shm; exec $shm_sizes 97"
        mixed self,shm,tcp shm.container-with-full-shm "$unshare" "${apart[@]}" -p -m -f /bin/sh -c \
            "mount -t tmpfs -o size=4k none /dev/shm; exec $shm_sizes 97"
    fi
}
shm_confined

# small_dev_shm RANKS SIZE mpirun's arguments: half of the ranks are in PID namespaces of their own, so
# that all share files, in a /dev/shm of that size.
small_dev_shm() {
    local ranks=$1 size=$2 real=$mpirun
    local mpirun=$build/mpirun-small-dev-shm
    shift 2
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nexec "%s" %s -m sh -c '\''mount -t tmpfs -o size=%s none /dev/shm && exec "$@"'\'' - "%s" "$@"\n' \
        "$unshare" "${apart[*]}" "$size" "$real" >"$mpirun"
    chmod +x "$mpirun"
    # shellcheck disable=SC2016
    mpirun_run "$ranks" "$@" -- /bin/sh -c \
        'if [ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ]; then exec "$1" 1; else exec "$0" -p -f --kill-child "$1" 1; fi' \
        "$unshare" "$build/test/mpi/shm_traffic"
}
if ! unshare "${apart[@]}" -p -m -f sh -c "mount -t tmpfs none /dev/shm" 2>/dev/null; then
    skip "${prefix}shm.small-dev-shm" "nothing can be mounted over /dev/shm in a namespace of its own here"
else
    # shellcheck disable=SC2086
    check "${prefix}shm.small-dev-shm" small_dev_shm 6 512k $shm
fi

# --- a full node ---

# Small messages between all share what was agreed, and no more.
crowd() {
    "$(dirname "${BASH_SOURCE[0]}")/../../bench/crowd" "$build" --runs 1 "$@"
}
# Nor does a process map the memory of each other one: its own, and one for the whole job.
mpi_says shm.one-memory 'own 2 mapped' 8 $shm -- "$crowd_measure" 8
check "${prefix}shm.crowd.32" crowd --ranks 32 --shared-max 8
if [ -n "${MULTILANE_LONG:-}" ]; then
    check "${prefix}shm.crowd.128" crowd --ranks 128 --shared-max 128
    check "${prefix}shm.crowd.128.64k" crowd --ranks 128 --size 65536 --shared-max 512
    check "${prefix}shm.crowd.256" crowd --ranks 256 --shared-max 256
fi

# --- death ---

# Nothing of ours is left in /dev/shm by those who are gone.
shm_left() {
    find /dev/shm -maxdepth 1 -name 'multilane-*' -newer "$1"
}

# shm_kill_one SEED memory|file mpirun's arguments: a rank is killed at a random moment of traffic:
# mpirun ends within 10 s, and not well. With `file` half of the ranks are in PID namespaces of their
# own, so that what they share are files.
shm_kill_one() {
    local seed=$1 kind=$2 program=(shm_traffic 50) began ended status victim
    local stamp=$build/shm-kill.stamp
    shift 2
    # shellcheck disable=SC2016
    [ "$kind" = file ] && program=(/bin/sh -c \
        'if [ $((OMPI_COMM_WORLD_RANK % 2)) = 0 ]; then exec "$1" 50; else exec "$0" -p -f --kill-child "$1" 50; fi' \
        "$unshare" "$build/test/mpi/shm_traffic")
    touch "$stamp"
    limit_s=60 mpirun_run 4 "$@" -- "${program[@]}" >"$build/shm-kill.log" 2>&1 &
    local job=$!
    for _ in $(seq 200); do
        sleep 0.05
        # Only the ranks of this very job: descendants of the process just started.
        victim=$(shm_ranks_of $job | sed -n "$((seed % 4 + 1))p")
        [ -n "$victim" ] && { [ "$kind" = memory ] || [ -n "$(shm_left "$stamp")" ]; } && break
    done
    if [ "$kind" = file ] && [ -z "$(shm_left "$stamp")" ]; then
        shm_job_kill $job
        echo "the ranks share no file in /dev/shm"
        return 1
    fi
    sleep "0.$((RANDOM % 900 + 100))"
    began=$SECONDS
    kill -9 "$victim" || { shm_job_kill $job; echo "no rank to kill"; return 1; }
    wait $job
    status=$?
    ended=$((SECONDS - began))
    if [ $status = 0 ] || [ $status = 124 ] || [ $ended -gt 11 ]; then
        echo "after the death of $victim: status $status after $ended s"
        tail -n 20 "$build/shm-kill.log"
        return 1
    fi
    [ -z "$(shm_left "$stamp")" ] || { echo "left: $(shm_left "$stamp")"; return 1; }
}
shm_ranks_of() {
    local child
    # shellcheck disable=SC2013
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        if [ "$(cat "/proc/$child/comm" 2>/dev/null)" = shm_traffic ]; then echo "$child"; fi
        shm_ranks_of "$child"
    done
}
# The shell that mpirun was started in, and all that has come of it.
shm_job_kill() {
    local rank
    for rank in $(shm_ranks_of "$1"); do kill -9 "$rank"; done
    wait "$1" # mpirun ends without them
}
shm_kill_many() {
    local times=$1 n
    shift
    for n in $(seq "$times"); do
        shm_kill_one "$n" "$@" || { echo "in round $n"; return 1; }
    done
}
if [ -n "${MULTILANE_LONG:-}" ]; then shm_kills=100; else shm_kills=2; fi
# shellcheck disable=SC2086
check "${prefix}shm.killed" shm_kill_many $shm_kills memory $shm
# shellcheck disable=SC2086
check "${prefix}shm.killed.no-single-copy" shm_kill_many $shm_kills memory $shm --mca btl_shm_single_copy none
# Of the memory for rings the dead keep nothing: there is enough for one of 256 lines.
shm_heir() {
    local said
    # The job does not end well in all series.
    said=$(mpirun_run 3 --enable-recovery --mca pml multilane --mca btl self,shm --mca btl_shm_ring_bytes 16k \
        --mca btl_shm_memory_max 24k --mca btl_base_verbose 10 -- shm_heir 2>&1)
    printf '%s\n' "$said"
    grep -q 'the ring to process .*,2\] has 256 lines now' <<<"$said"
}
check "${prefix}shm.heir" shm_heir
if ! unshare -p -f true 2>/dev/null; then
    skip "${prefix}shm.killed.files" "this user may not make PID namespaces"
else
    # shellcheck disable=SC2086
    check "${prefix}shm.killed.files" shm_kill_many $shm_kills file $shm
fi
