# SPDX-License-Identifier: BSD-3-Clause
# The lane over RDMA. Everywhere: what it says where it can be none. In the lab of test/lab/rdma,
# which sets MULTILANE_RDMA_LAB (all, short, or other for the other series): everything over it alone, by two rails.
verbs="--mca btl self,verbs"
side=$top/test/lab/rdma-side
rail=$top/test/lab/rdma-rail
receives_grow='[0-9]+ receive buffers, as few were left'

# Which ports are lanes, what is refused, and what a broken port or device does to this BTL's own
# connections, Open MPI's series do not change. In the lab's machine verbs_lab says what runs.
[ -n "${MULTILANE_RDMA_LAB:-}" ] || elsewhere_only 'series=verbs.@(no-device|real-command-alone|strict.@(*.traffic.auto|equal-ports|same-node*|late-writes))' \
    'asan=verbs.@(no-device|bad-pairing)'

# --- everywhere ---------------------------------------------------------------

# What is given wrongly: one sentence, and the job goes on over another lane.
# shellcheck disable=SC2086
verbs_refuses() {
    local other="--mca pml multilane --mca btl self,$sm,verbs"
    mpi_says verbs.bad-pairing 'btl_verbs_pairing is "rails"; it can be subnet, route or order' \
        2 $other --mca btl_verbs_pairing rails -- ring
    mpi_says verbs.bad-queue-depth 'btl_verbs_queue_depth is 5; it can be 16 to 16384' \
        2 $other --mca btl_verbs_queue_depth 5 -- ring
    mpi_says verbs.bad-dmabuf 'btl_verbs_dmabuf is "always"; it can be auto or none' \
        2 $other --mca btl_verbs_dmabuf always -- ring
    mpi_says verbs.bad-timeout 'btl_verbs_timeout is 99; it can be 1 to 31' \
        2 $other --mca btl_verbs_timeout 99 -- ring
    mpi_says verbs.bad-lane-latency 'btl_verbs_lane_latency is "abc": "abc" is not a number' \
        2 $other --mca btl_verbs_lane_latency abc -- ring
    mpi_says verbs.bad-same-node 'btl_verbs_same_node is "maybe"; it can be auto, yes or no' \
        2 $other --mca btl_verbs_same_node maybe -- ring
    if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
        mpi_says verbs.no-device 'btl/verbs: no lane, since this node has no RDMA device' \
            2 $other --mca btl_base_verbose 10 -- ring
        check "${prefix}verbs.not-loaded" libibverbs_stays_out $other
    else
        skip "${prefix}verbs.no-device" "this node has an RDMA device"
        skip "${prefix}verbs.not-loaded" "this node has an RDMA device"
    fi
    broken_library check "${prefix}verbs.no-library" output_of 0 \
        'btl/verbs: no lane: .*libibverbs.so.1: .*Other lanes are used' 2 $other -- ring
}

# No process of a job loads libibverbs where no device is.
libibverbs_stays_out() {
    local loads=$build/loads
    rm -f "$loads".*
    LD_DEBUG=files LD_DEBUG_OUTPUT=$loads mpirun_run 2 "$@" -- ring &&
        grep -l 'calling init: .*/mca_btl_verbs.so' "$loads".* &&
        ! grep 'calling init: .*/libibverbs.so' $(grep -l 'calling init: .*/mca_btl_verbs.so' "$loads".*)
}

# The call that follows, where the kernel shows a device and the file of libibverbs is no library.
broken_library() {
    local folder status
    folder=$(mktemp -d)
    mkdir -p "$folder/class/infiniband/mlx5_0" && echo "no library" >"$folder/libibverbs.so.1" || return 1
    SYSFS_PATH=$folder LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
    status=$?
    rm -rf "$folder"
    return $status
}

# --- over the strict stand-in -------------------------------------------------

# Jobs over test/fake/verbs, which refuses what adapters refuse and needs no device. Ranks with even
# numbers play one host, with odd ones another.

# Set where all of it runs: with MULTILANE_LONG, or where --only names tests of it.
strict_all=$MULTILANE_LONG
[[ $only != *verbs.strict.* ]] || strict_all=1

# strict FUNCTION PROFILE NAME ...: mpi, mpi_says or mpi_fails of what follows, over that profile.
strict() {
    local call=$1 status
    export MULTILANE_STRICT_VERBS=$2 MULTILANE_STRICT_FABRIC
    MULTILANE_STRICT_FABRIC=$(mktemp) && rm "$MULTILANE_STRICT_FABRIC" || return 1
    shift 2
    LD_PRELOAD="$build/test/fake/libverbs_strict.so" "$call" "$@"
    status=$?
    rm -f "$MULTILANE_STRICT_FABRIC"
    unset MULTILANE_STRICT_VERBS MULTILANE_STRICT_FABRIC
    return $status
}

