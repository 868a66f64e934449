# SPDX-License-Identifier: BSD-3-Clause
# Alone: plans follow times.
# Plans that learn: a job corrects a profile that lies, says so, and leaves what it has seen to the next one.
elsewhere_only 'series=learn.@(corrects-a-lie|goes-on-in-the-next-job)'
learn_folder=$build/learn-test
rm -rf "$learn_folder"
mkdir -p "$learn_folder"
lie=$learn_folder/lie
shm="--mca pml multilane --mca btl self,shm"
# Sends of 3 GB/s and gets of 100 on this very machine: then 4 KiB go by a copy of the kernel, which takes
# several times as long as the ring.
{
    profile_head
    for placement in cache node; do
        printf '[lane shm:shm@%s]\ncan = send short get put\nshort_max = 16k\ncopied_max = 16k\n' $placement
        printf 'zcopied_max = inf\noverhead = 2e-7\nlatency = 1e-7\n'
        printf 'send_bandwidth = 3e9\nget_bandwidth = 100e9\nput_bandwidth = 50e9\n'
    done
    printf '[end]\n'
} >"$lie"

# learn_job FOLDER [mpirun's arguments]: 20,000 messages of each size to 16 KiB; the report is FOLDER/explain.json.
learn_job() {
    local folder=$1
    shift
    mkdir -p "$folder"
    # shellcheck disable=SC2086
    XDG_CACHE_HOME=$folder mpirun_run 2 $shm --mca pml_multilane_profile "$lie" --mca pml_multilane_explain 1 \
        --mca pml_multilane_explain_file "$folder/explain.json" "$@" -- "$build/test/bench/regret_measure" 20000 16384 3
}

# learn_says FOLDER EXPRESSION: of the report's class with the most moves, `protocol` at 4 KiB, `moves`, `history`.
learn_says() {
    python3 - "$1/explain.json" "$2" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
of = [one for one in report["classes"] if "shm:shm" in one["lanes"]][0]
rows = of["plans"][0]["ranges"]
protocol = [row["protocol"] for row in rows if row["first"] <= 4096 <= row["last"]][0]
moves, history = of["moves"], report["history"]
print(protocol, moves, history)
sys.exit(not eval(sys.argv[2]))
END
}

