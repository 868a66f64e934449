# SPDX-License-Identifier: BSD-3-Clause
# Alone: all jobs of the node are looked at.
# Looking into a running job: multilane-top finds who hangs and why, calls nothing else hung, and the
# job never notices it.
inside_top=$build/multilane-top
# Pages are the same in each series.
elsewhere_only 'series=inside.@(hangs|hang_s|left.hung.KILL|left.none|record*|no-memfd|transports|events|monitoring|queues.*)'

# hangs.py starts its jobs itself: all kinds on 4.1.
if [ -n "$MULTILANE_LONG" ]; then inside_count=50; elif [ -z "$whole" ]; then inside_count=3; else inside_count=10; fi
check "${prefix}inside.hangs" "$top/test/mpi/hangs.py" "$build" "$mpirun" hangs "$inside_count" "${oversubscribe[@]}"
[ -n "$MULTILANE_LONG" ] || inside_count=3
check "${prefix}inside.healthy" "$top/test/mpi/hangs.py" "$build" "$mpirun" healthy "$inside_count" "${oversubscribe[@]}"

# A rank says by itself what it waits for, and goes on.
mpi_says inside.hang_s "multilane: rank [0-9]+ .* waits 1\.[0-9] s in MPI_Barrier for rank [0-9]+, MPI_COMM_WORLD" 3 \
    --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 --mca pml_multilane_hang_s 1 -- hang late 1
# The same through the memory of the node (coll/node), which a communicator gets after some barriers: it
# names the rank that has not come.
mpi_says inside.hang_s.node "multilane: rank [02] .* waits 1\.[0-9] s in MPI_Barrier for rank 1, MPI_COMM_WORLD" 3 \
    --mca pml multilane --mca btl self,shm --mca pml_multilane_wait sleep --mca pml_multilane_hang_s 1 -- hang late 1 10
inside_says_nothing() {
    local output
    output=$(mpirun_run 3 --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 -- hang late 1 2>&1) ||
        { printf '%s\n' "$output"; return 1; }
    ! grep "waits" <<<"$output"
}
check "${prefix}inside.hang_s.off" inside_says_nothing

# While a job runs: each form of output, readers that die, many at once; the job ends as it would have.
inside_forms() {
    local job status=0 try form
    mpirun_run 3 --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 -- hang healthy 9 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 100); do
        grep -q '^culprit' "$build/inside.job" && break
        sleep 0.1
    done
    "$inside_top" "$job" --json | python3 -m json.tool >/dev/null || { echo "--json is no JSON"; status=1; }
    "$inside_top" "$job" --once | grep -Eq '^ +[0-9]+ +[0-9]+ .*(MPI_|computes|in MPI)' || { echo "no table"; status=1; }
    "$inside_top" "$job" --once | awk 'length > 80 { print "longer than 80: " $0; exit 1 }' || status=1
    "$inside_top" "$job" --prometheus | awk '!/^# (HELP|TYPE) multilane_[a-z_]+ / &&
        !/^multilane_[a-z_]+[{]([a-z]+="[^"]*",?)+[}] [0-9.e+-]+$/ { print "no metric: " $0; bad = 1 } END { exit bad || NR < 20 }' ||
        status=1
    # A terminal as a serial line is one: 60 columns.
    form=$(timeout 10 python3 "$top/test/mpi/terminal.py" 60 "$inside_top" "$job" --count 2) ||
        { echo "on a terminal it ended with $?"; status=1; }
    grep -Eq '^ +[0-9]+ +[0-9]+ .*(MPI_|computes|in MPI)' <<<"$form" && ! grep -q '.\{61\}' <<<"$form" ||
        { echo "on a terminal of 60 columns: $form"; status=1; }
    for try in $(seq "${1:-20}"); do
        "$inside_top" "$job" --json >/dev/null 2>&1 &
        form=$!
        [ $((try % 3)) -gt 0 ] || kill -9 $form 2>/dev/null
    done
    wait "$job" || { echo "the job ended with $?"; status=1; }
    wait
    cat "$build/inside.job"
    return $status
}
check "${prefix}inside.forms" inside_forms ${MULTILANE_LONG:+1000}

