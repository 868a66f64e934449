# SPDX-License-Identifier: BSD-3-Clause
# Part slurm: jobs that Slurm starts, in the cluster of test/lab/slurm, with the Open MPI and the Slurm
# of Debian 12 and 13; and that the cluster ends with the program that plays it.
about="jobs under Slurm: srun, sbatch, scancel, a killed process, on Debian 12 and 13"

. "$top/test/parts/mpi-series.sh"

part_cannot_run() {
    "$top/test/lab/slurm" --check
}

part_run() {
    for series in 4.1 5.0; do
        if series_is_native; then
            beside slurm_native
        else
            beside locked "root-$(suite_of_series "$series")" slurm_in_root "$(suite_of_series "$series")"
        fi
    done
    wait
    case $(native_series) in 4.1 | 5.0) check "$part.ends-when-killed" slurm_ends_when_killed ;; esac
}

slurm_native() {
    . "$top/test/unit/run.sh"
    check "$part.$series.build" series_build_native || return
    rm -f "$results.end"
    logs=$logs "$top/test/lab/slurm" --folder "$build_root/slurm" -- \
        "$top/test/mpi/run" "$build_root/gcc" "$part.$series." slurm
    results_take "$part.$series.end" "$results"
}

slurm_in_root() {
    local reason root=$roots/$1
    reason=$(root_impossible)
    [ -z "$reason" ] || { skip "$part.$series" "$reason"; return; }
    check "$part.$series.root" root_make "$1" "$1" "$(series_packages)" || return
    check "$part.$series.build" series_build_in_root "$1" || return
    $sudo rm -f "$root"/build/results{,.end,.log}
    root_run "$1" "results=/build/results logs=/build/logs MULTILANE_BUILD=/build
        export results logs MULTILANE_BUILD; : >\$results
        /multilane/test/lab/slurm --folder /build/slurm -- /multilane/test/mpi/run /build '$part.$series.' slurm"
    results_take "$part.$series.end" "$root/build/results"
}

# Killed, asked to end, or interrupted: no process of the cluster and no mount in its folder is left.
slurm_ends_when_killed() {
    local signal pid tries ours="sleep 77777\$|$build_root/slurm/"
    for signal in KILL TERM INT; do
        # A background process of a script would not get an interrupt.
        env --default-signal=INT "$top/test/lab/slurm" --folder "$build_root/slurm" -- \
            srun -N 2 sleep 77777 &
        pid=$!
        for tries in {1..150}; do
            [ "$(pgrep -c -f '^[^ ]*sleep 77777$')" -lt 2 ] || break
            sleep 0.2
        done
        pgrep -a -f "$ours"
        kill -s $signal $pid
        for tries in {1..50}; do
            pgrep -f "$ours" >/dev/null || break
            sleep 0.2
        done
        ! pgrep -a -f "$ours" || return 1
    done
    ! grep "$build_root/slurm" /proc/mounts
}
