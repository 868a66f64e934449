# SPDX-License-Identifier: BSD-3-Clause
# Messages from and to device memory, against the stand-in for libcuda of test/fake: the processor
# cannot touch that memory, copies really happen later, and what a device may lack is switched off.
# No figure is ever taken from it.

# What a device, a driver or a machine may lack, and lanes that lose messages are
# the same in each series; those make datatypes, requests, errors, collectives and windows different. A
# sanitizer sees each way and each error once.
elsewhere_only 'series=cuda.@(ipc.@(types|persistent|probe|many|ends)|staged.@(types|persistent|many|self-long)|
staged-tcp|several-lanes|kernels.@(shm|fail|no-file)|ipc-refused|collective|in-place|
collectives.@(operations|groups|neighbours|under-way|packed|session|fail|survivors|ob1)|other-device.hip|window|mapped-fd|
copies-fail.self,shm|lost.self,shm,cuda|reset.self,shm,cuda|freed|explain|shared|measured.@(lanes|refused)|gpu|gpu.*|gpu-command-alone|
no-driver|collectives-off|old-driver|ompi_info)' \
    'asan=cuda.@(ipc.@(truncate|probe|reuse|many|order|self*|ends)|staged.@(truncate|many|order|held|lost-fail|self-long)|
staged-tcp|several-lanes|kernels.@(shm|other-code|fail|no-file)|no-ipc|late-copies.ipc.many|capture.ipc|halo|
ipc-own-device-many|ipc-refused*|ipc-one-many|no-pinned|collective|in-place|
collectives.@(operations|under-way|neighbouring-images|packed|late-copies|fail)|other-device.hip|window|
mapped-@(fd|again|few*)|one-handle|copies-fail.*|lost.*|reset.*|freed|not-shared|measured.@(lanes|each|busy*|ask*)|gpu|gpu-command-alone|
no-driver|says-why)'

# What a stand-in takes is no measure: which way messages go is set here. The tests of measuring, at
# the end, unset it.
device_costs_set() {
    export OMPI_MCA_pml_multilane_profile=none OMPI_MCA_btl_cuda_lane_latency=1e-6 \
        OMPI_MCA_btl_cuda_lane_overhead=6e-6 OMPI_MCA_btl_cuda_lane_bandwidth=100e9
}
device_costs_unset() {
    unset OMPI_MCA_pml_multilane_profile OMPI_MCA_btl_cuda_lane_latency \
        OMPI_MCA_btl_cuda_lane_overhead OMPI_MCA_btl_cuda_lane_bandwidth
}
device_costs_set

# cuda_run NAME "SETTINGS OF THE STAND-IN" LANES CHAPTER [REGEX]
cuda_run() {
    local name=$1 fake=$2 lanes=$3 chapter=$4 regex=${5:-^}
    mpi_says "cuda.$name" "$regex" "${ranks:-2}" --mca pml multilane --mca btl "$lanes" \
        --mca btl_tcp_if_include lo \
        -x LD_LIBRARY_PATH="$build/test/fake" -x MULTILANE_FAKE_CUDA="$fake" -- device "$chapter"
}

# With and without the lane of device memory; over lanes of ours and of Open MPI.
for chapter in stand-in kinds self types truncate persistent probe devices forced reuse many order \
    questions; do
    cuda_run "ipc.$chapter" "" self,shm,cuda "$chapter"
done
for chapter in types truncate persistent devices forced many order questions; do
    cuda_run "staged.$chapter" "" self,shm "$chapter"
done
mpi cuda.staged.held 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_unexpected_max 1m \
    -x LD_LIBRARY_PATH="$build/test/fake" -- device held