# Two jobs at once are shown as two.
inside_jobs() {
    local jobs=() output try
    for try in 1 2; do
        mpirun_run 2 --mca pml multilane --mca btl self,shm -- hang wrong-tag 1 >"$build/inside.job$try" 2>&1 &
        jobs+=($!)
    done
    for try in $(seq 50); do
        output=$("$inside_top" --all --once 2>&1) && grep -Eq '^[2-9] jobs  +[0-9]+ ranks here' <<<"$output" && break
        sleep 0.1
    done
    for try in "${jobs[@]}"; do
        kill $(pgrep -P "$try") 2>/dev/null
        wait "$try" 2>/dev/null
    done
    grep -E '^[2-9] jobs  +[0-9]+ ranks here' <<<"$output" || { printf '%s\n' "$output"; return 1; }
}
check "${prefix}inside.jobs" inside_jobs

# A job that cannot be asked a second time hangs as the first look has shown; 2 s.
inside_held() {
    local job try rank output status=1
    mpirun_run 2 --mca pml multilane --mca btl self,shm -- hang wrong-tag 1 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 50); do
        sleep 0.1
        rank=$("$inside_top" "$job" --json 2>/dev/null | sed -n 's/.*"pid": \([0-9]*\),.*"does": "MPI_.*/\1/p' | head -1)
        [ -z "$rank" ] || break
    done
    [ -n "$rank" ] || { echo "no rank waits"; return 1; }
    "$top/test/mpi/hold.py" "$rank" 5 >"$build/inside.ready" &
    for try in $(seq 50); do
        ! grep -q ready "$build/inside.ready" || break
        sleep 0.1
    done
    output=$("$inside_top" --job --why "$rank" 2>&1)
    [ $? = 1 ] && grep 'no second look: process .* cannot be asked' <<<"$output" && grep -q 'wrong tag\|tag 1' <<<"$output" && status=0
    kill $! $(pgrep -P "$job") 2>/dev/null
    wait 2>/dev/null
    [ $status = 0 ] || printf '%s\n' "$output"
    return $status
}
check "${prefix}inside.held" inside_held

# A rank that sleeps in its wait is shown so, and one that spins, too.
inside_state() { # sleep|spin STATES
    local job try said status=1
    mpirun_run 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait "$1" -- hang wrong-tag 1 \
        >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 40); do
        sleep 0.2
        said=$("$inside_top" --json "$job" 2>/dev/null | sed -n 's/.*"state": "\(.\)", "does": "MPI_.*/\1/p' | tr -d '\n')
        [ "$said" = "$2" ] && status=0 && break
    done
    echo "state: $said"
    "$inside_top" --once "$job"
    kill $(pgrep -P "$job") 2>/dev/null
    wait "$job" 2>/dev/null
    return $status
}
check "${prefix}inside.state.sleep" inside_state sleep SS
check "${prefix}inside.state.spin" inside_state spin RR

inside_shows_who_waits() { # JOB, of which rank 1 of 3 computes
    local said
    said=$("$inside_top" --once --waiting "$1")
    [ "$(grep -Eo '^ +[0-9]+ +[0-9]+ ' <<<"$said" | awk '{ print $1 }' | paste -sd ' ')" = "0 2" ] || { echo "$said"; return 1; }
}

