# SPDX-License-Identifier: BSD-3-Clause
# The progress thread beside the program's own: what is right without it is right with it, also
# where the program asked for no threads.
# Threads are tsan's business.
elsewhere_only 'series=progress-thread.@(ring-offered|traffic-shm|request|thread|device.staged|lost|error)' \
    'asan=progress-thread.@(lost|error|traffic-*)'

progress_thread() {
    local name=$1 btl=$2
    shift 2
    mpi "progress-thread.$name" 2 --mca pml multilane --mca btl "self,$btl" \
        --mca btl_tcp_if_include lo --mca pml_multilane_progress_thread 1 "$@"
}

# Two threads a rank are more than there are processors, as a rule.
yields="--mca mpi_yield_when_idle 1"

# shellcheck disable=SC2086
progress_thread_runs() {
    local batches=16
    [ "$sanitizer" = tsan ] && batches=4
    progress_thread ring shm -- ring
    progress_thread ring-often shm -- ring 4 2000
    progress_thread ring-offered shm --mca pml_multilane_protocol rndv-am -- ring 4 200
    progress_thread traffic-shm shm $yields -- traffic --seeds 1 --batches $batches
    progress_thread traffic-rails shm,sock $yields -- traffic --seeds 2 --batches 8
    progress_thread request shm $yields -- conform request
    progress_thread thread shm $yields -- thread
}
progress_thread_runs

# Device memory (the stand-in of test/fake, whose copies end later): staged, between the devices.
# progress_thread_device NAME LANES CHAPTER [mpirun's arguments]
progress_thread_device() {
    local name=$1 lanes=$2 chapter=$3
    shift 3
    # shellcheck disable=SC2086
    progress_thread "device.$name" "$lanes" $yields "$@" -x LD_LIBRARY_PATH="$build/test/fake" \
        -x MULTILANE_FAKE_CUDA=delay-us=500 -- device "$chapter"
}
progress_thread_device staged shm computing
progress_thread_device staged-many shm many
progress_thread_device ipc shm,cuda computing
progress_thread_device ipc-many shm,cuda many

# Lanes that fail, where the thread tries again what had no room, and watches.
progress_thread_lost() {
    OMPI_MCA_mca_base_component_path=$build/test/fake/.libs:$OMPI_MCA_mca_base_component_path \
        mpi_says progress-thread.lost "rank 0 went on, 0 failures" 2 --mca mpi_yield_when_idle 1 \
        --mca pml multilane --mca btl self,flaky --mca btl_flaky_seed 7 --mca btl_flaky_busy 2000 \
        --mca btl_flaky_fail 30 --mca btl_flaky_spared 0 --mca pml_multilane_suspect_ms 40 \
        --mca pml_multilane_lost_s 3 --mca pml_multilane_progress_thread 1 -- lost
}
progress_thread_lost

# What the thread meets while the program computes is said, and ends the job, when the program is in
# MPI again.
progress_thread_error() {
    local output status
    output=$(output_of 1 'multilane: lane shm received a message without a whole header' 2 \
        --mca pml multilane --mca btl self,shm --mca pml_multilane_progress_thread 1 -- thread_error)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q 'rank 0 computed on' <<<"$output"
}
check "${prefix}progress-thread.error" progress_thread_error