cuda_run ipc.self-long "" self,shm,cuda self-long
cuda_run ipc.self-chunk "" self,shm,cuda self-chunk
# Each end says what its memory is, and the receiver chooses by the plan for both.
cuda_ends() {
    local file=$build/ends.json
    rm -f "$build"/ends.[01].json
    mpirun_run 2 --mca pml multilane --mca btl self,shm,cuda --mca pml_multilane_eager_max 4k \
        --mca pml_multilane_explain 2 --mca pml_multilane_explain_file "$file" \
        "$@" -x LD_LIBRARY_PATH="$build/test/fake" -- device ends || return 1
    python3 - "$build/ends.1.json" <<'END'
import json, sys
of = [one for one in json.load(open(sys.argv[1]))["classes"] if "shm:shm" in one["lanes"]][0]
plans = {plan["buffer"]: plan["ranges"] for plan in of["plans"]}
for far, near, long, short in ("host", "device", "rndv-put", "rndv-am"), ("device", "host", "rndv-get", "rndv-staged"):
    rows = plans[f"received: announced from {far} memory, to {near} memory"]
    took = {row["protocol"]: (row["messages"], row["lanes"][0]["lane"]) for row in rows}
    print(near, took)
    assert took[short] == (1, "shm:shm") and took[long] == (1, "cuda:ipc")
END
}
check "${prefix}cuda.ipc.ends" cuda_ends
check "${prefix}cuda.ipc.ends-verified" cuda_ends --mca pml_multilane_verify 1
cuda_run staged.self-long "" self,shm self-long
cuda_run staged-tcp "" self,tcp many
cuda_run "staged-$sm" "" "self,$sm" many
ranks=3 cuda_run several-lanes "" "self,shm,$sm,sock,cuda" many

# Kernels, whose source the stand-in runs as functions of C: they pack irregular datatypes. Where
# they cannot be had the messages arrive all the same.
kernels() {
    local name=$1 regex=$2 fake=$3 code=$4 lanes=$5 chapter=$6
    mpi_says "cuda.kernels.$name" "$regex" 2 --mca pml multilane --mca btl "$lanes" \
        --mca btl_tcp_if_include lo --mca pml_multilane_device_code "$code" \
        -x LD_LIBRARY_PATH="$build/test/fake" -x MULTILANE_FAKE_CUDA="$fake" -- device "$chapter"
}
packed='irregular datatypes were packed by kernels'
kernels shm "$packed" "" "$build/test/fake/kernels" self,shm,cuda packed
kernels "$sm" "$packed" "" "$build/test/fake/kernels" "self,$sm" packed
kernels tcp "$packed" no-pinned "$build/test/fake/kernels" self,tcp packed
kernels none 'device: 0 kernels have run' "" none self,shm,cuda types
kernels old-driver 'device: 0 kernels have run' no-kernels "$build/test/fake/kernels" self,shm,cuda types
kernels other-code "no kernel packs irregular datatypes.*CUDA_ERROR_INVALID_IMAGE" "" \
    "$build/Makefile" self,shm,cuda types
kernels fail "the CUDA driver says CUDA_ERROR_ILLEGAL_ADDRESS" fail-copy=4 \
    "$build/test/fake/kernels" self,shm fails
mpi_fails cuda.kernels.no-file "pml_multilane_device_code is .*No such file" 2 --mca pml multilane \
    --mca btl self,shm --mca pml_multilane_device_code /nonexistent -- ring

# Lanes get lost that carry messages by way of the host, some of whose pieces are on their way by then.
flaky_path=$build/test/fake/.libs:${OMPI_MCA_mca_base_component_path:-}
for lost in "fail 30" "die 300"; do
    # shellcheck disable=SC2086
    OMPI_MCA_mca_base_component_path=$flaky_path mpi_says "cuda.staged.lost-${lost% *}" \
        "rank 0 went on, 0 failures" 2 --mca pml multilane --mca btl self,flaky \
        --mca pml_multilane_protocol rndv-staged --mca mpi_yield_when_idle 1 --mca btl_flaky_seed 7 \
        --mca btl_flaky_$lost --mca btl_flaky_sleep_turns 2000000000 --mca btl_flaky_spared 0 \
        --mca btl_flaky_lost_ms 1000 --mca pml_multilane_suspect_ms 40 --mca pml_multilane_lost_s 3 \
        -x LD_LIBRARY_PATH="$build/test/fake" -- device unreachable 4000000