# What ranks leave when one of them dies: what they waited for, and their last calls. A job that ends in order
# leaves nothing, and one that cannot keep files says so.
inside_left() { # SIGNAL KIND WHY-REGEX CALLS-REGEX...
    local folder=$build/inside.left job try ranks=() status=0 output regex
    rm -rf "$folder" && mkdir "$folder"
    mpirun_run 3 --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 --mca pml_multilane_blackbox "$folder" \
        -- hang "$2" 1 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 60); do
        sleep 0.2
        "$inside_top" --json "$job" 2>/dev/null | grep -q '"since_s": [1-9]' && break
    done
    ranks=($("$inside_top" --json "$job" | sed -n 's/.*"pid": \([0-9]*\).*/\1/p'))
    [ "$2" != computes ] || inside_shows_who_waits "$job" || status=1
    kill "-$1" "${ranks[1]}"
    wait "$job" && { echo "the job ended with 0"; status=1; }
    echo nonsense >"$folder/multilane-page.1.1" # is named, and hides none of the others
    head -c 5000 "$(ls "$folder"/*.2)" >"$folder/multilane-page.1.2"
    { head -c 8 "$(ls "$folder"/*.0)"; printf '\377\0\0\0'; head -c 900000 /dev/zero; } >"$folder/multilane-page.1.3"
    output=$("$inside_top" --why --read "$folder" 2>&1; "$inside_top" --calls --read "$folder" 2>/dev/null)
    grep -q "multilane-page.1.1: its page is none of Multilane's" <<<"$output" &&
        grep -q "multilane-page.1.2: its page has 5000 bytes and should have" <<<"$output" &&
        grep -q "multilane-page.1.3: its page has version 255 and this program reads version" <<<"$output" || status=1
    grep -Ezq "$3" <<<"$output" || status=1
    for regex in "${@:4}"; do grep -Eq "$regex" <<<"$output" || status=1; done
    [ $status = 0 ] || { cat "$build/inside.job"; ls -l "$folder"; printf '%s\n' "$output"; status=1; }
    return $status
}
for inside_signal in KILL SEGV ABRT; do
    check "${prefix}inside.left.hung.$inside_signal" inside_left $inside_signal wrong-tag 'wrong-tag: rank 1 waits' \
        'rank 2 +sends to 1, tag 18, communicator [0-9]+, 8 bytes' 'rank 1 +waits in MPI_Recv'
done
check "${prefix}inside.left.computing" inside_left KILL computes 'computes: rank 1 computes since [1-9]' \
    'rank 2 +receives from 1, tag 17'
check "${prefix}inside.left.roots" inside_left KILL roots \
    'communicator [0-9]+ differ first at number 2:.*rank [12] calls MPI_Bcast, 4194304 bytes, root [12]' \
    'rank 2 +calls MPI_Bcast, 4194304 bytes, root [12], communicator [0-9]+' \
    'rank 0 +has a receive for a message of rank [12] of the job, tag -[0-9]+, 4194304 bytes' \
    'rank [12] +MPI_Allreduce: has received from [0-2]'
# The kernel ends a rank that takes more memory than its group may have.
inside_left_oom() { # GROUP LIMIT-FILE COUNT-FILE
    local folder=$build/inside.left job try ranks=() status=0 output killed
    killed=$(sed -n 's/^oom_kill //p' "$1/$3") # by a first try
    rm -rf "$folder" && mkdir "$folder"
    mpirun_run 3 --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 --mca pml_multilane_blackbox "$folder" \
        -- hang grows 1 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 100); do
        grep -q '^culprit' "$build/inside.job" && break
        sleep 0.1
    done
    sleep 1 # the others wait for it
    ranks=($("$inside_top" --json "$job" | sed -n 's/.*"pid": \([0-9]*\).*/\1/p'))
    echo $((32 << 20)) >"$1/$2" && echo "${ranks[1]}" >"$1/cgroup.procs" || status=1
    wait "$job" && { echo "the job ended with 0"; status=1; }
    output=$("$inside_top" --why --read "$folder" 2>&1; "$inside_top" --calls --read "$folder" 2>/dev/null)
    [ "$(sed -n 's/^oom_kill //p' "$1/$3")" = $((killed + 1)) ] || { cat "$1/$3"; status=1; }
    grep -q 'computes: rank 1 computes' <<<"$output" && grep -Eq 'rank 2 +receives from 1, tag 17' <<<"$output" ||
        { cat "$build/inside.job"; ls -l "$folder"; printf '%s\n' "$output"; status=1; }
    return $status
}
inside_group=/sys/fs/cgroup/memory/multilane-$$ inside_files=(memory.limit_in_bytes memory.oom_control)
[ -d /sys/fs/cgroup/memory ] || inside_group=/sys/fs/cgroup/multilane-$$ inside_files=(memory.max memory.events)
if mkdir "$inside_group" 2>/dev/null && [ -w "$inside_group/${inside_files[0]}" ]; then
    check "${prefix}inside.left.oom" inside_left_oom "$inside_group" "${inside_files[@]}"