# The plan to a process of this node has a lane over verbs where the user asks for it alone.
# shellcheck disable=SC2086
strict_same_node() {
    local plan
    plan=$(mpirun_run 2 --mca pml multilane --mca btl self,$sm,verbs $lab_osc \
        --mca btl_verbs_same_node "$1" --mca pml_multilane_explain 1 -- ring 2>&1) || return 1
    printf '%s\n' "$plan"
    if [ "$1" = yes ]; then grep -q mlx5_0:1 <<<"$plan"; else ! grep -q mlx5_0:1 <<<"$plan"; fi
}

# No more than the user lets a port have.
# shellcheck disable=SC2086
strict_receives_most() {
    local output
    output=$(mpirun_run 2 --mca pml multilane $verbs $lab_osc --mca btl_verbs_receive_buffers 16 \
        --mca btl_verbs_receive_buffers_most 40 --mca btl_base_verbose 10 -- traffic --seeds 1 --batches 8 2>&1) ||
        { printf '%s\n' "$output"; return 1; }
    grep 'receive buffers' <<<"$output"
    [ "$(sed -n 's/.* \([0-9]*\) receive buffers, as few were left/\1/p' <<<"$output" | sort -n | tail -n 1)" = 40 ]
}

# Which ports are lanes, and what is said of the others.
# shellcheck disable=SC2086
verbs_strict_ports() {
    local lanes="--mca pml multilane $verbs $lab_osc"
    local tcp="--mca pml multilane --mca btl self,verbs,tcp --mca btl_tcp_if_include lo"
    # GIDs of other network namespaces come first, in a table that is long.
    strict mpi hns,hosts=2,ports=2,gids=512,foreign=200 verbs.strict.foreign-gids 2 $lanes -- ring
    # A partition that is elsewhere in each table.
    strict mpi mlx5,hosts=2,pkeys=8,pkey=0x8005,pkey_at=2 verbs.strict.pkey 2 $lanes -- ring
    strict mpi_says mlx5,hosts=2 verbs.strict.no-pkey 'it is no member of the partition 0x0007' \
        2 $tcp --mca btl_verbs_pkey 7 -- ring
    strict mpi_says hns,hosts=2,routed=1 verbs.strict.no-route \
        'no lane to process .*: no route of this node leads by that port' 2 $tcp -- ring
    strict mpi hns,hosts=2,routed=1 verbs.strict.any-subnet 2 $lanes --mca btl_verbs_pairing order -- ring
    strict mpi_says mlx5,hosts=2,ports=2,slow_port=sdr verbs.strict.slow-port \
        'mlx5_0:2: no lane to .*: its port has less than a quarter of the speed' 2 $lanes -- ring
    # Of four equal ports two lead to each process, others to other processes.
    strict mpi_says mlx5,hosts=2,devices=2,ports=2 verbs.strict.equal-ports \
        'over verbs:mlx5_0:2 verbs:mlx5_1:1' 4 $lanes --mca pml_multilane_explain 1 -- ring
    strict mpi_says mlx5,hosts=2,speed=xdr verbs.strict.unknown-speed \
        'its speed is unknown .* counts as 10000 Mbit/s' 2 $lanes -- ring
    # What the user says of quality of service is in each connection.
    strict mpi hns,hosts=2,sl=5,traffic_class=106 verbs.strict.service-level 2 $lanes --mca btl_verbs_service_level 5 \
        --mca btl_verbs_traffic_class 106 -- ring
    strict check mlx5,hosts=2 "${prefix}verbs.strict.receives-most" strict_receives_most
    # A driver that takes any inline size and gives none.
    strict mpi mlx5,hosts=2,inline_given=0 verbs.strict.no-inline 2 $lanes -- ring
    # A device that answers no reads: messages by get go another way.
    strict mpi mlx5,hosts=2,reads_in=0 verbs.strict.no-reads 2 $lanes \
        --mca pml_multilane_protocol rndv-get -- traffic --seeds 1 --batches 2
    # Inside a node shared memory has the messages, however fast the port: the plan has one lane.
    strict check mlx5 "${prefix}verbs.strict.same-node" strict_same_node auto
    strict check mlx5 "${prefix}verbs.strict.same-node-too" strict_same_node yes
}

# Something happens to a device or a port of one host while checked traffic runs: no byte is wrong,
# no rank waits for ever, and it was seen. strict_event NAME PROFILE BTLS PROTOCOL [REGEX]
strict_event() {
    strict mpi_says "${lab_profile:-mlx5},hosts=2,$2" "verbs.strict.$1" "${5:-the lane from .* is lost: }" 2 --mca pml multilane \
        --mca btl "$3" $lab_osc --mca pml_multilane_protocol "$4" \
        --mca pml_multilane_suspect_ms 100 --mca btl_verbs_receive_buffers 16 -- \
        "$build/test/lab/rails_mix" --seconds 2
}

