# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite: every chapter with the PML over shared memory, over tcp and over our own
# lanes, with Open MPI's own PML as the control. --long: every number of ranks over every lane.
# All over our lane; over those of Open MPI the chapters, and threads, which meet its shared memory; spawned
# processes and sessions over sockets. A sanitizer sees memory: nothing over a second lane.
elsewhere_only "series=conform.@(*.multilane-shm.*|@(chapters|thread).multilane-$sm.3|chapters.multilane-tcp.2|
@(thread|session?(.many)|dynamic).multilane-sock.3|dynamic.@(few-rings|clients|leaving.shm,sock))" \
    "asan=conform.@(@(chapters|thread|dynamic).multilane-$sm.3|dynamic.@(few-rings|clients)|
inner.multilane-shm.2|onesided.multilane-shm.rdma.3)"
conform_limit_s=$limit_s
loopback="--mca btl_tcp_if_include lo"
# 4.1's osc/ucx takes windows for which it then finds no device.
if [ "$series" = 4.1 ]; then no_osc_ucx="--mca osc ^ucx"; else no_osc_ucx=; fi

# 4.1.4's runtime sometimes loses the message by which the two sides of a spawn find each other: one
# rank then waits for ever inside PMIx, under every PML. Such a run, and no other, is tried again, and the first time
# it need not wait so long.
conform_dynamic() { # mpirun_run's arguments, of which the last is how many seconds a case may take
    local output status seconds=${!#}
    [ "$series$sanitizer" != 4.1 ] || seconds=$((seconds / 2))
    for _ in 1 2 3; do
        output=$(mpirun_run "${@:1:$#-1}" "$seconds" 2>&1)
        status=$? seconds=${!#}
        printf '%s\n' "$output"
        [ $status != 0 ] && [ "$series" = 4.1 ] &&
            grep -q 'PMIx_Lookup\|PMIx_Connect' <<<"$output" || return $status
    done
    return $status
}

# conform PML LANE BTLS RANKS...: the chapters for one thread in one start, then the others; dynamic processes
# need tcp, as vader and sm refuse processes of another job.
# shellcheck disable=SC2086
conform() {
    local pml=$1 lane=$2 btls=$3 ranks family threads
    shift 3
    for ranks; do
        mpi "conform.chapters.$pml-$lane.$ranks" "$ranks" --mca pml $pml --mca btl $btls $loopback $no_osc_ucx \
            -- conform --seconds $((conform_limit_s / 2))
        case $lane in $sm) threads=$sm_threads ;; *) threads= ;; esac
        mpi "conform.thread.$pml-$lane.$ranks" "$ranks" --mca pml $pml --mca btl $btls $loopback $threads \
            -- thread --seconds $((conform_limit_s / 2))
        if [ "$series" = 4.1 ]; then
            skip "${prefix}conform.session.$pml-$lane.$ranks" "MPI 4, which Open MPI 4.1 is not"
        else
            mpi "conform.session.$pml-$lane.$ranks" "$ranks" --mca pml $pml --mca btl $btls $loopback \
                -- session --seconds $((conform_limit_s / 2))
        fi
        # Ours carries what spawned processes send as well.
        case ,$btls, in *,tcp,* | *,shm,* | *,sock,*) family=$btls ;; *) family=$btls,tcp ;; esac
        check "${prefix}conform.dynamic.$pml-$lane.$ranks" conform_dynamic "$ranks" --mca pml $pml \
            --mca btl $family $loopback -- dynamic --seconds $((conform_limit_s / 4))
    done
}

# Where threads are checked: the chapter that has some.
if [ "$sanitizer" = tsan ] && [ -z "${MULTILANE_LONG:-}" ]; then
    limit_s=240
    for lane in $sm shm tcp sock; do
        # shellcheck disable=SC2086
        mpi "conform.thread.multilane-$lane.3" 3 --mca pml multilane --mca btl self,$lane $loopback \
            -- thread --seconds 120
    done
    return 0
fi
if [ -n "${MULTILANE_LONG:-}" ]; then
    limit_s=600 conform_limit_s=600
    conform multilane $sm self,$sm 1 2 3 4 5 8
    conform multilane shm self,shm 1 2 3 4 5 8
    conform multilane tcp self,tcp 1 2 3 4 5 8
    conform multilane sock self,sock 1 2 3 4 5 8
    conform ob1 $sm self,$sm 1 2 3 5
