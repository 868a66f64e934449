# SPDX-License-Identifier: BSD-3-Clause
# What the three parts mpi-4.1, mpi-5.0 and mpi-6.0 have in common: the machine's own Open MPI where
# it is of that series, a root folder of the Debian that has it otherwise. Sourced by them.

# Whether this machine's own Open MPI, or the one it would install, is of the part's series.
series_is_native() {
    local native
    native=$(native_series)
    [ -n "$native" ] || { packages_need_to_build >/dev/null && native=$(native_series); }
    [ "$native" = "$series" ]
}

part_cannot_run() {
    series_is_native || root_impossible
}

part_run() {
    if series_is_native; then
        . "$top/test/unit/run.sh"
        check "$part.build" series_build_native || return 1
        logs=$logs mpi_run "$build_root/gcc" "$part."
    else
        local suite
        suite=$(suite_of_series "$series")
        locked "root-$suite" series_in_root "$suite"
    fi
}

series_in_root() {
    local suite=$1 root=$roots/$1
    check "$part.root" root_make "$suite" "$suite" "$(series_packages)" || return 1
    check "$part.build" series_build_in_root "$suite" || return 1
    # The PML's unit tests replace functions of Open MPI, which differ; the others know none. Make is content with an
    # empty list of tests, and not with a test that is not there.
    $sudo rm -f "$root"/build/test/unit/*.trs
    # shellcheck disable=SC2016
    check "$part.unit" root_run "$suite" 'cd /build && export MULTILANE_WALKS=${MULTILANE_LONG:-no} &&
        tests="\$(or \$(pml_tests),no-pml-tests) \$(or \$(job_tests),no-job-tests)" &&
        make -j$(nproc) check TESTS="$tests" check_PROGRAMS="$tests"'
    series_unit_skips "$root/build/test/unit"
    $sudo rm -f "$root"/build/results{,.end,.log}
    # shellcheck disable=SC2016
    root_run "$suite" "results=/build/results logs=/build/logs MULTILANE_BUILD=/build
        export results logs MULTILANE_BUILD; : >\$results
        /multilane/test/mpi/run /build '$part.'"
    results_take "$part.end" "$root/build/results"
}

series_unit_skips() { # FOLDER
    local trs
    for trs in $(grep -l '^:test-result: SKIP' "$1"/*.trs 2>/dev/null); do
        skip "$part.unit.$(basename "$trs" .trs)" "$(grep -v '^SKIP ' "${trs%.trs}.log" | tail -n 1)"
    done
}

# Beside the parts before, unless this one has begun.
part_build() {
    local suite
    series_is_native || [ -n "$(root_impossible)" ] && return
    suite=$(suite_of_series "$series")
    locked "root-$suite" eval '[ -e "$results.$part" ] ||
        { root_make "$suite" "$suite" "$(series_packages)" && series_build_in_root "$suite"; }'
}

series_packages() {
    case $series in
    4.1) printf '%s' "$root_packages" ;;
    *) printf '%s libpmix-dev gdb' "$root_packages" ;;
    esac
}

series_build_native() {
    unit_build gcc && make -C "$build_root/gcc" -j"$jobs" check TESTS=
}

# Configured anew only when configure has changed, as build_make does.
series_build_in_root() {
    packages_need_to_build && sources_prepare && root_run "$1" '
        set -e
        mkdir -p /build && cd /build
        if ! [ Makefile -nt /multilane/configure ]; then
            CONFIG_SHELL=/bin/dash /multilane/configure --prefix=/build/inst --with-component-dir=/build/inst/components \
                --enable-werror
        fi
        make -j$(nproc)
        make install
        # Of the unit tests those that part_run runs; with --long all are built.
        programs="\$(filter-out test/unit/%,\$(check_PROGRAMS)) \$(pml_tests) \$(job_tests)"
        [ -z "${MULTILANE_LONG:-}" ] || programs="\$(check_PROGRAMS)"
        programs=$(printf "include Makefile\nshow:\n\t@echo %s\n" "$programs" | make -s -f - show)
        make -j$(nproc) check TESTS= check_PROGRAMS="$programs"'
}