done
# The benchmark's messages; of their times nothing is said here.
cuda_bench() { # NAME REGEX [ARGUMENT...]
    local name=$1 regex=$2
    shift 2
    mpi_says "cuda.bench-$name" "$regex" 2 --mca pml multilane --mca btl self,shm,cuda \
        -x LD_LIBRARY_PATH="$build/test/fake" -- "$build/test/bench/device_messages" "$@"
}
cuda_bench right ' 90 messages looked at, 0 wrong' --check --largest 1048576
cuda_bench from ' 36 messages looked at, 0 wrong' --check --from host --largest 1048576
links_bench() {
    LD_LIBRARY_PATH=$build/test/fake "$build/test/bench/device_links" --check | grep 'all was copied'
}
check "${prefix}cuda.bench-links" links_bench
cuda_bench stand-in 'nothing measured: the driver is a stand-in'
# The ring in device memory: right bytes by every way, and a step over its limit is cut and named. A second.
ring_bench() { # STATUS REGEX "SETTINGS OF THE STAND-IN" [ARGUMENT...]
    local status=$1 regex=$2 fake=$3 said
    shift 3
    said=$(LD_LIBRARY_PATH=$build/test/fake MULTILANE_FAKE_CUDA=$fake timeout 60 "$build/test/bench/device_ring" "$@" 2>&1)
    [ $? = "$status" ] && grep "$regex" <<<"$said" && return
    echo "$said"
    return 1
}
check "${prefix}cuda.bench-ring" ring_bench 0 'steps looked at, 0 wrong' '' --check
check "${prefix}cuda.bench-ring-cut" ring_bench 1 'polls near, .*: cut' delay-us=3000000 --check --limit-s 0.3
check "${prefix}cuda.bench-ring-fails" ring_bench 1 'turns, .*: the kernel: CUDA_ERROR' fail-copy=3 --check

# What a device, a driver or a machine may lack.
cuda_run no-ipc no-ipc self,shm,cuda many "the driver has no handle to share the device memory"
cuda_run long-ranges long-ranges self,shm,cuda many "is said to have [0-9]* bytes and has"
cuda_run ipc-open-fails ipc-open-fails self,shm,cuda many
# Copies that the program has waited for and that come later all the same.
for chapter in types truncate persistent many; do
    cuda_run "late-copies.ipc.$chapter" late-copies self,shm,cuda "$chapter"
    cuda_run "late-copies.staged.$chapter" late-copies self,shm "$chapter"
done
# Another thread captures a graph.
cuda_run capture.ipc "" self,shm,cuda capture
cuda_run capture.staged "" self,shm capture
cuda_run ipc-opened "" self,shm,cuda opened
cuda_run halo "" self,shm,cuda halo
# What messages ask of the driver, and that none of it is slow. A second each, as is cuda.mapped-again.
cuda_run calls "" self,shm,cuda calls
# Memory that the program has opened by IPC itself is sent from and received into by way of the host.
cuda_run imported "" self,shm,cuda imported "Messages of such memory are copied through host memory"
cuda_run ipc-own-device own-device self,shm,cuda opened
cuda_run ipc-own-device-many own-device self,shm,cuda many
cuda_run ipc-refused ipc-open-fails self,shm,cuda refused
mpi cuda.ipc-refused-no-room 2 --mca pml multilane --mca btl self,shm,cuda \
    --mca btl_cuda_handles_max 1 -x LD_LIBRARY_PATH="$build/test/fake" \
    -x MULTILANE_FAKE_CUDA=ipc-open-fails -- device many
cuda_run ipc-one ipc-one self,shm,cuda in-the-way
cuda_run ipc-one-many ipc-one self,shm,cuda many
cuda_run no-pinned no-pinned self,shm,cuda many
cuda_run no-peer no-peer self,shm,cuda many "cannot be opened: .* has no access"
cuda_run one-device devices=1 self,shm,cuda reuse
cuda_run slow-copies delay-us=2000 self,shm,cuda order
ranks=4 cuda_run collective "" self,shm,cuda collective
mpi cuda.in-place 4 --mca pml multilane --mca btl self,shm,cuda \
    -x LD_LIBRARY_PATH="$build/test/fake" -- device in-place