learn_not() {
    learn_job "$learn_folder/first" --mca pml_multilane_learn 0 &&
        learn_says "$learn_folder/first" 'protocol.startswith("rndv") and not moves' &&
        [ ! -e "$learn_folder/first/multilane" ]
}
learn_corrects() {
    rm -rf "$learn_folder/learns" # what a first try has left
    learn_job "$learn_folder/learns" &&
        learn_says "$learn_folder/learns" 'protocol.startswith("eager") and 0 < len(moves) <= 64 and "nothing" in history' &&
        ls -l "$learn_folder/learns/multilane/"history-* && stat -c %a "$learn_folder/learns/multilane/"history-* | grep -qx 600
}
# One message of each size: what it knows is from the job before.
learn_goes_on() {
    XDG_CACHE_HOME=$learn_folder/learns mpirun_run 2 --mca pml multilane --mca btl self,shm \
        --mca pml_multilane_profile "$lie" --mca pml_multilane_explain 1 \
        --mca pml_multilane_explain_file "$learn_folder/learns/explain.json" -- "$build/test/bench/regret_measure" 1 16384 &&
        learn_says "$learn_folder/learns" 'protocol.startswith("eager") and not moves and "of earlier jobs" in history'
}
learn_user() { # what the user says of the lane stays
    learn_job "$learn_folder/user" --mca pml_multilane_lane_attr shm:bandwidth=3e9 &&
        learn_says "$learn_folder/user" 'not moves'
}
# Eight jobs at once that end with the same file: it stays whole.
learn_at_once() {
    local job jobs=()
    for job in 1 2 3 4 5 6 7 8; do
        XDG_CACHE_HOME=$learn_folder/learns mpirun_run 2 --mca pml multilane --mca btl self,shm -- ring &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || return 1; done
    head -n 1 "$learn_folder/learns/multilane/"history-* | grep -qx 'multilane history 1' &&
        tail -n 1 "$learn_folder/learns/multilane/"history-* | grep -qx end &&
        [ "$(find "$learn_folder/learns/multilane" -type f | wc -l)" = 1 ]
}
learn_damaged() {
    local file
    file=$(ls "$learn_folder/learns/multilane/"history-*)
    head -c 300 "$file" >"$file.cut" && mv "$file.cut" "$file"
    learn_goes_nowhere() {
        XDG_CACHE_HOME=$learn_folder/learns mpirun_run 2 --mca pml multilane --mca btl self,shm \
            --mca pml_multilane_explain 1 -- ring >"$learn_folder/said" 2>&1 &&
            grep -q 'nothing from earlier jobs' "$learn_folder/said" || { cat "$learn_folder/said"; return 1; }
    }
    learn_goes_nowhere && head -c 3000 /bin/sh >"$file" && learn_goes_nowhere
}
# Many processes, all with all. Where they share processors nothing is learned, and nothing is left to the next job;
# else plans settle, and of n messages of one size no more are timed or go another way than 16 and 16 ln(n / 128),
# which is 0.5 % of 20,000.
learn_crowd() { # RANKS ROUNDS
    local folder=$learn_folder/crowd
    rm -rf "$folder" && mkdir -p "$folder"
    XDG_CACHE_HOME=$folder mpirun_run "$1" --mca pml multilane --mca btl self,shm --mca pml_multilane_explain 1 \
        --mca pml_multilane_explain_file "$folder/explain.json" -- "$build/test/bench/crowd_measure" 8192 "$2" 0 || return 1
    python3 - "$folder" <<'END'
import glob, json, math, sys
of = [one for one in json.load(open(sys.argv[1] + "/explain.json"))["classes"] if one["lanes"] == ["shm:shm"]][0]
plan, left = of["plans"][0], {move["from"] for move in of["moves"]}
messages = sum(row["messages"] for row in plan["ranges"] + plan["beside"])
timed = sum(row.get("samples", 0) for row in plan["ranges"])
tried = sum(row["messages"] for row in plan["beside"] if row["way"] not in left)
print(messages, "messages,", timed, "timed,", tried, "tried;", of["moves"])
assert messages > 2000 and len(of["moves"]) <= 20
kept = [line for file in glob.glob(sys.argv[1] + "/multilane/history-*") for line in open(file) if line.startswith("way ")]
print("kept:", *kept)
if not of["learns"]:
    assert not of["moves"] and tried == 0 and not kept
    sys.exit()
assert kept and timed >= 5
# Trials are bounded by the time that they take, which in a crowd is any.
assert timed <= 16 + 16 * math.log(messages / 128) and tried <= 32 + messages / 200
END
}
if [ -n "$sanitizer" ]; then
    skip "${prefix}learn" "a sanitizer changes what messages take; the unit tests run with it"
elif learn_job "$learn_folder/first" --mca pml_multilane_learn 0 --mca btl_base_verbose 10 >"$learn_folder/said" 2>&1 &&
    grep -q 'btl/shm: no single copy with' "$learn_folder/said"; then
    skip "${prefix}learn" "the kernel refuses single copies here, so the lie leads nowhere"
else
    check "${prefix}learn.not" learn_not
    check "${prefix}learn.corrects-a-lie" learn_corrects
    check "${prefix}learn.goes-on-in-the-next-job" learn_goes_on
    check "${prefix}learn.user-is-stronger" learn_user
    check "${prefix}learn.jobs-at-once" learn_at_once
    check "${prefix}learn.damaged-history" learn_damaged
    check "${prefix}learn.crowd-of-9" learn_crowd 9 2500
    check "${prefix}learn.crowd-of-33" learn_crowd 33 80
fi
rm -rf "$learn_folder"
