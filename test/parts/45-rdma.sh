# SPDX-License-Identifier: BSD-3-Clause
# Part rdma: the lane over RDMA in the lab of test/lab/rdma: all with this machine's Open MPI, a
# short run with each other series that the parts before have built.
about="RDMA: conformance and traffic over btl/verbs alone, in a virtual machine with soft RoCE"

. "$top/test/unit/run.sh"

part_cannot_run() {
    "$top/test/lab/rdma" --check 2>&1
}

# What the machine runs: the native build, then the root folders, results by way of /lab.
rdma_commands() {
    local series root
    # A machine whose kernel breaks under the command is not the command's failure: it gets another.
    [ -z "$MULTILANE_LONG" ] ||
        echo '[ -e /lab/broke ] || { touch /lab/broke; sync; echo c >/proc/sysrq-trigger; sleep 60; }'
    printf ': >/lab/results\nrm -f /lab/results.end /lab/results.log\n' # of a machine that broke
    # The short runs of the other series come last and have their own share of the time.
    printf 'export MULTILANE_RDMA_UNTIL_S=%s MULTILANE_AGAIN=%s\n' "${MULTILANE_RDMA_UNTIL_S:-400}" "$MULTILANE_AGAIN"
    printf 'export MULTILANE_ROOTS=%q MULTILANE_BUILD=%q MULTILANE_LONG=%q\n' "$roots" "$build_root" \
        "$MULTILANE_LONG"
    printf 'top=%q\n. "$top/test/lib.sh"\n' "$top"
    printf 'export MULTILANE_RDMA_LAB=%s results=/lab/results logs=/lab/logs\nmpi_run %q %q tls verbs rights\n' \
        "$([ -n "$MULTILANE_FULL" ] && echo all || echo short)" "$build_root/gcc" "$part."
    for series in $(other_series); do
        root=$(suite_of_series "$series")
        is_built "$root" || continue
        printf 'root_run %s "export MULTILANE_RDMA_LAB=other MULTILANE_RDMA_UNTIL_S=500 results=/results logs=/logs
            : >/results; rm -f /results.end /results.log; /multilane/test/mpi/run /build %s verbs"\nresults_take %s %q\n' \
            "$root" "$part.$root." "$part.$root.end" "$roots/$root/results"
    done
    printf 'results_end\n'
}

other_series() {
    [ -n "$MULTILANE_FULL" ] || return 0
    printf '%s\n' 4.1 5.0 6.0 | grep -vx "$(native_series)"
}

# By the part before that runs it.
is_built() {
    [ -f "$roots/$1/build/test/build-env" ]
}

part_run() {
    local folder=$logs/lab series root
    for series in $(other_series); do
        root=$(suite_of_series "$series")
        is_built "$root" ||
            skip "$part.$root" "the part mpi-$series, which builds for it, has not run here"
    done
    check "$part.build" rdma_build || return 1
    mkdir -p "$folder" || return 1
    [ -z "$MULTILANE_LONG" ] || check "$part.numa" rdma_numa
    "$top/test/lab/rdma" --limit "${MULTILANE_RDMA_LIMIT_S:-$([ -n "$MULTILANE_LONG" ] && echo 7200 || echo 870)}" --folder "$folder" -- \
        "$(rdma_commands); true"
    local status=$?
    results_take "$part.end" "$folder/results"
    if [ -n "$MULTILANE_LONG" ]; then
        check "$part.kernel-breaks" grep 'Kernel panic' "$folder/console.1"
    else
        skip "$part.kernel-breaks" "the machine starts twice for it: with --long"
    fi
    [ $status = 0 ] || result failed "$part.machine" "status $status, see above"
}

# Shared memory of the shm lane lies on the node of the side that polls it. In the lab because it has
# the machine.
rdma_numa() {
    local status
    "$top/test/lab/rdma" --numa --limit 120 -- "$build_root/gcc/test/unit/shm_segment" >"$logs/numa" 2>&1
    status=$?
    cat "$logs/numa"
    [ $status = 0 ] && grep -q 'memory was placed on two nodes' "$logs/numa"
}

rdma_build() {
    unit_build gcc && make -C "$build_root/gcc" -j"$jobs" check TESTS=
}