# Every collective operation, by coll/multilane, which has no part in jobs of another PML.
collectives() { # NAME "SETTINGS OF THE STAND-IN" LANES CHAPTER [session]
    mpi_says "cuda.collectives.$1" " calls, 0 wrong" 4 --mca pml multilane --mca btl "$3" \
        -x LD_LIBRARY_PATH="$build/test/fake" -x MULTILANE_FAKE_CUDA="$2" -- device_collective "${@:4}"
}
for chapter in operations groups neighbours under-way neighbouring-images packed; do
    collectives "$chapter" "" self,shm,cuda "$chapter"
done
collectives staged no-ipc self,shm groups
# MPI_Pack names no communicator to the functions that stand before it.
[ "$series" = 4.1 ] || collectives session "" self,shm,cuda packed session
collectives late-copies late-copies,delay-us=300 "self,$sm" under-way
mpi_fails cuda.collectives.fail "the CUDA driver says CUDA_ERROR_ILLEGAL_ADDRESS" 4 --mca pml multilane \
    --mca btl self,shm,cuda -x LD_LIBRARY_PATH="$build/test/fake" \
    -x MULTILANE_FAKE_CUDA=fail-copy=4 -- device_collective groups
# A process dies: images go by a communicator that no death reaches. mpirun is as 30-neighbours.sh says.
survivors() {
    local output try
    for try in 1 2 3; do
        output=$(limit_s=12 mpirun_run 3 --with-ft ulfm --mca pml multilane --mca btl self,shm \
            -x LD_LIBRARY_PATH="$build/test/fake" -- device survivors 2>&1)
        printf 'try %s\n%s\n' "$try" "$output"
        [ "$(grep -c 'went on with 1 others' <<<"$output")" = 2 ] && return
        grep -q 'after a process has died' <<<"$output" && return 1
    done
    return 1
}
if [ "$series" = 4.1 ]; then
    skip "${prefix}cuda.collectives.survivors" "Open MPI 4.1 has no ULFM"
elif [ -n "$sanitizer" ]; then
    skip "${prefix}cuda.collectives.survivors" "a killed process ends a job of sanitized programs"
else
    check "${prefix}cuda.collectives.survivors" survivors
fi
collectives_absent() {
    mpirun_run 2 --mca pml ob1 --mca btl "self,$sm" --mca coll_base_verbose 10 \
        -x LD_LIBRARY_PATH="$build/test/fake" -- ring >"$build/absent" 2>&1 &&
        grep -q "coll:base:comm_select" "$build/absent" &&
        ! grep "selecting.*multilane" "$build/absent"
}
check "${prefix}cuda.collectives.ob1" collectives_absent

# Memory of devices that are not CUDA's, in a program without CUDA and in one with it.
other_device() { # NAME LIBRARY SENTENCE ARGUMENTS
    mpi_says "cuda.other-device.$1" "the program uses $3" 2 --mca pml multilane --mca btl self,shm "${@:4}" -- \
        other_device "$build/test/fake/other/$2"
}
other_device hip libamdhip64.so.6 "HIP"
if [ -n "$sanitizer" ]; then
    skip "${prefix}cuda.other-device.level-zero" "a sanitizer's library has to be the first that is loaded"
else
    other_device level-zero libze_loader.so.1 "Level Zero" \
        -x LD_PRELOAD="$build/test/fake/libcuda.so.1 $build/test/fake/other/libze_loader.so.1"
fi

cuda_run window "" self,shm,cuda window \
    "multilane: MPI_Win_create: the 64 bytes at .* are device memory"

# Memory that a program maps itself: by a file descriptor, which the system lets root have, by a
# handle of the fabric, or not at all.
cuda_mapped() {
    mpi_says "cuda.mapped-$1" "device: $3" 2 --mca pml multilane --mca btl self,shm,cuda \
        -x LD_LIBRARY_PATH="$build/test/fake" -x MULTILANE_FAKE_CUDA="$2" -- device mapped
}
opened='memory of the other process was opened'
if [ "$(id -u)" = 0 ]; then
    cuda_mapped fd no-ipc "$opened"