# soon FILE TEXT: it is there within 10 s.
soon() {
    local round
    for ((round = 0; round < 100; round++)); do
        grep -q "$2" "$1" && return
        sleep 0.1
    done
    echo "\"$2\" was not said in 10 s"
    return 1
}

# A port goes down, and up again, and then carries all that the other one did. What it could not send
# meanwhile, greetings too, does not stop it.
# shellcheck disable=SC2086
strict_ports_in_turn() {
    local said=$build/ports-in-turn job event="$build/test/fake/strict_do $MULTILANE_STRICT_FABRIC"
    : >"$said"
    mpirun_run 2 --mca pml multilane $verbs $lab_osc --mca pml_multilane_suspect_ms 100 -- \
        "$build/test/lab/rails_mix" --seconds 8 --longest 65536 >"$said" 2>&1 &
    job=$!
    soon "$said" 'mix begins' && $event port_down 0 1 && soon "$said" 'is left out' && sleep 2 &&
        $event port_up 0 1 && soon "$said" 'is used again' && $event port_down 0 2
    wait $job && grep ', 0 wrong' "$said" && grep 'is used again' "$said" || { cat "$said"; false; }
}

# The only lane to a process flaps: it is connected anew, and what it had not delivered goes over it again. 0.4 s each time.
# shellcheck disable=SC2086
strict_only_lane_flaps() { # TIMES PROTOCOL
    local said=$build/only-lane-flaps.$2 job status i event="$build/test/fake/strict_do $MULTILANE_STRICT_FABRIC"
    : >"$said"
    mpirun_run 2 --mca pml multilane $verbs $lab_osc --mca mpi_yield_when_idle 1 --mca pml_multilane_suspect_ms 100 \
        --mca pml_multilane_protocol "$2" -- "$build/test/lab/rails_mix" --seconds $(($1 * 2 / 5 + 2)) --longest 300000 >"$said" 2>&1 &
    job=$!
    soon "$said" 'mix begins' && for ((i = 0; i < $1; i++)); do
        $event port_down 0 1 && sleep 0.06 && $event port_up 0 1 && sleep 0.3 || break
    done
    wait $job
    status=$?
    tail -n 4 "$said"
    echo "the connection broke $(grep -c 'is lost:' "$said") times at an end"
    [ $status = 0 ] && grep ', 0 wrong' "$said" && [ "$(grep -c 'is lost:' "$said")" -ge $(($1 / 2)) ]
}

verbs_strict_fails() {
    local protocol cuts=at=50:port_down:0:1 round
    for protocol in rndv-put ${MULTILANE_LONG:+rndv-get rndv-am}; do
        strict_event cut-beside-sock.$protocol at=60:port_down:0:1,retry_ms=50 self,verbs,sock $protocol
        strict_event dead-beside-sock.$protocol at=60:fatal:0:1,retry_ms=50 self,verbs,sock $protocol
    done
    strict_event dead at=100:fatal:0:1,devices=2,retry_ms=50 self,verbs auto
    strict_event lid at=100:lid:0:1,ports=2,retry_ms=50 self,verbs auto
    strict_event gid at=100:gid:0:1,roce=1,ports=2,retry_ms=50 self,verbs auto
    # Greetings too go by the partition's new place.
    strict_event pkey-moved at=100:pkey:0:1,ports=2,pkeys=8,pkey=0x8005,pkey_at=2,retry_ms=50 self,verbs auto \
        'verbs:mlx5_0:1 .* is used again'
    # Its MTU has become smaller: connections are made with that.
    lab_profile=hns strict_event mtu at=50:mtu:0:1,at=60:port_down:0:1,at=90:port_up:0:1,ports=2,retry_ms=50 self,verbs auto \
        'verbs:hns_0:1 .* is used again'
    strict_event late-cut at=100:port_down:0:1,ports=2,retry_ms=50,delay_ms=300 self,verbs rndv-put
    for protocol in auto rndv-put ${MULTILANE_LONG:+rndv-get rndv-am eager-zcopy}; do
        strict check mlx5,hosts=2,retry_ms=20 "${prefix}verbs.strict.only-lane.$protocol" strict_only_lane_flaps \
            $((${MULTILANE_LONG:+90} + 10)) $protocol
    done
    strict mpi_fails mlx5,hosts=2,retry_ms=20,at=60:port_down:0:1 verbs.strict.only-lane.lost \
        'counts as failed: no lane answered for 2 s' 2 --mca pml multilane --mca btl self,verbs $lab_osc \
        --mca pml_multilane_lost_s 2 -- "$build/test/lab/rails_mix" --seconds 20
    strict mpi_fails mlx5,hosts=2,retry_ms=20,at=60:fatal:0:1 verbs.strict.only-lane.dead \
        'counts as failed: no lane is left' 2 --mca pml multilane --mca btl self,verbs $lab_osc -- \
        "$build/test/lab/rails_mix" --seconds 20
    # Messages that are not the PML's, as of osc/rdma, by the port that goes down: they go by the other one.
    strict mpi mlx5,hosts=2,ports=2,retry_ms=50,at=500:port_down:0:1 verbs.strict.others 2 --mca pml multilane \
        --mca btl self,verbs --mca mpi_yield_when_idle 1 $lab_osc -- "$build/test/lab/others" 1
    # Each break may take buffers of 16 along, if the pair is destroyed too early.
    for round in 100 150 200; do
        cuts=$cuts,at=$((round - 25)):port_up:0:1,at=$round:port_down:0:1
    done
    strict check mlx5,hosts=2,ports=2,retry_ms=50,datagrams=break "${prefix}verbs.strict.ports-in-turn" \
        strict_ports_in_turn
    strict_event buffers "$cuts,at=225:port_up:0:1,ports=2,retry_ms=20" self,verbs auto
}

