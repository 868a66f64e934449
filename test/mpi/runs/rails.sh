# SPDX-License-Identifier: BSD-3-Clause
# Alone: it measures rails, and then runs two tests beside each other itself.
# Two and three hosts with one, two and three rails of different speeds: order and contents over Open MPI's tcp,
# which carries as long as nothing breaks, and over sock, which goes on where rails are cut.
# Rails are cut in the same way under each series; what it changes is errors that return, and lanes of two kinds.
elsewhere_only 'series=rails.@(are-used|ring.2|mix.two-local-two-far|failover.cut|failover.return|sock.@(one-is-cut|leads-nowhere|round-trip|resets)|across.in-turn|windows.*|whole-job)'
build_root=$build packages_need iproute2 mount >"$build/rails-packages.log" 2>&1
rails_reason=$("$top/test/lab/rails" --check 2>&1)
if [ -n "$rails_reason" ]; then
    skip "${prefix}rails" "$rails_reason"
    return 0
fi
if [ -n "${MULTILANE_LONG:-}" ]; then rails_seconds=30; else rails_seconds=2; fi

# rails_mpi NAME RANKS RATES [lab's options --] [mpirun's arguments] -- PROGRAM...
rails_mpi() {
    local name=$1 ranks=$2 rates=$3 lab=()
    shift 3
    if [[ ${1:-} == --at || ${1:-} == --begin || ${1:-} == --hosts || ${1:-} == --shared || ${1:-} == --delay ]]; then
        while [ "$1" != -- ]; do lab+=("$1"); shift; done
        shift
    fi
    beside check "$prefix$name" rails_run "$ranks" "$rates" "${lab[@]}" -- "$@"
}

# The lab stands in for mpirun: what it puts before the ranks is an mpirun inside. Hosts have places
# for all ranks; where more were allowed, 5.0 and later would put all on the first one.
rails_run() {
    local ranks=$1 rates=$2 lab=() inside=$mpirun oversubscribe=()
    shift 2
    while [ "$1" != -- ]; do lab+=("$1"); shift; done
    shift
    local mpirun=$build/rails-mpirun-$BASHPID status
    printf '#!/bin/sh\nexec "%s" --rails %s %s -- "%s" "$@"\n' "$top/test/lab/rails" "$rates" \
        "${lab[*]@Q}" "$inside" >"$mpirun" && chmod +x "$mpirun" || return 1
    mpirun_run "$ranks" "$@"
    status=$?
    rm -f "$mpirun"
    return $status
}

tcp="--mca pml multilane --mca btl self,tcp"
both="--mca pml multilane --mca btl self,$sm,tcp"
sock="--mca pml multilane --mca btl self,sock"
one_each="--host a:1,b:1" two_each="--host a:2,b:2"
mix="$build/test/lab/rails_mix --seconds $rails_seconds"