else
    cuda_mapped fd no-ipc '(no )?memory of the other'
fi
cuda_mapped fabric fabric,no-fd-handle "$opened"
cuda_run mapped-again "" self,shm,cuda mapped-again
cuda_mapped staged no-fd-handle "no memory of the other"
# More chunks than may be open.
mpi_says cuda.mapped-few "are in more than 3 chunks of device memory" 2 --mca pml multilane \
    --mca btl self,shm,cuda --mca btl_cuda_handles_max 3 -x LD_LIBRARY_PATH="$build/test/fake" \
    -- device mapped
# The receiver opens fewer than the sender shares.
mpi_says cuda.mapped-fewer "a message is in 40 chunks, and btl_cuda_handles_max is 3" 1 \
    --mca pml multilane --mca btl self,shm,cuda -x LD_LIBRARY_PATH="$build/test/fake" -- \
    device mapped : -n 1 -x LD_LIBRARY_PATH="$build/test/fake" -x OMPI_MCA_btl_cuda_handles_max=3 \
    "$build/test/mpi/device" mapped
cuda_mapped old no-map "the driver has no mapped memory"

# Handles of the other process are bounded: one at a time, and each message needs another.
mpi cuda.one-handle 2 --mca pml multilane --mca btl self,shm,cuda --mca btl_cuda_handles_max 1 \
    -x LD_LIBRARY_PATH="$build/test/fake" -- device many
mpi_says cuda.handles-refused "btl_cuda_handles_max is 0; it can be 1 or more" 1 --mca pml multilane \
    --mca btl self,cuda --mca btl_cuda_handles_max 0 -x LD_LIBRARY_PATH="$build/test/fake" -- device self

# The driver fails in the middle: an error in its own words, and no process waits for ever.
for lanes in self,shm self,shm,cuda; do
    mpi_says "cuda.copies-fail.$lanes" "the CUDA driver says CUDA_ERROR_ILLEGAL_ADDRESS" 2 \
        --mca pml multilane --mca btl "$lanes" -x LD_LIBRARY_PATH="$build/test/fake" \
        -x MULTILANE_FAKE_CUDA=fail-copy=4 -- device fails
done

for lanes in self,shm self,shm,cuda; do
    mpi_says "cuda.lost.$lanes" "the CUDA driver says CUDA_ERROR_ILLEGAL_ADDRESS" 2 \
        --mca pml multilane --mca btl "$lanes" -x LD_LIBRARY_PATH="$build/test/fake" \
        -x MULTILANE_FAKE_CUDA=fail-copy=1,lost -- device lost
done

# The program resets its devices, and goes on: by every way that memory of theirs may take, whatever
# the driver says of what is gone.
for lanes in self,shm self,shm,cuda; do
    for fake in "" reset-fails; do
        mpi_says "cuda.reset.$lanes${fake:+.$fake}" "the devices were reset" 2 \
            --mca pml multilane --mca btl "$lanes" \
            --mca pml_multilane_device_code "$build/test/fake/kernels" \
            -x LD_LIBRARY_PATH="$build/test/fake" -x MULTILANE_FAKE_CUDA="$fake" -- device reset
    done
done

# Freed memory is told from the host's.
mpi_says cuda.freed "was device memory and has been freed" 1 --mca pml multilane \
    --mca btl self,shm,cuda -x LD_LIBRARY_PATH="$build/test/fake" -- device freed

# The plan of device memory, with both ways in it.
mpi_says cuda.explain "rndv-get .*cuda:ipc" 2 --mca pml multilane --mca btl self,shm,cuda \
    --mca pml_multilane_explain 1 -x LD_LIBRARY_PATH="$build/test/fake" -- device self