# Each of RANKS processes, half of them on each of two hosts, sends to each other one at once, and the
# devices have fewer queue pairs: the other messages go over sock, and who waited is told at once.
verbs_strict_few_pairs() {
    strict mpi_says "mlx5,hosts=2,max_qp=$1" "verbs.strict.max-qp.$2-ranks" \
        "no queue pair for process .* can be made beside [0-9]+ others: .* The device has $1 " "$2" \
        --mca pml multilane --mca btl self,verbs,sock --mca pml_multilane_suspect_ms 200000 $lab_osc -- "$build/test/lab/all_to_all"
}

# What happens to a port is looked at while the process computes by the progress thread alone.
# shellcheck disable=SC2086
verbs_strict_computing() {
    local options="--mca pml multilane $verbs $lab_osc --mca btl_base_verbose 10 --mca mpi_yield_when_idle 1"
    strict mpi mlx5,hosts=2,retry_ms=10000 verbs.strict.event-computing 2 $options -- \
        "$build/test/lab/verbs_event" unseen
    strict mpi mlx5,hosts=2,retry_ms=10000 verbs.strict.event-thread 2 $options \
        --mca pml_multilane_progress_thread 1 -- "$build/test/lab/verbs_event" seen
}

# shellcheck disable=SC2086
verbs_strict() {
    local profile lanes="--mca pml multilane $verbs $lab_osc"
    local other="--mca pml multilane --mca btl self,$sm,verbs"
    for profile in mlx5 hns bnxt irdma; do
        lab_profile=$profile side='' profile_lab
    done
    strict mpi_says e810,hosts=2 verbs.strict.e810 \
        'e810_0:1: it has no shared receive queue.*; sock uses its interface' 2 $other -- ring
    strict mpi_says mlx5,hosts=2,transport=iwarp verbs.strict.iwarp \
        'mlx5_0: it speaks iWARP.*; sock uses its interface' 2 $other -- ring
    strict mpi_says mlx5,hosts=2,transport=other verbs.strict.efa \
        'mlx5_0: it speaks neither InfiniBand nor RoCE.*; use libfabric' 2 $other -- ring
    verbs_strict_few_pairs 12 8
    [ -z "$strict_all" ] || verbs_strict_few_pairs 256 64
    verbs_strict_ports
    verbs_strict_computing
    verbs_strict_fails
    strict mpi mlx5,hosts=2,delay_ms=20 verbs.strict.late-writes 2 $lanes -- \
        "$build/test/lab/rails_mix" --seconds 1
}

# test/lab/real over the stand-in, which its report says, with a port that goes down: 8 s. Without a
# device it names what to do.
real_command() {
    local report=$build/real-report.txt
    "$top/test/lab/real" --stand-in --quick --limit 60 --build "$build" --report "$report" || {
        cat "$report"
        return 1
    }
    grep -q 'THE DEVICE IS A STAND-IN' "$report" && grep -q '^steps: 8 passed, 0 failed, 1 not shown' "$report" &&
        grep -q '^passed: traffic goes on over another lane' "$report"
}
real_command_alone() {
    ! "$top/test/lab/real" --build "$build" --report "$build/real-alone.txt" || return 1
    grep 'problem .*no RDMA device .*rdma link add' "$build/real-alone.txt" &&
        grep 'failed: each host has an active port' "$build/real-alone.txt" || return 1
    ! "$top/test/lab/real" --hosts a 2>"$build/real-said" && grep 'is not A,B' "$build/real-said" &&
        ! "$top/test/lab/real" --cut no-such 2>"$build/real-said" && grep 'no such interface' "$build/real-said"
}

verbs_real() {
    check "${prefix}verbs.real-command" real_command
    [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] ||
        check "${prefix}verbs.real-command-alone" real_command_alone
}

# --- in the lab ---------------------------------------------------------------