else
    skip "${prefix}inside.left.oom" "no group with a limit of memory can be made here"
fi
rmdir "$inside_group" 2>/dev/null
inside_left_none() {
    local folder=$build/inside.left
    rm -rf "$folder" && mkdir "$folder" &&
        mpirun_run 3 --mca pml multilane --mca btl self,shm --mca pml_multilane_blackbox "$folder" -- conform point &&
        [ -z "$(ls -A "$folder")" ]
}
check "${prefix}inside.left.none" inside_left_none
mpi_says inside.left.no-folder "pml_multilane_blackbox /nonexistent: rank 0 cannot keep a file there: No such file" 2 \
    --mca pml multilane --mca btl self,shm --mca pml_multilane_blackbox /nonexistent -- ring

# A recording has all messages of a job, also those of persistent requests, and says where it cannot be made. In 10
# steps of two ranks 78 messages of 182,784 B, and those of MPI_Allreduce. Takes a second.
inside_record() {
    local folder=$build/inside.record
    rm -rf "$folder" && mkdir "$folder" &&
        mpirun_run 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_record "$folder" -- steps 10 8192 100 &&
        "$build/multilane-plan" --replay "$folder" --json - <<<$'[lane shm]\nlatency = 1e-7\noverhead = 1e-7\nbandwidth = 1e10' |
        python3 -c 'import json, sys
said = json.load(sys.stdin)
print(said)
assert 88 <= said["messages"] <= 120 and 182864 <= said["bytes"] <= 184000 and not said["unmatched"] and not said["cut"]
assert all(rank["computes_s"] > 0.0009 and rank["takes_s"] > 0 for rank in said["ranks"])
assert 0.0009 < said["takes_s"] < 1 and 0.001 < said["recorded_s"]'
}
check "${prefix}inside.record" inside_record
mpi_says inside.record.no-folder "pml_multilane_record /nonexistent: rank 0 records no further: No such file" 2 \
    --mca pml multilane --mca btl self,shm --mca pml_multilane_record /nonexistent -- steps 1
mpi_says inside.record.threads "pml_multilane_record: rank 0 has several threads for MPI" 2 \
    --mca pml multilane --mca btl self,shm --mca pml_multilane_record "$build" --mca pml_multilane_progress_thread 1 -- steps 1

# For how long a rank has waited, by kind and for whom, is what it measures itself: at least half of the 0.9 s that
# the other one is late in all. Beside other processes the system may stop it anywhere in the call.
inside_waited() { # [mpirun's arguments]
    local output
    output=$(mpirun_run 2 --mca pml multilane --mca btl self,shm "$@" --mca pml_multilane_explain 1 -- waited 2>&1) ||
        { printf '%s\n' "$output"; return 1; }
    grep -E '^(sender|receiver|collective) |waited' <<<"$output"
    awk '/^(sender|receiver|collective) / { inside[$1] = $2 }
        /waited .* for rank 1:/ { for (i = 1; i < NF; i++) if ($(i + 1) == "s") {
            if ($(i + 2) == "late") said[$(i + 3) == "sender," ? "sender" : "receiver"] = $i
            if ($(i + 2) == "in") said["collective"] = $i } }
        END { for (kind in inside) if (said[kind] < 0.45 || said[kind] > 1.05 * inside[kind]) bad = 1
            exit bad || length(inside) != 3 }' <<<"$output"
}
check "${prefix}inside.waited" inside_waited --mca mpi_yield_when_idle 1
check "${prefix}inside.waited.sleep" inside_waited --mca pml_multilane_wait sleep

