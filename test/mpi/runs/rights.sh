# SPDX-License-Identifier: BSD-3-Clause
# Alone: in the lab it changes what all processes may do.
# What multilane-top may read: any rank of the same user, without a right to trace and whatever Yama
# says; no rank of another user. Yama is set only in the lab's virtual machine.
rights_scope=/proc/sys/kernel/yama/ptrace_scope

rights_as() { # UID COMMAND... without capabilities
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$uid" --clear-groups env HOME=/tmp TMPDIR=/tmp "$@"
}

# A job of user 65533 hangs; that user is told why, user 65534 is told whose it is, and the ranks are
# never stopped.
rights_ask() { # [MCA arguments]
    local job said status=1 try pid
    rights_as 65533 "$mpirun" -n 2 "${oversubscribe[@]}" --mca pml multilane --mca btl self,shm \
        --mca mpi_yield_when_idle 1 "$build/test/mpi/hang" wrong-tag 1 </dev/null >"$build/rights.job" 2>&1 &
    job=$!
    for try in $(seq 40); do
        sleep 0.3
        said=$(rights_as 65533 "$build/multilane-top" --why "$job" 2>&1)
        grep -q '^\* wrong-tag: rank' <<<"$said" && status=0 && break
    done
    echo "$said"
    [ $status = 0 ] || cat "$build/rights.job"
    pid=$(rights_as 65533 "$build/multilane-top" --json "$job" 2>&1 | sed -n 's/.*"pid": \([0-9]*\).*/\1/p' | head -n 1)
    said=$(rights_as 65534 "$build/multilane-top" --once "${pid:-none}" 2>&1) && status=1
    rights_as 65534 "$build/multilane-top" --drain shm:shm "${pid:-none}" && status=1
    rights_as 65533 "$build/multilane-top" --drain shm:shm "${pid:-none}" | grep 'rank . goes on using it' || status=1
    echo "$said"
    grep -q 'another user' <<<"$said" || status=1
    kill $job $(pgrep -P "$job") 2>/dev/null
    wait $job 2>/dev/null
    return $status
}

# btl/cuda takes file descriptors of its peers; nothing beside it, as UCX would, asks for the right to.
rights_device() {
    rights_as 65533 env OMPI_MCA_btl_cuda_lane_latency=1e-6 OMPI_MCA_btl_cuda_lane_overhead=6e-6 \
        OMPI_MCA_btl_cuda_lane_bandwidth=100e9 "$mpirun" -n 2 "${oversubscribe[@]}" --mca pml multilane \
        --mca btl self,tcp,cuda --mca btl_tcp_if_include lo --mca osc ^ucx --mca pml_multilane_profile none \
        -x LD_LIBRARY_PATH="$build/test/fake" "$build/test/mpi/device" mapped </dev/null >"$build/rights.device" 2>&1 &&
        grep 'device: memory of the other process was opened' "$build/rights.device" ||
        { cat "$build/rights.device"; return 1; }
}

rights_at_level() { # LEVEL COMMAND
    local before status
    before=$(cat $rights_scope)
    echo "$1" >$rights_scope && [ "$(cat $rights_scope)" = "$1" ] && $2
    status=$?
    echo "$before" >$rights_scope
    return $status
}

if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
    skip "${prefix}rights" "it takes two users of its own: as root, with setpriv"
elif ! rights_as 65533 test -x "$build/multilane-top"; then
    skip "${prefix}rights" "other users cannot enter $build"
elif [ -n "${MULTILANE_RDMA_LAB:-}" ]; then
    for rights_level in 2 ${MULTILANE_LONG:+1}; do
        check "${prefix}rights.yama-$rights_level" rights_at_level $rights_level rights_ask
    done
    check "${prefix}rights.device" rights_at_level 1 rights_device
else
    check "${prefix}rights.same-user" rights_ask
    check "${prefix}rights.device" rights_device
fi
