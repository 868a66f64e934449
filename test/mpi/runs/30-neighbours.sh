# SPDX-License-Identifier: BSD-3-Clause
# What sits above the PML or beside it: monitoring, and fault tolerance.
elsewhere_only "series=!(neighbours.ulfm.$sm)"
if [ "$series" = 6.0 ]; then
    skip "${prefix}neighbours.monitoring" "6.0.0rc2's pml/monitoring crashes in MPI_Init, over ob1 too"
else
    mpi neighbours.monitoring 3 --mca pml multilane,monitoring --mca pml_monitoring_enable 2 \
        --mca btl self,$sm -- ring
fi

# Whatever the others have reached, mpirun ends with the status of the process that was killed; and now
# and then not at all, under ob1 as well (5.0.7: 2 of 15 runs under each), sometimes before it has
# passed on what was said: such a run is done again, twice at most.
ulfm_run() {
    local lane=$1 output status try
    shift
    for try in 1 2 3; do
        output=$(limit_s=12 mpirun_run 4 --with-ft ulfm --mca pml multilane --mca btl "self,$lane" \
            --mca btl_tcp_if_include lo "$@" 2>&1)
        status=$?
        printf 'try %s: status %s\n%s\n' "$try" "$status" "$output"
        grep -q 'others went on' <<<"$output" && return
        [ $status = 124 ] || [ $status = 137 ] || return 1
    done
    return 1
}
# Without ULFM mpirun leaves the others alone, and the errors that they get name the dead.
killed_without_ulfm() {
    local output
    output=$(limit_s=30 mpirun_run 4 --enable-recovery --mca pml multilane --mca btl self,shm "$@" 2>&1)
    printf '%s\n' "$output"
    [ "$(grep -c '^rank [0-3]: an error' <<<"$output")" = 3 ] &&
        grep -q 'multilane: lane shm to rank [0-3] .* that process counts as failed' <<<"$output"
}
# In collectives through the memory of the node each rank dies once, by itself and by a timer.
killed_seeds="1 2 4 7" killed="--mca pml_multilane_wait sleep -- collective"
# shellcheck disable=SC2086
if [ -n "$sanitizer" ]; then
    skip "${prefix}neighbours.ulfm" "a killed process ends a job of sanitized programs"
elif [ "$series" = 4.1 ]; then
    skip "${prefix}neighbours.ulfm" "Open MPI 4.1 has no ULFM"
    for seed in $killed_seeds; do
        check "${prefix}neighbours.killed.$seed" killed_without_ulfm $killed "$seed" 0 --killed
    done
else
    for seed in $killed_seeds; do
        check "${prefix}neighbours.killed.$seed" ulfm_run shm $killed "$seed" 0 --killed
    done
    for lane in "$sm" tcp shm; do
        check "${prefix}neighbours.ulfm.$lane" ulfm_run "$lane" -- failure
    done
    check "${prefix}neighbours.ulfm.node" ulfm_run shm --mca pml_multilane_wait sleep -- failure barriers
fi
