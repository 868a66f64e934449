# SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own tests: what passes with Open MPI's PML passes with ours. Its sources come from PyPI.
# vader and sm refuse the processes that its tests spawn: hence tcp beside them.
mpi4py_python=/usr/bin/python3 # Debian's, which python3-mpi4py is for
mpi4py_form="--map-by :OVERSUBSCRIBE"
[ "$series" = 4.1 ] && mpi4py_form="--oversubscribe --mca osc ^ucx"

mpi4py_compare() {
    local ranks=$1 name="${prefix}mpi4py.$1" log status
    is_wanted "$name" || return 0
    mkdir -p "$logs" && log=$logs/mpi4py.$ranks.log
    timeout --kill-after=10 700 "$mpi4py_python" "$top/test/mpi/mpi4py_compare" \
        --folder "$build/mpi4py" --ranks "$ranks" --seconds 300 --mpirun \
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

if [ -n "$sanitizer" ]; then
    skip "${prefix}mpi4py" "Python is not built with the sanitizer that the components need"
elif ! packages_need python3-mpi4py python3-pip >"$build/mpi4py.packages" 2>&1; then
    skip "${prefix}mpi4py" "$(tail -n 1 "$build/mpi4py.packages")"
elif [ -n "${MULTILANE_LONG:-}" ]; then
    for ranks in 1 2 3 5; do mpi4py_compare $ranks; done
elif [ "$series" = 4.1 ]; then
    mpi4py_compare 2
else
    # With more ranks 5.0 and 6.0 take minutes over the tests that spawn, under ob1 as well.
    mpi4py_compare 1
fi