# A lane is emptied under traffic and used again: nothing is wrong or late, and it carries nothing meanwhile. Then
# the only one, which goes on.
inside_lane_bytes() { # LANE JOB
    "$inside_top" --json "$2" | python3 -c 'import json, sys
print(sum(lane["bytes"] for rank in json.load(sys.stdin)["ranks"] for lane in rank["lanes"] if lane["lane"] == sys.argv[1]))' "$1"
}
inside_drain_begin() { # LANES SECONDS: sets $job
    local try
    mpirun_run 2 --mca pml multilane --mca btl "$1" --mca mpi_yield_when_idle 1 --mca pml_multilane_explain 1 -- \
        "$build/test/lab/rails_mix" --seconds "$2" --longest 1000000 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 100); do
        grep -q 'mix begins' "$build/inside.job" && break
        sleep 0.1
    done
    sleep 1
}
# Asks the ranks of a job for a second, as another multilane-top may.
inside_hold() {
    local each=$1 file
    while each=$(pgrep -d, -P "$each"); do
        for file in $(sed 's|[0-9]*|/proc/&/fd/*|g; s|,| |g' <<<"$each"); do
            [[ $(readlink "$file") = */memfd:multilane-drain* ]] && flock -n "$file" sleep 1 && return
        done
    done
    echo "no rank can be asked"
}
inside_drain() {
    local job status=0 said before after
    inside_drain_begin "self,shm,sock" 12
    inside_hold "$job" &
    sleep 0.2
    said=$("$inside_top" --drain shm:shm "$job") || status=1
    before=$(inside_lane_bytes shm:shm "$job") && sleep 1 && after=$(inside_lane_bytes shm:shm "$job")
    echo "$said; $before bytes, and $after a second later"
    [ "$before" -gt 0 ] && [ "$before" = "$after" ] || status=1
    "$inside_top" --once "$job" | grep 'lane shm:shm .*, 2 drained' || status=1
    "$inside_top" --once --waited "$job" | grep -E '^ +0 +[0-9.]+ +[0-9.]+ .*  rank 1$' || status=1
    "$inside_top" --restore shm:shm "$job" || status=1
    sleep 1
    [ "$(inside_lane_bytes shm:shm "$job")" -gt "$after" ] || { echo "it is not used again"; status=1; }
    said=$("$inside_top" --drain nonsense "$job" 2>&1)
    [ $? = 2 ] && grep 'no rank has a lane nonsense; rank 0 has.* shm:shm' <<<"$said" || { echo "$said"; status=1; }
    "$inside_top" --drain shm:shm "$job" || status=1
    wait "$job" || { echo "the job ended with $?"; status=1; }
    grep ', 0 wrong' "$build/inside.job" && grep 'shm:shm to rank 1 is drained: it carries nothing' "$build/inside.job" ||
        { cat "$build/inside.job"; status=1; }
    return $status
}
check "${prefix}inside.drain" inside_drain
inside_drain_only() {
    local job status=0 said
    inside_drain_begin "self,shm" 4
    said=$("$inside_top" --drain shm:shm "$job")
    [ $? = 1 ] && grep 'rank 0 goes on using it toward 1 rank: no other lane leads there' <<<"$said" ||
        { echo "$said"; status=1; }
    wait "$job" || { echo "the job ended with $?"; status=1; }
    [ "$(grep -c 'lane shm:shm is not drained toward rank' "$build/inside.job")" = 2 ] &&
        grep ', 0 wrong' "$build/inside.job" || { cat "$build/inside.job"; status=1; }
    return $status
}
check "${prefix}inside.drain.only" inside_drain_only