# Without --long each thing that only the machine's kernel and wires show: what one lane and two carry, what
# the kernel refuses, packets that are lost, a rail that dies. The strict stand-in shows the rest.
lab_short='verbs.@(ring.2|lane|away|conform.onesided.multilane|traffic.@(auto|rndv-get|rndv-put)|leaves|memory|
receives-grow|in-place.@(two-rails.eager-zcopy|no-memory)|direct.@(put|refused|unflushed)|
lab.@(memlock|no-permission|port-down|routes|unlike|loss|failover.@(cut|only|device-cut)))'
lab_short=${lab_short//[[:space:]]/}

# False, and said so, for what only --long runs, and once the time that the machine has for this is over; what
# is missing is run where processors are faster, or by MULTILANE_LONG.
lab_has_time() {
    local up
    read -r up _ </proc/uptime
    # shellcheck disable=SC2053
    if [ -n "${MULTILANE_LONG:-}" ]; then
        return
    elif [ -z "$only" ] && [[ $1 != $lab_short ]]; then
        skip "$prefix$1" "the virtual machine is slow: with --long"
        return 1
    fi
    [ "${up%.*}" -lt "${MULTILANE_RDMA_UNTIL_S:-1000000}" ] && return
    skip "$prefix$1" "the virtual machine's $MULTILANE_RDMA_UNTIL_S s are over; --long runs all"
    return 1
}

# lab NAME FUNCTION ...: mpi_says or another of mpi's kind with what follows, over RDMA between two
# hosts: in the virtual machine or, with $lab_profile, over the strict stand-in of that profile, which
# needs no time of the machine, nor $side to tell the hosts apart. $lab_rails are those to use.
lab() {
    local name=$1 call=$2
    shift 2
    if [ -n "${lab_profile:-}" ]; then
        profile_wants "$name" || return
        strict "$call" "$lab_profile,hosts=2,ports=$(wc -w <<<"${LAB_RAILS:-0 1}")" \
            "verbs.strict.$lab_profile.${name#verbs.}" "$@"
    else
        lab_has_time "$name" && "$call" "$name" "$@"
    fi
}

# lab_mpi NAME RANKS PML PROGRAM...: over verbs alone.
lab_mpi() {
    local name=$1 ranks=$2 pml=$3 program=$4
    shift 4
    # shellcheck disable=SC2086
    lab "$name" mpi "$ranks" --mca pml "$pml" $verbs $lab_osc ${lab_more:-} -- \
        $side "$build/test/mpi/$program" "$@"
}

# 4.1's osc/ucx takes windows for which it then finds no device.
if [ "$series" = 4.1 ]; then lab_osc="--mca osc ^ucx"; else lab_osc=; fi

lab_conformance() {
    local chapter program
    for chapter in $1; do
        case $series.$chapter in
        4.1.partitioned | 4.1.session)
            [ -n "${lab_profile:-}" ] ||
                skip "${prefix}verbs.conform.$chapter.$2" "MPI 4, which Open MPI 4.1 is not"
            continue
            ;;
        esac
        case $chapter in thread | session) program=$chapter ;; *) program="conform $chapter" ;; esac
        # shellcheck disable=SC2086
        lab_mpi "verbs.conform.$chapter.$2" 2 "$2" $program --seconds $((limit_s / 2))
    done
}

lab_traffic() {
    local protocol
    for protocol in $1; do
        lab_more="--mca pml_multilane_protocol $protocol" \
            lab_mpi "verbs.traffic.$protocol" 2 multilane traffic --seeds 1 --batches 8
    done
}

# What an administrator may have forgotten: verbs_without NAME REGEX [mpirun's arguments] -- PROGRAM...
# Both ranks are on one node, where another lane has the messages unless it is asked for.
verbs_without() {
    local name=$1 regex=$2
    shift 2
    lab_has_time "$name" || return
    # shellcheck disable=SC2086
    mpi_says "$name" "$regex" 2 --mca pml multilane --mca btl self,$sm,verbs \
        --mca btl_verbs_same_node yes "$@"
}

# As a user who may not open the devices. That user may not be able to enter the folder that we are
# built in (root's home): mpirun, which finds no component at all where it cannot read one folder of
# them, then knows no option. So what the job needs is copied to a folder of the user's own.
lab_as_nobody() {
    local dir
    dir=$(mktemp -d) && cp -r "$component_dir" "$dir/components" &&
        cp "$build/test/mpi/ring" "$dir/" && chown -R 65534:65534 "$dir" || return 1
    chmod 600 /dev/infiniband/uverbs*
    (
        local mpirun=$dir/mpirun
        cd "$dir" || exit 1
        export OMPI_MCA_mca_base_component_path=$dir/components:SYS_DEFAULT:USER_DEFAULT
        printf '#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=%s TMPDIR=%s "%s" "$@"\n' \
            "$dir" "$dir" "$1" >"$mpirun" && chmod 755 "$mpirun"
        output_of 0 'rail.*: this user may not open it .*/dev/infiniband' 2 --mca pml multilane \
            --mca btl "self,$sm,verbs" -- "$dir/ring"
    )
    local status=$?
    chmod 666 /dev/infiniband/uverbs*
    rm -rf "$dir"
    return $status
}