# Copies and opening are measured at the first buffer on a device, once a device of the
# node and once a pair, and the plans follow. Without that nothing takes the device's lane by itself.
measured() { # NAME RANKS REGEX "SETTINGS OF THE STAND-IN" [mpirun's arguments]
    local name=$1 ranks=$2 regex=$3 fake=$4
    shift 4
    mpi_says "cuda.measured.$name" "$regex" "$ranks" --mca pml multilane --mca btl self,shm,cuda \
        --mca pml_multilane_explain 1 "$@" -x LD_LIBRARY_PATH="$build/test/fake" \
        -x MULTILANE_FAKE_CUDA="$fake" -- device measured
}
# On a device of several processes few bytes go by its copy engines, and what a copy between two of them
# takes is measured while both use it.
device_costs_unset
cuda_run shared devices=1 self,shm,cuda few "few bytes went as rows"
cuda_run not-shared devices=2 self,shm,cuda few "few bytes went as they are"
long="--mca pml_multilane_device_measure_ms 5000"
# shellcheck disable=SC2086
{
    measured lanes 2 "cuda:ipc +get .* measured" "" $long
    measured copies 2 "copies between host and device: .*, measured; opening .*, measured" \
        own-device $long
    measured in-turns 2 "opening another process's memory: .*in turns, measured" devices=1 $long
    measured once 4 "1 of 4 processes measured a device" devices=1 $long
    measured each 4 "4 of 4 processes measured a device" devices=4 $long
    measured no-ipc 2 "cuda:ipc +get .* not measured" no-ipc $long
    measured not-wanted 2 "cuda:ipc +get .* not measured" "" --mca pml_multilane_profile none
}
# What another process has locked does not hold up a send.
mpi cuda.measured.locked 2 --mca pml multilane --mca btl self,shm,cuda \
    -x LD_LIBRARY_PATH="$build/test/fake" -- device locked
# Nor do kernels of the program, of both processes or of one. A second each.
OMPI_MCA_pml_multilane_device_measure_ms=5000 cuda_run measured.busy held,devices=1 self,shm,cuda busy
OMPI_MCA_pml_multilane_device_measure_ms=5000 cuda_run measured.busy-first first:held,devices=1 self,shm,cuda busy
# Who is asked for turns and cannot answer is done with it, and who asks in vain. A second each.
cuda_run measured.asked devices=1 self,shm,cuda asked
cuda_run measured.asking ipc-open-fails,devices=2 self,shm,cuda asking
measured not-in-time 2 "copies between host and device: not measured" delay-us=4000
mpi_fails cuda.measured.refused "pml_multilane_device_measure_ms is -1; it can be 0 or more" 1 \
    --mca pml multilane --mca btl self,cuda --mca pml_multilane_device_measure_ms -1 \
    -x LD_LIBRARY_PATH="$build/test/fake" -- device self
device_costs_set

# The same on a device, where there is one.
# cuda_gpu NAME LANES CHAPTER [mpirun's arguments]
cuda_gpu() {
    local name=$1 lanes=$2 chapter=$3
    shift 3
    mpi "cuda.gpu.$name" 2 --mca pml multilane --mca btl "$lanes" --mca btl_tcp_if_include lo "$@" -- \
        device "$chapter"
}
if [ ! -e /dev/nvidiactl ]; then
    skip "${prefix}cuda.gpu" "this node has no CUDA device"
elif [ -n "$sanitizer" ]; then
    skip "${prefix}cuda.gpu" "the device's driver is not made for a sanitizer"
else
    for lanes in self,shm,cuda self,shm self,tcp; do
        for chapter in stand-in kinds self types truncate persistent probe devices forced mapped reuse \
            many order collective packed opened capture reset self-long few mapped-again; do
            cuda_gpu "$lanes.$chapter" $lanes $chapter
        done
        cuda_gpu "$lanes.in-place" $lanes in-place
        mpi "cuda.gpu.$lanes.collectives" 4 --mca pml multilane --mca btl $lanes \
            --mca btl_tcp_if_include lo -- device_collective
    done
    for chapter in measured opened halo window imported; do
        cuda_gpu "$chapter" self,shm,cuda "$chapter"
    done
fi