# Nonsense is answered with a sentence.
inside_refuses() { # REGEX ARGUMENTS
    local output regex=$1
    shift
    output=$("$inside_top" "$@" 2>&1)
    [ $? = 2 ] && grep -Eq -- "$regex" <<<"$output" || { echo "multilane-top $*: $output"; return 1; }
}
inside_bad_input() {
    inside_refuses 'neither a job nor a process' --once nonsense &&
        inside_refuses 'no job and no process 4194304 here' --once 4194304 &&
        inside_refuses "process $$ is no rank" --once $$ &&
        inside_refuses 'interval.*is not a number' --interval x --once &&
        inside_refuses 'sort.*not x' --sort x --once &&
        inside_refuses 'one job or process' --once 1 2 &&
        inside_refuses 'needs a folder' --read &&
        inside_refuses 'each go alone' --drain a --restore a &&
        inside_refuses 'No such file' --read "$build/none" &&
        inside_refuses 'no rank in these folders' --read "$build" &&
        inside_refuses 'needs --read' --calls
}
check "${prefix}inside.bad-input" inside_bad_input
inside_as_other_user() {
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
inside_another_user() {
    inside_as_other_user "$inside_top" --once 1 2>&1 | grep 'another user'
}
if [ "$(id -u)" = 0 ] && inside_as_other_user test -x "$inside_top"; then
    check "${prefix}inside.another-user" inside_another_user
else
    skip "${prefix}inside.another-user" "it takes root, and a build that another user can enter"
fi

# Where a process may make no memfd it has no page that others see, and runs as ever.
mpi inside.no-memfd 2 --mca pml multilane --mca btl self,$sm -- "$build/test/mpi/shm_confine" no-memfd "$build/test/mpi/ring"

# Open MPI's table of connections has our lanes (5.0 and later).
if [ "$series" != 4.1 ]; then
    mpi_says inside.transports "shm" 2 --mca pml multilane --mca btl self,shm --mca ompi_display_comm mpi_finalize -- ring
fi

# Tools hear of lanes that are lost and come back by MPI_T's events (6.0).
if [ "$series" = 6.0 ]; then
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpi_says inside.events "events: all seen" 2 --mca pml multilane --mca btl self,flaky \
        --mca mpi_yield_when_idle 1 --mca btl_flaky_lanes 2 --mca btl_flaky_seed 0 \
        --mca pml_multilane_suspect_ms 100 -- events
fi

# pml/monitoring counts the same messages over us as over ob1.
inside_monitoring() {
    local pml
    for pml in multilane ob1; do
        rm -f "$build/inside.$pml".*.prof
        mpirun_run 3 --mca pml $pml,monitoring --mca btl self,$sm --mca pml_monitoring_enable 2 \
            --mca pml_monitoring_enable_output 3 --mca pml_monitoring_filename "$build/inside.$pml" -- ring || return 1
        cat "$build/inside.$pml".*.prof | grep -E '^[EI]' >"$build/inside.$pml"
    done
    [ -s "$build/inside.ob1" ] && diff "$build/inside.ob1" "$build/inside.multilane"
}
if [ "$series" != 6.0 ]; then
    check "${prefix}inside.monitoring" inside_monitoring
else
    skip "${prefix}inside.monitoring" "with it 6.0.0rc2 crashes in MPI_Init, over ob1 as well"
fi

# What a debugger shows of the queues, by Open MPI's own library for it, is what the program waits for.
inside_queues() {
    local job status=1 try pid
    mpirun_run 3 --mca pml multilane --mca btl self,shm --mca mpi_yield_when_idle 1 --mca pml_multilane_eager_max 16k \
        -- hang "$1" 1 >"$build/inside.job" 2>&1 &
    job=$!
    for try in $(seq 30); do
        sleep 0.3
        pid=$("$inside_top" --json "$job" 2>/dev/null | python3 -c 'import json, sys
for rank in json.load(sys.stdin)["ranks"]:
    if rank["rank"] == 1 and rank["waits"]:
        print(rank["pid"])' 2>/dev/null)
        [ -n "$pid" ] && break
    done
    MSGQ=$("$ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')/libompi_dbg_msgq.so
    export MSGQ
    [ -n "$pid" ] && gdb -batch -nx -p "$pid" -ex "add-symbol-file $build/.libs/libdebugger_types.so" \
        -ex "source $top/test/mpi/queues.py" >"$build/inside.queues" 2>&1
    grep -x "$2" "$build/inside.queues" && status=0
    [ $status = 0 ] || tail -n 20 "$build/inside.queues"
    kill $(pgrep -P "$job") 2>/dev/null
    wait "$job" 2>/dev/null
    return $status
}
if [ -n "$sanitizer" ]; then
    skip "${prefix}inside.queues" "gdb takes a minute to read sanitized programs"
elif ! build_root=$build packages_need gdb >"$build/gdb-packages.log" 2>&1; then
    skip "${prefix}inside.queues" "gdb is not installed, and could not be"
else
    check "${prefix}inside.queues.receive" inside_queues wrong-tag "receive 2 17"
    check "${prefix}inside.queues.send" inside_queues cycle "send [02] 17"
fi