lab_refuses() {
    local ring=$build/test/mpi/ring
    verbs_without verbs.lab.filter 'btl_verbs_devices is "mlx5_9", which matches none of rail' \
        --mca btl_verbs_devices mlx5_9 -- ring
    verbs_without verbs.lab.no-gid 'btl_verbs_gid_index is 77, where its table has no address' \
        --mca btl_verbs_gid_index 77 -- ring
    # Root may lock what it likes.
    verbs_without verbs.lab.memlock 'cannot be registered: this process may lock [0-9]+ bytes \(ulimit -l\)' \
        -- "$(command -v setpriv)" --bounding-set -ipc_lock --inh-caps -ipc_lock sh -c 'ulimit -l 64; exec "$0"' "$ring"
    lab_has_time verbs.lab.no-permission &&
        check "${prefix}verbs.lab.no-permission" lab_as_nobody "$mpirun"
    "$rail" cut 1
    verbs_without verbs.lab.port-down 'rail1a:1: its state is "down"' --mca btl_base_verbose 10 -- ring
    LAB_RAILS=0 lab_mpi verbs.lab.one-rail 2 multilane ring
    "$rail" repair 1
}

# Every rail is cut once traffic flows: no process waits for ever.
lab_cut() {
    local packets=/sys/class/infiniband/rail0a/ports/1/hw_counters/sent_pkts before round
    lab_has_time verbs.lab.all-cut || return
    before=$(cat $packets)
    (
        for ((round = 0; round < 600; round++)); do
            [ "$(cat $packets)" -gt $((before + 100)) ] && break
            sleep 0.2
        done
        "$rail" cut 0 1
    ) &
    # shellcheck disable=SC2086
    mpi_fails verbs.lab.all-cut 'the lane from process .* is lost: ' 2 --mca pml multilane $verbs -- \
        "$side" "$build/test/lab/rails_mix" --seconds 200
    wait
    "$rail" repair 0 1
    lab_mpi verbs.lab.repaired 2 multilane ring
}

# lab_rail_dies SCENARIO RUNS [OPTIONS]: so many runs with MULTILANE_LONG, else one with the options.
lab_rail_dies() {
    local scenario=$1 options="--runs 1 ${3:-}"
    [ -z "${MULTILANE_LONG:-}" ] || options="--runs $2"
    lab_has_time "verbs.lab.failover.$scenario" || return
    # shellcheck disable=SC2086
    check "${prefix}verbs.lab.failover.$scenario" env MULTILANE_IN_LAB=1 \
        "$top/test/lab/rdma-failover" $options "$build" "$scenario"
}

# One of two rails is cut, or cut and repaired: what is left carries on, and nothing is wrong. With
# rndv-put seed 2 has shown keys that came by another lane than their own, else seed 18
# device memory that the dead rail could not flush. Messages of an only rail wait until it is repaired.
lab_failover() {
    lab_rail_dies cut 50 "--protocol rndv-put --seed 2"
    lab_rail_dies repair 50
    lab_rail_dies only 25
    lab_rail_dies device-cut 25 "--seed 18"
    [ -z "${MULTILANE_LONG:-}" ] || lab_rail_dies device-repair 25
}

# lab_in_place NAME PROTOCOL RAILS COPIES [mpirun's arguments]: messages of 64 KiB are sent from the
# user's memory, or, with the word "copies", where the plan finds a registration too dear, copied.
# Over two rails what is sent is kept until it is there, in place as well.
lab_in_place() {
    local name=verbs.in-place.$1 protocol=$2 rails=$3 copies=$4
    shift 4
    # shellcheck disable=SC2086
    LAB_RAILS=$rails lab "$name" mpi_says 'in_place: all holds' 2 --mca pml multilane $verbs $lab_osc \
        --mca pml_multilane_protocol "$protocol" "$@" -- \
        $side "$build/test/mpi/in_place" verbs $copies
}

lab_zero_copy() {
    lab_in_place eager-zcopy eager-zcopy 0 ""
    lab_in_place rndv-am rndv-am 0 ""
    lab_in_place two-rails.eager-zcopy eager-zcopy "0 1" ""
    lab_in_place two-rails.rndv-am rndv-am "0 1" ""
    lab_in_place dear-registration eager-zcopy 0 copies --mca btl_verbs_lane_reg_cost 1
}