# shellcheck disable=SC2086
rails_are_used() {
    local output status
    output=$(rails_run 2 800,800 -- $one_each $tcp --mca pml_multilane_explain 1 -- ring 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q 'rail0 .*[+] .*rail1\|rail1 .*[+] .*rail0' <<<"$output"
}

# Nothing is known of a network of 4 ms but what the kernel says of its connections.
# shellcheck disable=SC2086
rails_round_trip() {
    local output
    output=$(rails_run 2 1000 --delay 4 -- $one_each $sock --mca pml_multilane_explain 1 -- ring 2>&1) || {
        printf '%s\n' "$output"
        return 1
    }
    printf '%s\n' "$output"
    grep -E "sock:rail0 +send +inf +(3|4|5)(\.[0-9]+)?ms .*latency measured" <<<"$output"
}

# A job recorded over one rail, replayed over two, takes about what it takes over two; and the other way round. 5 s.
# shellcheck disable=SC2086
rails_replay() {
    local folder=$build/rails.record plan=$build/multilane-plan rates=400 rail status=0
    rm -rf "$folder" && mkdir "$folder" "$folder/0" "$folder/1" || return 1
    for rail in 0 1; do
        rails_run 2 $rates -- $one_each $tcp --mca pml_multilane_record "$folder/$rail" -- steps 12 4000000 2000 || return 1
        rates=400,400
    done
    for rail in 0 1; do
        printf '[lane rail%d]\nlatency = 20e-6\noverhead = 10e-6\nbandwidth = 47e6\ncan = send\n' $rail >>"$folder/lanes"
        python3 -c 'import json, sys
ran, replayed = (json.load(open(name)) for name in sys.argv[1:])
print("run", ran["recorded_s"], "replayed", replayed["takes_s"])
assert abs(replayed["takes_s"] / ran["recorded_s"] - 1) < 0.25' \
            <("$plan" --json --replay "$folder/$rail" "$folder/lanes") \
            <("$plan" --json --replay "$folder/$((1 - rail))" "$folder/lanes") || status=1
    done
    return $status
}

# Where a plan over several lanes switches, by hand: every lane 100 MB/s, 20 us, overhead 10 us. Eager 10 us
# a lane; rendezvous 0.99 * (80 + 20 for the handshake + 10 a lane); 1 % of the time a byte: with two lanes
# (118.8 - 20) us / 50 fs, with three (128.7 - 30) us / 33.3 fs. With a lane of 10 us and 50 MB/s for eager
# messages and another for the rest: 0.99 * (80 + 30) - 10 us / (20 - 9.9) ns.
# shellcheck disable=SC2086
rails_switch() { # RATES BYTES [MORE]
    local output
    output=$(rails_run 2 "$1" -- $one_each $tcp --mca pml_multilane_explain 1 --mca pml_multilane_profile none \
        --mca pml_multilane_lane_attr "tcp:latency=20e-6,bandwidth=1e8,overhead=10e-6${3:-}" -- ring 2>&1) || {
        printf '%s\n' "$output"
        return 1
    }
    printf '%s\n' "$output"
    grep -E "^ +$2 +inf +rndv-am +equation" <<<"$output"
}

# What the rails carry is known: 1448 of 1538 bytes of their rate are data. The first host's rank may not sit
# on the second one's processor. Beside a little else, three tries.
# shellcheck disable=SC2086
rails_calibrate_once() {
    local profile=$build/rails-profile
    rm -f "$profile"
    rails_run 2 200,400 -- $one_each --bind-to none $tcp -- "$build/inst/bin/multilane-calibrate" --quick \
        --output "$profile" && python3 - "$profile" <<'END'
import re, sys
found = dict(re.findall(r"^\[lane (tcp:rail\d)@host\]$(?:.*?)^send_bandwidth = (\S+)$", open(sys.argv[1]).read(), re.S | re.M))
carry = {"tcp:rail0": 200e6 / 8 * 1448 / 1538, "tcp:rail1": 400e6 / 8 * 1448 / 1538}
print(found, carry)
sys.exit(set(found) != set(carry) or any(abs(float(found[name]) / carry[name] - 1) > 0.15 for name in carry))
END
}
rails_calibrate() {
    rails_calibrate_once || rails_calibrate_once || rails_calibrate_once
}

# A rail that slows to a tenth, or loses one packet in a hundred: it is named within 10 s with the number that
# changed, by either end, and the job has what the good one gives. No sentence before, nor of the good one. 35 s
# each, of which 12 make a history; not in a short run, and only one without --long. One connection a rail: its links say that they carry more.
# shellcheck disable=SC2086
rails_worse() { # EVENT REGEX
    local output
    output=$(rails_run 2 300,300 --begin "window 4000000" --at "12:$1" -- $one_each --bind-to none $sock \
        --mca btl_sock_links 1 --mca pml_multilane_explain 1 -- "$build/test/bench/rails_measure" \
        $(printf 'window:4000000:4 %.0s' {1..23}) 2>&1) || {
        printf '%s\n' "$output"
        return 1
    }
    printf '%s\n' "$output"
    grep -Eq "  sock:rail1 to rank 1 (is kept in reserve|has become worse): it (carries|sends)" <<<"$output" || return 1
    awk -v event=" (slow|lose) rail 1" -v sentence="lane sock:rail1 .2 of 2. to rank [01] .* has become worse, $2" '
        $0 ~ event { windows = 0 }
        /^window/ { windows++; last = $3 }
        /multilane: lane .* has become worse/ { said++; good += $0 ~ sentence && windows <= 10 }
        END { exit !(said > 0 && good == said && last > 30e6) }' <<<"$output"
}

rails_runs() {
    local name
    check "${prefix}rails.are-used" rails_are_used
    if awk -v processors="$(nproc)" '{ exit !($1 > 2 * processors) }' /proc/loadavg; then
        for name in calibrate worse.slow worse.loses; do
            skip "${prefix}rails.$name" "something else runs: the load is $(cut -d " " -f 1 /proc/loadavg)"
        done
    else
        check "${prefix}rails.calibrate" rails_calibrate
        check "${prefix}rails.worse.slow" rails_worse slow:1:30 'and is kept in reserve: it carries [3-5]'
        if [ -n "$MULTILANE_LONG$only" ]; then
            check "${prefix}rails.worse.loses" rails_worse lose:1:1 'and is used .*: it sends (0.[3-9]|[1-2].)'
        else
            skip "${prefix}rails.worse.loses" "only with --long"
        fi
    fi
    # From here on nothing is measured, and two run beside each other.
    # Their ranks share processors that mpirun thinks their own.
    export OMPI_MCA_mpi_yield_when_idle=1
    rails_mpi rails.ring.2 4 800,800 $two_each $tcp -- ring
    wait # two such jobs, whose eight ranks only yield on two processors, may take minutes of each other
    beside check "${prefix}rails.switch.2" rails_switch 800,800 1976000
    beside check "${prefix}rails.switch.3" rails_switch 400,400,400 2961000
    beside check "${prefix}rails.switch.uses" rails_switch 800,800 9793 \
        ';tcp:rail0:use=eager,bandwidth=5e7;tcp:rail1:use=rndv'
    rails_mpi rails.mix.2-unequal 2 100,1200 $one_each $tcp -- $mix
    rails_mpi rails.mix.two-local-two-far 4 400,800 $two_each $both -- $mix --longest 2000000
    wait
    rails_mpi rails.mix.threads 2 400,800 $one_each $tcp -- $mix --threads 3 --longest 1000000
    rails_mpi rails.ring.3-unequal 4 200,400,800 $two_each $tcp -- ring
    rails_mpi rails.mix.1 2 800 $one_each $tcp -- $mix --longest 1000000
    rails_mpi rails.mix.3-unequal 4 200,400,800 $two_each $tcp -- $mix --longest 2000000
    rails_mpi rails.datatype.2-unequal 2 400,1200 $one_each $tcp -- conform datatype --seconds 60
    rails_mpi rails.mix.local-with-sock 2 400,800 --host a:2 --mca pml multilane --mca btl "self,$sm,sock" -- $mix
    rails_mpi rails.mix.3-hosts 3 400,800 --hosts 3 -- --host a:1,b:1,c:1 $both -- $mix --longest 2000000
    rails_mpi rails.mix.rail-slows 2 800,800 --begin 'mix begins' --at 0.5:slow:1:80 --at 1.2:slow:1:800 \
        -- $one_each $tcp -- $mix --longest 4000000
}
rails_runs

# Rails that die, and what is left carries on; 100 runs: test/lab/rails-failover --runs 100.
rails_failover() { # RUNS SCENARIO...
    "$top/test/lab/rails-failover" --build "$build" --runs "$@" ${MULTILANE_LONG:+--seconds 6}
}
if [ -n "${MULTILANE_LONG:-}" ]; then rails_times=10; else rails_times=1; fi
beside check "${prefix}rails.failover.cut" rails_failover $rails_times cut
# Where errors are to be returned both ranks go on. Without mpirun_run: a rank for each host, and no
# more than there are places.
# shellcheck disable=SC2086
rails_return() { # RAILS WHAT [lost's argument]
    timeout --kill-after=10 "$limit_s" "$top/test/lab/rails" --rails "$1" --begin 'talk begins' \
        --at "0.5:$2:all" -- "$mpirun" -n 2 $one_each $sock --mca pml_multilane_lost_s 3 --mca btl_sock_lost_s 3 \
        "$build/test/mpi/lost" "${@:3}" </dev/null
}
beside check "${prefix}rails.failover.return" rails_return 800,800 silence
for scenario in cut-and-repair cut-threads all-cut; do
    beside check "${prefix}rails.failover.$scenario" rails_failover $rails_times $scenario
done
beside check "${prefix}rails.failover.3-rails" rails_failover $rails_times cut --rails 400,800,800
beside check "${prefix}rails.failover.only-rail" rails_failover $rails_times all-cut --rails 800
beside check "${prefix}rails.failover.return-uncontacted" rails_return 800 silence uncontacted
beside check "${prefix}rails.failover.return-uncontacted-cut" rails_return 800,800 cut uncontacted
beside check "${prefix}rails.failover.slow-peer" rails_failover 1 slow-peer

# Processes compute three times as long as a peer may be silent, and wires are cut: no process is lost but
# those that were cut off, see life.c. An event at 0 s comes before any connection.
# shellcheck disable=SC2086
rails_life() { # RANKS PLACES RAILS EVENT [mpirun's arguments --] life's arguments
    local begin=(--begin "life begins") before=() hosts=${2//[!,]/}
    case $4 in 0:*) begin=() ;; esac
    local lab=(--hosts $((${#hosts} + 1)) --rails "$3" "${begin[@]}" --at "$4") ranks=$1 places=$2
    shift 4
    if [ "$1" = --enable-recovery ]; then before=("$1"); shift; fi
    timeout --kill-after=10 "$limit_s" "$top/test/lab/rails" "${lab[@]}" -- "$mpirun" -n "$ranks" \
        --host "$places" --bind-to none "${before[@]}" $sock --mca pml_multilane_lost_s 2 --mca btl_sock_lost_s 2 \
        "$build/test/mpi/life" "$@" </dev/null
}

# One process of a host dies, and Open MPI is told to let the others go on.
rails_process_dies() {
    local output
    output=$(rails_life 4 a:2,b:2 800,800 90:cut:1 --enable-recovery process 2 2>&1)
    printf '%s\n' "$output"
    grep -aq '3 ranks live' <<<"$output"
}

rails_life_long() {
    local what kind seconds
    for what in cut silence; do
        for seconds in 0.01 0.5 3; do
            for kind in 0 1 2 3; do
                beside check "${prefix}rails.life.$what-$seconds-$kind" rails_life 2 a:1,b:1 800,800 "$seconds:$what:1" \
                    pairs 2 "$kind"
            done
            beside check "${prefix}rails.life.$what-$seconds-8" rails_life 8 a:4,b:4 800,800 "$seconds:$what:0" pairs 2
        done
        beside check "${prefix}rails.life.host-dies-$what-1" rails_life 4 a:1,b:1,c:1,d:1 800 "0.5:$what:all@d" host 2
        beside check "${prefix}rails.life.host-dies-$what" rails_life 4 a:1,b:1,c:1,d:1 800,800 "0.5:$what:all@d" host 2
    done
}

beside check "${prefix}rails.life.others-compute" rails_life 8 a:4,b:4 800,800 0.5:cut:1 pairs 2
beside check "${prefix}rails.life.leads-nowhere" rails_life 2 a:1,b:1 800,800,800 0:silence:2 pairs 2 0
beside check "${prefix}rails.life.host-dies" rails_life 4 a:1,b:1,c:1,d:1 800,800 0.5:silence:all@d host 2
beside check "${prefix}rails.life.process-dies" rails_process_dies
if [ -n "${MULTILANE_LONG:-}" ]; then rails_life_long; fi

# A rail that was cut is a lane again, and the only one that goes away is waited for.
sock_begin=(--begin "mix begins") sock_mix=
# shellcheck disable=SC2086
rails_sock() { # REGEX RATES [lab's options] --
    local regex=$1 output
    shift
    output=$(rails_run 2 "$@" -- $one_each --bind-to none $sock -- "$build/test/lab/rails_mix" \
        --seconds ${sock_seconds:-4} $sock_mix 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q ', 0 wrong' <<<"$output" && grep -Eq "$regex" <<<"$output"
}
# A rail that leads nowhere from the start: nothing is given to it, so nothing is late or has to be taken back;
# it is a lane when it leads somewhere.
# shellcheck disable=SC2086
rails_sock_proven() { # RANKS PLACES SECONDS REGEX EVENT...
    local ranks=$1 places=$2 seconds=$3 regex=$4 output
    shift 4
    output=$(rails_run "$ranks" 800,800 "$@" -- --host "$places" --bind-to none --mca mpi_yield_when_idle 1 $sock \
        --mca pml_multilane_explain 1 -- "$build/test/lab/all_to_all" 2 "$seconds" 2>&1)
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q 'lane sock:rail1 .* is left out.*rail1 10.99.1.[0-9] to 10.99.1.[0-9]: no answer' <<<"$output" &&
        grep -Eq "$regex" <<<"$output" && ! grep -q 'nothing gets through' <<<"$output"
}
beside check "${prefix}rails.sock.leads-nowhere" rails_sock_proven 4 a:2,b:2 1 'sock:rail1 to rank [23] is left out: it has no connection' \
    --at 0:silence:1
beside check "${prefix}rails.sock.leads-there-late" rails_sock_proven 2 a:1,b:1 6 'lane sock:rail1 .* used again' --at 0:silence:1 --at 2:repair:1
# A job that lists no lanes goes by sock between hosts, and not by tcp beside it.
# shellcheck disable=SC2086
rails_sock_by_default() {
    local output
    output=$(rails_run 2 800 -- $one_each --mca pml multilane --mca pml_multilane_explain 1 -- ring 2>&1) || {
        printf '%s\n' "$output"
        return 1
    }
    printf '%s\n' "$output"
    grep -q '1 peer over sock:rail0$' <<<"$output"
}
beside check "${prefix}rails.sock.by-default" rails_sock_by_default
# A process that may make three connections more, toward two others over two rails: each has one.
# shellcheck disable=SC2086
rails_sock_descriptors() {
    local output
    output=$(rails_run 3 800,800 --hosts 3 -- --host a:1,b:1,c:1 --bind-to none --mca mpi_yield_when_idle 1 $sock -- \
        descriptors 3 3 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q 'no connection can be made or accepted now' <<<"$output"
}
beside check "${prefix}rails.sock.no-descriptor" rails_sock_descriptors
sock_seconds=6 beside check "${prefix}rails.sock.one-is-cut" rails_sock 'used again' 800,800 "${sock_begin[@]}" --at 1:cut:0 --at 2:repair:0
# Either rail: what is under way when the sender is in MPI_Finalize arrives too.
for rail in 0 1; do
    sock_seconds=0.5 sock_mix="--last 1" beside check "${prefix}rails.sock.silent-in-finalize.$rail" rails_sock 'last messages: 0 wrong' \
        800,800 "${sock_begin[@]}" --at 0.9:silence:$rail
done
beside check "${prefix}rails.sock.the-only-one-is-cut" rails_sock 'in reach again' 800 "${sock_begin[@]}" --at 1:cut:0 --at 4:repair:0
# It goes while the other end, which computes, has not greeted the first call: that is told once, and so is the
# end of it. 5 s.
# shellcheck disable=SC2086
rails_sock_greeted() {
    local output
    output=$(sock_seconds=0.5 sock_mix="--late 3.5" rails_sock 'in reach again' 800 --begin "mix calls" --at 0.3:cut:0 \
        --at 4.5:repair:0) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    [ "$(grep -c 'is out of reach by' <<<"$output")" = 1 ] && [ "$(grep -c 'in reach again' <<<"$output")" = 1 ]
}
beside check "${prefix}rails.sock.goes-before-the-greeting" rails_sock_greeted
# Only short packets get through: greetings do, messages of more do not. Another rail takes over, and where there
# is none the job ends, with the reason. 4 s.
sock_seconds=2 beside check "${prefix}rails.sock.narrow" rails_sock 'messages do not get through' 800,800 "${sock_begin[@]}" --at 0.5:narrow:0:1400
# shellcheck disable=SC2086
rails_sock_all_narrow() {
    local output
    output=$(rails_run 2 800 "${sock_begin[@]}" --at 0.5:narrow:0:1400 -- $one_each --bind-to none $sock \
        --mca btl_sock_lost_s 3 -- "$build/test/lab/rails_mix" --seconds 10 2>&1) && return 1
    printf '%s\n' "$output"
    grep -q 'is out of reach by rail0: it connects, but messages do not' <<<"$output" && grep -q 'nothing gets through .btl_sock_lost_s' <<<"$output"
}
beside check "${prefix}rails.sock.narrow.only-rail" rails_sock_all_narrow
# How long after its return the only rail carries again; 40 to 150 ms where nothing else runs.
# shellcheck disable=SC2086
rails_sock_goes_on() { # WHAT
    local output
    output=$(rails_run 4 800 --begin "all to all begins" --at "0.5:$1:0" --at 2.5:repair:0 -- --host a:2,b:2 --bind-to none \
        --mca mpi_yield_when_idle 1 $sock -- "$build/test/lab/all_to_all" 2 4 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    awk '/ 0 bytes wrong/ { slowest = $(NF - 1) } END { exit !(slowest > 1900 && slowest < 3000) }' <<<"$output"
}
# Bits that are wrong on both rails: all data is right, and each rail is left out once. 2 s.
# shellcheck disable=SC2086
rails_flips() {
    local output
    output=$(rails_run 2 800,800 -- $one_each $sock -x LD_PRELOAD="$build/test/fake/libsock_faults.so" -x SOCK_FLIPS=200 \
        --mca pml_multilane_verify 1 -- verify 1 2 300000 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    [ "$(grep -c ', 0 wrong bytes received' <<<"$output")" = 2 ] && grep -q 'sock:rail.* is left out while another' <<<"$output"
}
# What is preloaded would have to come behind the sanitizer's library.
[ -n "$sanitizer" ] || beside check "${prefix}rails.sock.flips" rails_flips

# A device whose atomics hold with regard to the processor too: osc/rdma of 4.1 may not take its lane for one of each
# process to itself. On one node, as in verbs.sh, it uses the processor's.
rails_global_atomics() {
    local fabric status
    fabric=$(mktemp -u)
    rails_run 2 800 -- --host a:1,b:1 --bind-to none --mca pml ob1 --mca btl self,verbs --mca osc ^ucx \
        -x LD_PRELOAD="$build/test/fake/libverbs_strict.so" -x MULTILANE_STRICT_FABRIC="$fabric" \
        -x MULTILANE_STRICT_VERBS=bnxt,hosts=2,atomics=global -- conform onesided --seconds 5
    status=$?
    rm -f "$fabric"
    return $status
}
if [ "$series" = 4.1 ] && [ -z "$sanitizer" ] && [ -f "$component_dir/mca_btl_verbs.so" ]; then
    beside check "${prefix}rails.verbs.global-atomics" rails_global_atomics
fi
beside check "${prefix}rails.sock.resets" rails_failover $rails_times resets --ranks 4 --rails 800
beside check "${prefix}rails.sock.everything" rails_failover $rails_times everything --ranks 4
beside check "${prefix}rails.sock.unequal" rails_sock 'mix ends' 400,1200
beside check "${prefix}rails.sock.both-are-silent" rails_sock 'mix ends' 800,800 "${sock_begin[@]}" --at 1:silence:all --at 2.5:repair:all
# One-sided operations go on where a rail does not: from Open MPI 5.0 on by osc/rdma, which keeps to the lane that it
# chose. Messages to such a lane, as of osc/rdma, go by the other rail. 4 s each.
rails_windows() { # RATES EVENT...
    local output rates=$1
    shift
    # shellcheck disable=SC2086
    output=$(rails_run 2 "$rates" --begin 'windows begin' "$@" -- $one_each --bind-to none $sock $no_osc_ucx -- \
        "$build/test/lab/windows" 3 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q ', 0 wrong' <<<"$output"
}
# Toward a process with which no message was exchanged before (osc/rdma). btl_sock_lost_s is 60. 12 s.
rails_windows_of_strangers() {
    local output
    # shellcheck disable=SC2086
    output=$(rails_run 8 800,800 --hosts 4 --begin 'windows begin' --at 0.5:cut:0 -- --host a:2,b:2,c:2,d:2 --bind-to none \
        --mca mpi_yield_when_idle 1 $sock $no_osc_ucx -- "$build/test/lab/windows" 1 strangers 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    awk '/, 0 wrong/ { slowest = $(NF - 1) } END { exit !(slowest > 0 && slowest < 20000) }' <<<"$output"
}
rails_others() { # EVENT
    # shellcheck disable=SC2086
    rails_run 2 800,800 "$@" -- $one_each --bind-to none $sock -- "$build/test/lab/others" 3
}
if [ "$series" = 4.1 ]; then no_osc_ucx="--mca osc ^ucx"; else no_osc_ucx=; fi
beside check "${prefix}rails.windows.only-rail" rails_windows 800 --at 0.5:silence:0 --at 2:repair:0
beside check "${prefix}rails.windows.cut" rails_windows 800,800 --at 0.5:cut:0
beside check "${prefix}rails.windows.silent" rails_windows 800,800 --at 0.5:silence:0 --at 2:repair:0
if [ "$series" = 4.1 ]; then
    skip "${prefix}rails.windows.strangers" "4.1 sends what windows do as messages"
else
    beside check "${prefix}rails.windows.strangers" rails_windows_of_strangers
fi
beside check "${prefix}rails.others.silent" rails_others --begin 'others begin' --at 0.5:silence:0
beside check "${prefix}rails.others.comes-back" rails_others --begin 'others begin' --at 0.5:cut:0 --at 1.5:repair:0
beside check "${prefix}rails.others.leads-nowhere" rails_others --at 0:silence:0
# A network that gives a connection 20 MB/s, of the rail's 100: four carry what four may, also of a stream of
# messages that are put only because others are under way. They are four where the user says so, and without a
# word where the link does not say what it carries. 9 s.
# shellcheck disable=SC2086
rails_sock_paced() { # RATE WINDOWS [MORE...]
    local rate=$1 windows=$2
    shift 2
    rails_run 2 "$rate" -- --host a:1,b:1 --bind-to none $sock --mca btl_base_verbose 10 "$@" -x SOCK_SPEED="${speed:-800}" \
        -x LD_PRELOAD="$build/test/fake/libsock_faults.so" -- "$build/test/bench/rails_measure" $windows 2>&1
}
rails_sock_links() {
    local more output speeds=() window=window:262144:32 speed
    for more in "--mca btl_sock_links 1" "--mca btl_sock_links 4" ""; do
        [ -n "$more" ] || speed=-1 # as clouds' links say
        # shellcheck disable=SC2086
        output=$(rails_sock_paced 800 "$window $window" -x SOCK_PACE=20000000 $more)
        printf '%s\n' "$output"
        speeds+=("$(sed -n 's/^window 262144 \([0-9]*\).*/\1/p' <<<"$output" | tail -n 1)")
    done
    [ "${speeds[0]:-0}" -gt 10000000 ] && [ "${speeds[0]}" -lt 25000000 ] && [ "${speeds[1]:-0}" -gt 50000000 ] &&
        [ "${speeds[2]:-0}" -gt $((3 * speeds[0])) ]
}
# As many as there may be, over a rail that they do not fill. 2 s.
rails_sock_links_most() {
    rails_sock_paced 800 "window:262144:32" -x SOCK_PACE=8000000 --mca btl_sock_links 8
}
# A rail that one connection fills has one; where two carry no more than one, there is no third. 9 s.
rails_sock_full() {
    local output window=window:262144:32
    output=$(rails_sock_paced 800 "$window $window") || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    ! grep -q 'is tried' <<<"$output" || return 1
    output=$(rails_sock_paced 400 "$window $window $window $window") || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q 'connection 2 is the last one' <<<"$output" && ! grep -q 'connection 3 is tried' <<<"$output"
}
# A stream of messages that the plan sends over one lane, the slower rail of 12 MB/s: what is late there goes by
# the other.
rails_sock_small_stream() {
    local output speed
    output=$(rails_run 2 100,300 -- --host a:1,b:1 --bind-to none $sock -- "$build/test/bench/rails_measure" window:4096:64 2>&1)
    printf '%s\n' "$output"
    speed=$(sed -n 's/^window 4096 \([0-9]*\).*/\1/p' <<<"$output")
    [ "${speed:-0}" -gt 18000000 ]
}
# A rail is emptied at both ends, then its cable is pulled: nothing was on it, so no lane has to take over.
rails_drain() {
    local output
    output=$(timeout --kill-after=10 "$limit_s" "$top/test/lab/rails" --rails 300,300 --begin "mix begins" --at 5:cut:1 -- \
        sh -c '"$@" & job=$!; sleep 3; "$0" --all --drain sock:rail1; wait $job' "$build/multilane-top" \
        "$mpirun" -n 2 --host a:1,b:1 --bind-to none $sock --mca pml_multilane_explain 1 "$build/test/lab/rails_mix" --seconds 7 \
        --longest 4000000 2>&1 </dev/null) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q ', 0 wrong' <<<"$output" && grep -q 'lane sock:rail1: empty in 2 of 2 ranks' <<<"$output" &&
        ! grep 'goes over the other lanes' <<<"$output"
}
beside check "${prefix}rails.drain" rails_drain
# The only lane leads nowhere: 12 s, beside the one above.
# shellcheck disable=SC2086
rails_doctor_only() {
    local output
    output=$(rails_run 2 300 --at 0:silence:0 -- $one_each $sock -- "$build/inst/bin/multilane-doctor" --job 2>&1)
    [ $? != 0 ] && grep 'lane sock to rank . of job .* nothing gets through' <<<"$output" || { printf '%s\n' "$output"; return 1; }
}
limit_s=25 beside check "${prefix}rails.doctor.only-one" rails_doctor_only
wait
# Collective operations by a leader of each node (coll/node): ranks in the order of nodes, in turn, on nodes of
# unlike size; and all are told when the others are out of reach. Some 3 s each, in all 25.
across="--bind-to none --mca pml multilane --mca btl self,shm,sock --mca pml_multilane_wait sleep"
by_leaders="--by coll_node_across_operations"
[ -z "$MULTILANE_LONG" ] || across_rounds=5000
# shellcheck disable=SC2086
rails_across_in_order() {
    local output
    output=$(rails_run 8 400,1200 --hosts 4 -- --host a:2,b:2,c:2,d:2 --map-by slot $across --mca pml_multilane_explain 1 -- \
        collective 2 "${across_rounds:-200}" $by_leaders 2>&1) || { printf '%s\n' "$output"; return 1; }
    printf '%s\n' "$output"
    grep -q 'MPI_Bcast .* leaders of nodes in a chain$' <<<"$output" &&
        grep -q 'MPI_Allreduce .* leaders of nodes$' <<<"$output"
}
beside check "${prefix}rails.across.in-order" rails_across_in_order
# shellcheck disable=SC2086
{
    # Without coll/han, whose MPI_Allgather gives wrong data to ranks in turn, ob1's too (collectives.md).
    rails_mpi rails.across.in-turn 9 0 --hosts 3 -- --host a:3,b:3,c:3 --map-by node $across --mca coll ^han -- \
        collective 2 "${across_rounds:-200}" $by_leaders
    rails_mpi rails.across.unlike 7 0 --hosts 3 -- --host a:3,b:3,c:1 --map-by slot $across -- \
        collective 3 "${across_rounds:-200}" $by_leaders
    # Where one process is on each host coll/han gives up, by the functions that it finds in the table.
    rails_mpi rails.across.han 3 0 --hosts 3 -- --host a:1,b:1,c:1 --map-by slot $across --mca coll_han_priority 80 -- \
        collective 2 40
    # As with a processor for each process.
    rails_mpi rails.across.always 4 0 --hosts 2 -- --host a:2,b:2 --map-by slot ${across/sleep/spin} \
        --mca coll_node_across_always 1 --mca mpi_yield_when_idle 1 -- collective 4 50 $by_leaders
}
# shellcheck disable=SC2086
rails_across_lost() {
    local output
    output=$(rails_run 4 800 --begin 'sums until' --at 0.5:cut:0 -- --host a:2,b:2 --map-by slot $across --mca pml_multilane_lost_s 2 \
        --mca btl_sock_lost_s 3 -- collective 1 10 --until-lost 2>&1)
    printf '%s\n' "$output"
    [ "$(grep -c '^rank [0-3]: an error' <<<"$output")" = 4 ]
}
limit_s=30 beside check "${prefix}rails.across.lost" rails_across_lost
# What the leaders' operation is made of is not what the program calls: no names of operations are said.
# shellcheck disable=SC2086
rails_across_differ() {
    local output
    output=$(rails_run 4 800 -- --host a:2,b:2 --map-by slot $across -- collective 3 10 --differ 1 barrier bcast 2>&1)
    printf '%s\n' "$output"
    grep -q 'rank [01] and other processes of one node call different collective operations of MPI_COMM_WORLD' <<<"$output" &&
        ! grep -q 'rank [0-9] calls' <<<"$output"
}
limit_s=60 beside check "${prefix}rails.across.differ" rails_across_differ
wait
# Two ranks on each of four hosts hang: what multilane-top --job finds on each host, by one rank. Some 7 s
# each.
if [ -n "$MULTILANE_LONG" ]; then whole_jobs=20; elif [ -z "$whole" ]; then whole_jobs=1; else whole_jobs=2; fi
check "${prefix}rails.whole-job" "$top/test/lab/rails" --rails 800 --hosts 4 --slots 2 -- "$top/test/mpi/hangs.py" \
    "$build" "$mpirun" across $whole_jobs --map-by node --bind-to none --mca btl self,shm,sock
# These measure, or fill the machine.
check "${prefix}rails.replay" rails_replay
if [ -z "$sanitizer" ]; then
    check "${prefix}rails.sock.links" rails_sock_links
    check "${prefix}rails.sock.links.most" rails_sock_links_most
    check "${prefix}rails.sock.links.full" rails_sock_full
    check "${prefix}rails.sock.small-stream" rails_sock_small_stream
fi
check "${prefix}rails.sock.round-trip" rails_round_trip
# Where a call is answered after 300 ms, and where two calls meet on the way for 100 ms.
# shellcheck disable=SC2086
rails_mpi rails.sock.far.150ms 2 1000 --delay 150 -- $one_each $sock -- "$build/test/lab/all_to_all" 1
# shellcheck disable=SC2086
rails_mpi rails.sock.far.100ms 2 1000 --delay 100 -- $one_each $sock -- "$build/test/lab/all_to_all" 1
# Each lane of three hosts alone: one host's rail slows, leads nowhere, or is not there. 4 s each.
# shellcheck disable=SC2086
rails_doctor() { # STATUS EVENT REGEX...
    local output status wanted=$1 regex
    output=$(rails_run 3 300,300 --hosts 3 --at "0:$2" -- --host a:1,b:1,c:1 --bind-to none --mca pml multilane \
        --mca btl self,shm,sock -- "$build/inst/bin/multilane-doctor" --job 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = "$wanted" ] || { echo "(ended with status $status)"; return 1; }
    for regex in "a +b +sock:rail0 $rails_good" "a +b +sock:rail1 $rails_good" "a +c +sock:rail0 $rails_good" "${@:3}"; do
        grep -Eq "^$regex" <<<"$output" || { echo "(nothing above matches: $regex)"; return 1; }
    done
}
rails_good=' +[0-9.]+ +[1-3][0-9][0-9.]+ +[1-3][0-9][0-9.]+ *$' # of 37 MB/s, on a busy machine less
check "${prefix}rails.doctor.slow" rails_doctor 1 slow:1@c:30 '[ab] +c +sock:rail1 .* [1-3][0-9][0-9.]+ +3\.[0-9] +far slower: such lanes have [1-3][0-9]'
check "${prefix}rails.doctor.leads-nowhere" rails_doctor 1 silence:1@c \
    '[ab] +c +sock:rail1 +does not connect: on [abc] it has no connection from rail1 ' '6 lanes of 3 nodes, each alone: 2 lead'
check "${prefix}rails.doctor.not-there" rails_doctor 0 cut:1@c '  nodes with fewer than 2 such lanes: c$'
check "${prefix}rails.sock.goes-on.cut" rails_sock_goes_on cut
check "${prefix}rails.sock.goes-on.silence" rails_sock_goes_on silence
rails_mpi rails.sock.64-ranks 64 0 --hosts 8 -- --host a:8,b:8,c:8,d:8,e:8,f:8,g:8,h:8 --bind-to none \
    --mca mpi_yield_when_idle 1 --mca pml multilane --mca btl "self,shm,sock" -- "$build/test/lab/all_to_all"
wait