elif [ -n "$sanitizer" ]; then
    limit_s=240
    conform multilane $sm self,$sm 3
else
    conform multilane $sm self,$sm 1 3
    conform multilane shm self,shm 4
    conform multilane tcp self,tcp 2
    conform multilane sock self,sock 3
    # The control says whether the programs ask for more than MPI promises.
    conform ob1 $sm self,$sm 2
fi
if [ "$series" != 4.1 ]; then
    for ranks in 3 5; do
        mpi conform.session.many.multilane-shm.$ranks $ranks --mca pml multilane --mca btl self,shm \
            -- session --case messages_outlive_their_sender --thorough --seconds 60
    done
    # The errors of its communicator are returned, so one that is taken for a loss would only be said.
    outlived_over_sock() {
        local output
        output=$(mpirun_run 3 --mca pml multilane --mca btl self,sock -- session \
            --case messages_outlive_their_sender --thorough --seconds 60 2>&1) || { printf '%s\n' "$output"; return 1; }
        printf '%s\n' "$output"
        ! grep -q 'counts as failed' <<<"$output"
    }
    check "${prefix}conform.session.many.multilane-sock.3" outlived_over_sock
fi
# Nothing is sent there but the ends: it waits.
check "${prefix}conform.dynamic.outlived" conform_dynamic 2 --mca pml multilane \
    --mca btl self,$sm,sock --mca pml_multilane_lost_s 2 --mca btl_sock_lost_s 2 -- dynamic \
    --case parents_outlive_their_children --thorough --seconds 60
# Children that end in order are no loss, and no lane to them is.
conform_leaving() { # BTLS
    local output
    output=$(conform_dynamic 2 --mca pml multilane --mca btl "self,$1" --mca btl_sock_if lo -- dynamic \
        --case children_leave_without_disconnect --thorough --seconds 60) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    ! grep -q 'counts as failed\|is left out\|is lost' <<<"$output"
}
for lanes in sock shm shm,sock; do
    check "${prefix}conform.dynamic.leaving.$lanes" conform_leaving "$lanes"
done
# Memory for one large ring: all others stay small, and large messages to them go in pieces.
check "${prefix}conform.dynamic.few-rings" conform_dynamic 2 --mca pml multilane \
    --mca btl self,shm --mca btl_shm_ring_bytes 256k --mca btl_shm_memory_max 300k \
    -- dynamic --seconds $((conform_limit_s / 4))
check "${prefix}conform.dynamic.clients" conform_dynamic 1 --mca pml multilane --mca btl self,shm \
    --mca mpi_yield_when_idle 1 --mca pml_multilane_unexpected_max 1m -- clients --seconds 40
# Out of requests, and requests that their completion starts again.
mpi conform.inner.multilane-shm.2 2 --mca pml multilane --mca btl self,shm -- inner
mpi conform.inner.multilane-$sm.2 2 --mca pml multilane --mca btl self,$sm -- inner
# The other one-sided components, which sit on the PML or on its lanes.
if [ "$series" = 4.1 ]; then
    mpi conform.onesided.multilane-$sm.pt2pt.3 3 --mca pml multilane --mca btl self,$sm --mca osc pt2pt \
        -- conform onesided
    mpi conform.onesided.multilane-tcp.pt2pt.2 2 --mca pml multilane --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca osc pt2pt -- conform onesided
fi
mpi conform.onesided.multilane-shm.rdma.3 3 --mca pml multilane --mca btl self,shm --mca osc rdma \
    -- conform onesided
# Messages of more than 2 GiB: one of them always, all of them, for minutes, with --long.
if [ -n "${MULTILANE_LONG:-}" ]; then
    limit_s=300
    mpi conform.large.all.multilane-$sm.2 2 --mca pml multilane --mca btl self,$sm -- large \
        --thorough --seconds 140
else
    mpi conform.large.one.multilane-$sm.2 2 --mca pml multilane --mca btl self,$sm -- large \
        --case a_count_of_more_than_two_gib_of_bytes_arrives --seconds 140
fi