lab_no_memory() {
    # shellcheck disable=SC2086
    lab_has_time verbs.in-place.no-memory &&
        LAB_RAILS=0 mpi_says verbs.in-place.no-memory \
            'memory that cannot be registered: [1-9][0-9]* bytes copied, 0 in place' 2 \
            --mca pml multilane $verbs $lab_osc --mca pml_multilane_protocol eager-zcopy -- \
            "$(command -v setpriv)" --bounding-set -ipc_lock --inh-caps -ipc_lock \
            "$side" "$build/test/mpi/in_place" verbs
}

# Puts, where nothing is kept for failover.
lab_puts() {
    LAB_RAILS=0 lab_more="--mca pml_multilane_protocol rndv-put --mca pml_multilane_failover 0" \
        lab_mpi verbs.traffic.rndv-put 2 multilane traffic --seeds 1 --batches 8
}

# Device memory that the lanes read and write themselves, against two stand-ins: for libcuda, whose
# memory the processor cannot touch, and for an RDMA device that registers it, where soft RoCE then
# reads and writes it. Where one of them refuses, the messages pass through memory of the host.
# lab_direct NAME REGEX PROTOCOL "libcuda's settings" "the device's" CHAPTER [mpirun's arguments]
lab_direct() {
    local name=verbs.direct.$1 regex=$2 protocol=$3 cuda=$4 device=$5 chapter=$6
    shift 6
    lab_has_time "$name" || return
    # shellcheck disable=SC2086
    mpi_says "$name" "$regex" 2 --mca pml multilane $verbs --mca pml_multilane_protocol "$protocol" \
        -x LD_LIBRARY_PATH="$build/test/fake" -x LD_PRELOAD="$build/test/fake/libverbs_dmabuf.so" \
        -x MULTILANE_FAKE_CUDA="$cuda" -x MULTILANE_FAKE_VERBS="$device" "$@" -- \
        "$side" "$build/test/mpi/device" "$chapter"
}

lab_device_memory() {
    lab_direct put 'messages went directly' rndv-put "" "" direct
    lab_direct get 'messages went directly' rndv-get "" "" direct
    lab_direct many '' rndv-put "" "" many
    lab_direct refused 'some device memory is not registered: .*CUDA_ERROR_NOT_SUPPORTED' rndv-put \
        dmabuf-fails "" direct
    lab_direct off 'no message went directly' rndv-get "" "" direct --mca btl_verbs_dmabuf none
    lab_direct flushed-by-driver 'the driver flushed' rndv-put "" flush-fails unflushed
    lab_direct ordered 'messages went directly' rndv-put orders=200 flush-fails direct
    lab_direct unflushed 'may not have reached it: .*Unreachable.*CUDA_ERROR_NOT_SUPPORTED' rndv-put \
        no-flush flush-fails unflushed
}

