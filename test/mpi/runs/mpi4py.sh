# SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own tests, and with --long petsc4py's: what passes with Open MPI's PML passes with ours. Their
# sources come from PyPI.
# vader and sm refuse the processes that its tests spawn: hence tcp beside them.
mpi4py_python=/usr/bin/python3 # Debian's, which python3-mpi4py is for
mpi4py_form="--map-by :OVERSUBSCRIBE"
[ "$series" = 4.1 ] && mpi4py_form="--oversubscribe --mca osc ^ucx"

# own_tests_compare PACKAGE RANKS [ARGUMENTS...]
own_tests_compare() {
    local package=$1 ranks=$2 name="${prefix}$1.$2" log status
    shift 2
    is_wanted "$name" || return 0
    mkdir -p "$logs" && log=$logs/$package.$ranks.log
    timeout --kill-after=10 700 "$mpi4py_python" "$top/test/mpi/mpi4py_compare" \
        --package "$package" --folder "$build/mpi4py" --ranks "$ranks" --seconds 300 "$@" --mpirun \
        "$mpirun $mpi4py_form --mca btl self,$sm,tcp --mca btl_tcp_if_include lo" \
        >"$log" 2>&1 </dev/null
    status=$?
    case $status in
    0) result passed "$name" "$(tail -n 1 "$log")" ;;
    77) skip "$name" "$(tail -n 1 "$log")" ;;
    *)
        result failed "$name" "exit status $status; the end of $log:"
        tail -n 40 "$log" | sed 's/^/        | /'
        ;;
    esac
}

# Without the 1900 of staggered grids and of those without structure, one of which fails with 2 ranks whatever the PML.
petsc4py_compare() {
    is_wanted "${prefix}petsc4py.2" || return 0
    if ! packages_need python3-petsc4py >"$build/petsc4py.packages" 2>&1; then
        skip "${prefix}petsc4py" "$(tail -n 1 "$build/petsc4py.packages")"
        return
    fi
    # Without PETSc's headers nothing names its folder.
    PETSC_DIR=$(echo /usr/lib/petscdir/petsc3*/*-real) own_tests_compare petsc4py 2 \
        --exclude test_dmplex --exclude test_dmstag
}

if [ -n "$sanitizer" ]; then
    skip "${prefix}mpi4py" "Python is not built with the sanitizer that the components need"
elif ! packages_need python3-mpi4py python3-pip >"$build/mpi4py.packages" 2>&1; then
    skip "${prefix}mpi4py" "$(tail -n 1 "$build/mpi4py.packages")"
elif [ -n "${MULTILANE_LONG:-}" ]; then
    for ranks in 1 2 3 5; do own_tests_compare mpi4py $ranks; done
    [ "$series" != 4.1 ] || petsc4py_compare
elif [ "$series" = 4.1 ]; then
    own_tests_compare mpi4py 2
else
    # With more ranks 5.0 and 6.0 take minutes over the tests that spawn, under ob1 as well.
    own_tests_compare mpi4py 1
fi
