# SPDX-License-Identifier: BSD-3-Clause
# Part apps: test/apps/run, with the results compared and no times.
about="programs from Debian (GROMACS, LAMMPS, ...) compute the same over Multilane, ob1 and UCX (--long)"

. "$top/test/unit/run.sh"

part_run() {
    local program
    if [ -z "$MULTILANE_LONG" ]; then
        skip "$part" "it installs half a gigabyte of programs: with --long"
        return
    fi
    check "$part.build" unit_build gcc || return
    for program in $("$top/test/apps/run" --list | cut -d ' ' -f 1); do
        ! is_wanted "$part.$program" || apps_one "$program"
    done
}

# Seconds each.
apps_one() {
    local log=$logs/$1.log status
    mkdir -p "$logs"
    "$top/test/apps/run" --build "$build_root/gcc" --only "$1" --runs 1 >"$log" 2>&1
    status=$?
    case $status in
    0) result passed "$part.$1" ;;
    77) skip "$part.$1" "$(tail -n 1 "$log")" ;;
    *)
        result failed "$part.$1" "exit status $status; the end of $log:"
        tail -n 40 "$log" | sed 's/^/        | /'
        ;;
    esac
}