# One packet of a hundred is lost: what is sent again arrives once. The packets that the rails have
# dropped are counted, so that the test does not pass without them.
lab_loss() {
    local dropped
    lab_has_time verbs.lab.loss || return
    "$rail" lose 1 0 1
    lab_more="--mca btl_verbs_timeout 14" \
        lab_mpi verbs.lab.loss 2 multilane traffic --seeds 1 --batches 8
    dropped=$(tc -s qdisc show | sed -n 's/.*(dropped \([0-9]*\).*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
    check "${prefix}verbs.lab.loss-dropped" test "$dropped" -gt 0
    "$rail" lose 0 0 1
}

# Ports that lead to none of the peer's: why is said, and the job goes over another lane.
# lab_apart NAME REASON [mpirun's arguments]
lab_apart() {
    local name=$1 reason=$2
    shift 2
    # shellcheck disable=SC2016
    verbs_without "verbs.lab.$name" "rail[01]a:1: no lane to process .*: $reason" \
        --mca btl_base_verbose 10 "$@" -- "$(command -v sh)" -c \
        'OMPI_MCA_btl_verbs_devices=rail${OMPI_COMM_WORLD_RANK}a exec "$0"' "$build/test/mpi/ring"
}

# Processes whose longest messages differ do not use these lanes, and are told so.
lab_unlike() {
    # shellcheck disable=SC2016
    verbs_without verbs.lab.unlike 'has a btl_verbs_max_send_size of (16384|32768) and this one of' \
        -- "$(command -v sh)" -c \
        'OMPI_MCA_btl_verbs_max_send_size=$((16384 << OMPI_COMM_WORLD_RANK)) exec "$0" --seeds 1 --batches 4' \
        "$build/test/mpi/traffic"
}

# What a finished call has sent has left, whether or not a queue pair was there and its queue had
# room (see leaves.sh). The processors of this machine are slow, and so are its bounds.
lab_leaves() {
    lab_mpi verbs.leaves 4 multilane leaves --compute 8 --bound 2 --tries 2 bcast send:8 send:1000 \
        send:16k send:100k isend-wait:1m recv ssend --late 2 --flood 500 send isend-wait:100k
}

# Nothing gets through for a while, between ports that are up: who waits is told for what.
lab_unanswered() {
    local said=$build/unanswered round
    lab_has_time verbs.lab.unanswered || return
    : >"$said"
    "$rail" lose 100 0 1
    (
        for ((round = 0; round < 200; round++)); do
            grep -q 'has not answered' "$said" && break
            sleep 0.5
        done
        "$rail" lose 0 0 1
    ) &
    # shellcheck disable=SC2086,SC2016
    mpi verbs.lab.unanswered 2 --mca pml multilane $verbs $lab_osc -- \
        "$side" sh -c 'exec "$0" 2>>"$1"' "$build/test/mpi/ring" "$said"
    wait
    check "${prefix}verbs.lab.unanswered-said" \
        grep 'has not answered rail.* for 10 s: it makes no MPI calls, or' "$said"
}

lab_receives_grow() {
    # shellcheck disable=SC2086
    lab verbs.receives-grow mpi_says "$receives_grow" 2 --mca pml multilane $verbs $lab_osc \
        --mca btl_verbs_receive_buffers 16 --mca btl_base_verbose 10 -- \
        $side "$build/test/mpi/traffic" --seeds 1 --batches 8
}

lab_one_lane() {
    lab_more="--mca pml_multilane_eager_lanes 1 --mca pml_multilane_rndv_lanes 1" \
        lab_mpi verbs.lane 2 multilane ../lab/verbs_lane
}

verbs_lab() {
    limit_s=240
    lab_mpi verbs.ring.2 2 multilane ring
    lab_one_lane
    # By rndv-put, which the plan takes of a sender that waits, it stays until its sender calls MPI again.
    lab_mpi verbs.away 2 multilane away calls 40 1048576
    lab_conformance "point onesided" multilane
    if [ "$MULTILANE_RDMA_LAB" != all ]; then
        lab_traffic rndv-get # memory that comes and goes is registered under another C library
        return
    fi
    lab_zero_copy
    lab_no_memory
    lab_leaves
    lab_refuses
    lab_apart subnets 'the two ports are in different subnets' --mca btl_verbs_pairing subnet
    lab_apart routes 'no route of this node leads by that port'
    lab_unlike
    lab_unanswered
    lab_cut
    lab_failover
    lab_loss
    lab_receives_grow
    # A peer that is slow to answer is asked by each lane, which makes one more connection.
    lab_more="--mca pml_multilane_suspect_ms 60000" \
        lab_mpi verbs.memory 6 multilane ../lab/verbs_memory
    lab_traffic "auto rndv-get"
    lab_puts
    lab_device_memory
    lab_conformance "onesided ${MULTILANE_LONG:+point request}" ob1
    lab_mpi verbs.ring.4 4 multilane ring # some of them share an end
    lab_conformance "request datatype thread communicator error partitioned session" multilane
    lab_traffic "eager-short eager-copy eager-zcopy rndv-am"
}

# --- the lab's tests over each profile ------------------------------------------

# With $strict_all each test runs over each profile. Else the messages of "auto" do, and
# where $whole is set most others run over one profile each, in turn.
profile_wants() {
    profile_turn=$((profile_turn + 1))
    [ -n "$strict_all" ] || case $1 in
    verbs.traffic.auto) true ;;
    verbs.leaves | *.thread.* | cut | repair) false ;; # they take long; strict_event is of mlx5 too
    *) [ -n "$whole" ] && [ $(((profile_turn + profile_number) % 4)) = 0 ] ;;
    esac
}

# What the lab runs and does not need its kernel or its wires for: memory of a device (dmabuf), lost
# packets, what the kernel counts as pinned, permissions, routes. Cuts and repairs are events here.
profile_lab() {
    local profile_turn=0 event
    profile_number=$((${profile_number:-0} + 1))
    lab_mpi verbs.ring.2 2 multilane ring
    lab_mpi verbs.ring.4 4 multilane ring
    LAB_RAILS=0 lab_mpi verbs.one-rail 2 multilane ring
    lab_one_lane
    lab_conformance "point onesided request datatype thread communicator error partitioned session" multilane
    lab_conformance "onesided point request" ob1
    lab_zero_copy
    lab_leaves
    lab_receives_grow
    lab_traffic "auto rndv-get eager-short eager-copy eager-zcopy rndv-am"
    lab_puts
    for event in cut=60:port_down:0:1 repair=60:port_down:0:1,at=90:port_up:0:1; do
        profile_wants "${event%%=*}" &&
            strict_event "$lab_profile.${event%%=*}" "ports=2,retry_ms=50,at=${event#*=}" self,verbs auto
    done
}

if [ -n "${MULTILANE_RDMA_LAB:-}" ]; then
    verbs_lab
elif [ -f "$component_dir/mca_btl_verbs.so" ]; then
    verbs_refuses
    [ -n "$sanitizer" ] || { verbs_strict; verbs_real; }
else
    skip "${prefix}verbs" "btl/verbs was not built"
fi