# test/gpu over the stand-in, which its report says: every step is run (12 s). One that does not end is cut and
# named, and the next is run all the same. Where there is no device and nothing is said of a stand-in, it says so.
gpu_steps() { # FOLDER OPTION...
    device_costs_unset
    MULTILANE_GPU_TESTS=cuda.ipc.self "$top/test/gpu" --stand-in --build "$build" --out "$build/$1" "${@:2}"
}
gpu_command() {
    local report=$build/gpu-report/report.txt steps step
    steps=$("$top/test/gpu" --list | cut -d ' ' -f 1)
    [ "$(wc -w <<<"$steps")" -ge 16 ] && gpu_steps gpu-report || {
        cat "$report"
        return 1
    }
    for step in $steps; do
        grep -q "^$step  *done in" "$report" && [ -s "$build/gpu-report/$step.txt" ] || { cat "$report"; return 1; }
    done
    grep -q 'THE DRIVER IS A STAND-IN' "$report" && grep -q 'tests: 1 passed, 0 failed' "$report" &&
        grep -q 'copies between host and device: ' "$report" && grep -q 'steps looked at, 0 wrong' "$report"
}
gpu_command_cut() {
    local report=$build/gpu-cut/report.txt
    ! MULTILANE_FAKE_CUDA=delay-us=30000000 gpu_steps gpu-cut --only plans,rows-far --limit 2 || return 1
    cat "$report"
    # The next step has its turn all the same, whatever it makes of 2 s on a busy machine.
    grep -q '^plans  *CUT: it ran into its limit of 2 s' "$report" && grep -q '^== rows-far:' "$report"
}
gpu_command_alone() {
    ! "$top/test/gpu" --build "$build" 2>"$build/gpu-said" && grep 'no CUDA device' "$build/gpu-said"
}
check "${prefix}cuda.gpu-command" gpu_command
check "${prefix}cuda.gpu-command-cut" gpu_command_cut
[ -e /dev/nvidiactl ] || check "${prefix}cuda.gpu-command-alone" gpu_command_alone

# Without a driver: every other job as before, and why this lane is off.
if [ ! -e /dev/nvidiactl ]; then
    mpi cuda.no-driver 2 --mca pml multilane --mca btl self,shm,cuda -- ring
    mpi_says cuda.collectives-off "coll/multilane: not used: this node has no CUDA device" 2 \
        --mca pml multilane --mca btl self,shm,cuda --mca coll_base_verbose 10 -- ring
    mpi_says cuda.says-why "btl/cuda: offers no lane: this node has no CUDA device" 2 \
        --mca pml multilane --mca btl self,shm,cuda --mca btl_base_verbose 10 -- ring
    if [ -n "$sanitizer" ]; then
        for name in old-driver not-started; do
            skip "${prefix}cuda.$name" "a sanitizer's library has to be the first that is loaded"
        done
    else
        mpi_says cuda.old-driver "btl/cuda: offers no lane: the CUDA driver is too old" 2 \
            --mca pml multilane --mca btl self,shm,cuda --mca btl_base_verbose 10 \
            -x LD_PRELOAD="$build/test/fake/libcuda.so.1" -x MULTILANE_FAKE_CUDA=old -- ring
        # One that could not start, and that a job of host memory need not start.
        mpi cuda.not-started 2 --mca pml multilane --mca btl self,shm,cuda \
            -x LD_PRELOAD="$build/test/fake/libcuda.so.1" -x MULTILANE_FAKE_CUDA=init-fails -- ring
    fi
    cuda_shown() {
        "$ompi_info" --param btl cuda --level 9 | grep "btl_cuda_off" | grep "no CUDA device"
    }
    if [ -n "$sanitizer" ]; then
        skip "${prefix}cuda.ompi_info" "a sanitizer has to be in the program, and ompi_info is without"
    else
        check "${prefix}cuda.ompi_info" cuda_shown
    fi
else
    for name in no-driver collectives-off says-why old-driver not-started ompi_info; do
        skip "${prefix}cuda.$name" "this node has a CUDA device"
    done
fi
device_costs_unset
