# SPDX-License-Identifier: BSD-3-Clause
# Jobs that Slurm starts, in the cluster of test/lab/slurm, which sets MULTILANE_SLURM_LAB: two nodes
# with a wire between them. Elsewhere nothing.
slurm_limit_s=60

# slurm_environment BTLS: as doc/install.md says it for batch scripts.
slurm_environment() {
    export OMPI_MCA_pml=multilane OMPI_MCA_btl=$1 OMPI_MCA_pml_multilane_explain=1
}

# What a job may not leave on its nodes, however it ended: a moment later nothing of it is there.
slurm_is_clean() {
    local tries left
    for tries in {1..150}; do
        left=$(squeue -h; ps -e -o comm= | grep '^\(hang\|traffic\|shm_traffic\|ring\|slurmstepd\|orted\|prted\)'
            ls -A /dev/shm "$TMPDIR"/n1 "$TMPDIR"/n2 | grep -v ':$\|^$')
        [ -n "$left" ] || return 0
        sleep 0.2
    done
    printf 'left behind:\n%s\n' "$left"
    return 1
}

# slurm_says REGEX COMMAND...: ends well, having printed REGEX, and leaves nothing.
slurm_says() {
    local regex=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -Eq -- "$regex" <<<"$output" && slurm_is_clean
}

slurm_srun() { # NODES RANKS BTLS PROGRAM [arguments]
    slurm_environment "$3"
    timeout --kill-after=10 "$slurm_limit_s" srun --mpi=pmix -N "$1" -n "$2" "$build/test/mpi/$4" "${@:5}"
}

slurm_sbatch() { # NODES RANKS BTLS PROGRAM: mpirun in a batch script, which says on how many nodes
    slurm_environment "$3"
    slurm_batch "$1" "$2" "exec '$mpirun' --map-by node '$build/test/mpi/$4'"
}

# The script says how it ended: sbatch --wait would look for that every ten seconds.
slurm_batch() { # NODES RANKS COMMAND
    local script=$TMPDIR/job tries
    rm -f "$script.status"
    printf '#!/bin/sh\n(%s)\necho $? >"%s.new" && mv "%s.new" "%s.status"\n' "$3" "$script" "$script" "$script" >"$script"
    sbatch -N "$1" -n "$2" -o "$script.out" "$script" || return 1
    for ((tries = 0; tries < slurm_limit_s * 10; tries++)); do
        [ ! -e "$script.status" ] || break
        sleep 0.1
    done
    cat "$script.out"
    [ -e "$script.status" ] || { echo "did not end in $slurm_limit_s s"; return 1; }
    return "$(cat "$script.status")"
}

# What it looks at is this node, though the job has another one as well.
slurm_doctor() {
    local output
    output=$(slurm_batch 2 2 "PATH='$(dirname "$mpirun"):$build:'\$PATH exec '$top/tools/multilane-doctor'")
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q '^ok    lane shm' <<<"$output" && grep -q '^ok    Slurm .*--mpi=pmix' <<<"$output"
}

# On both nodes of the job, from one of them.
slurm_doctor_nodes() {
    local output
    output=$(slurm_batch 2 2 "PATH='$(dirname "$mpirun"):$build:'\$PATH exec '$top/tools/multilane-doctor' --nodes")
    local status=$?
    printf '%s\n' "$output"
    [ $status = 0 ] && grep -q '^\(ok\|note\) *nodes *2 answered' <<<"$output"
}

# As the program of srun.
slurm_doctor_job() {
    slurm_says '^[0-9]* lanes of 2 nodes, each alone: 0 lead nowhere' slurm_srun 2 2 self,shm,sock \
        ../../inst/bin/multilane-doctor --job
}

# Starts what would go on for an hour, on both nodes, and waits until it does.
slurm_begin() {
    local tries
    slurm_environment self,shm,sock
    sbatch -N 2 -n 4 -o "$TMPDIR/endless.out" --wrap \
        "srun --mpi=pmix '$build/test/mpi/shm_traffic' 3600" || return 1
    for tries in {1..100}; do
        [ "$(pgrep -c -x shm_traffic)" = 4 ] && sleep 1 && return 0
        sleep 0.2
    done
    echo "4 processes did not start in 20 s"
    return 1
}

slurm_cancel() {
    slurm_begin && [ "$(pgrep -c -x shm_traffic)" = 4 ] && scancel --user="$(id -un)" && slurm_is_clean
    local status=$?
    cat "$TMPDIR/endless.out"
    return $status
}

# One process of a step is killed, as by a node that has no memory left: the others do not wait for it,
# the step ends, and with it the job.
slurm_killed() {
    slurm_begin && kill -KILL "$(pgrep -n -x shm_traffic)" && slurm_is_clean
    local status=$?
    scancel --user="$(id -un)" # where that did not end it
    cat "$TMPDIR/endless.out"
    return $status
}

# A hang of ranks on two nodes, as a step beside theirs sees it on one.
slurm_why() {
    local tries said status=1
    slurm_environment self,shm,sock
    sbatch -N 2 -n 4 -o "$TMPDIR/hang.out" --wrap \
        "srun --mpi=pmix '$build/test/mpi/hang' no-receive 1" || return 1
    for tries in {1..100}; do
        grep -qs '^culprit' "$TMPDIR/hang.out" && break
        sleep 0.2
    done
    # The last rank has to come to where it hangs.
    for tries in {1..10}; do
        said=$(srun --overlap --jobid "$(squeue -h -o %i)" -N 1 -n 1 "$build/multilane-top" --job --why)
        [ $? = 1 ] && status=0 && break
        sleep 0.3
    done
    printf '%s\n' "$(cat "$TMPDIR/hang.out")" "$said"
    scancel --user="$(id -un)"
    [ $status = 0 ] && grep -q 'which has posted no receive for it' <<<"$said" && slurm_is_clean
}

if [ -n "${MULTILANE_SLURM_LAB:-}" ]; then
    check "${prefix}srun.shm" slurm_says 'peer over shm:shm' slurm_srun 1 2 self,shm ring
    check "${prefix}srun.tcp" slurm_says 'peer over tcp:wire1' slurm_srun 1 2 self,tcp ring
    # One kernel, but two hosts by their names: a peer on the other is reached by sock alone.
    check "${prefix}srun.across" slurm_says 'peer over sock:wire1' slurm_srun 2 2 self,shm,sock ring
    check "${prefix}srun.across.traffic" slurm_says 'peer over shm:shm' slurm_srun 2 4 self,shm,sock \
        traffic --seeds 1-2 --batches 20
    check "${prefix}sbatch.shm" slurm_says 'peer over shm:shm' slurm_sbatch 1 2 self,shm ring
    check "${prefix}sbatch.tcp" slurm_says 'peer over tcp:wire1' slurm_sbatch 1 2 self,tcp ring
    check "${prefix}sbatch.across" slurm_says 'peer over sock:wire1' slurm_sbatch 2 2 self,shm,sock ring
    check "${prefix}doctor" slurm_doctor
    check "${prefix}doctor-nodes" slurm_doctor_nodes
    check "${prefix}doctor-job" slurm_doctor_job
    check "${prefix}why" slurm_why
    check "${prefix}scancel" slurm_cancel
    check "${prefix}killed-process" slurm_killed
    check "${prefix}after-all" slurm_says 'peer over shm:shm' slurm_srun 1 2 self,shm ring
fi
