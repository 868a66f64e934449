# SPDX-License-Identifier: BSD-3-Clause
# Programs from Debian that check what they compute, unchanged, over Multilane: HPC Challenge,
# ScaLAPACK's tests, MUMPS, NetPIPE's integrity check, LAMMPS, mpi4py's benchmarks.
programs_folder=$build/programs
programs_place=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null)
programs_place=/usr/lib/${programs_place:-x86_64-linux-gnu}

# program_run NAME RANKS PML BTLS COMMAND...: in a folder of its own under $programs_folder, where its
# output is in the file `output`. A relative word starting with @ stands for a file to read input from.
program_run() {
    local name=$1 ranks=$2 pml=$3 btls=$4 input=/dev/null form="--map-by :OVERSUBSCRIBE" status
    shift 4
    case $1 in @*) input=${1#@} && shift ;; esac
    [ "$series" = 4.1 ] && form="--oversubscribe"
    mkdir -p "$programs_folder/$name" && cd "$programs_folder/$name" || return 1
    # shellcheck disable=SC2086
    timeout --kill-after=10 "$limit_s" "$mpirun" -n "$ranks" $form --mca pml "$pml" \
        --mca btl "$btls" --mca btl_tcp_if_include lo "$@" <"$input" >output 2>&1
    status=$?
    cat output
    return $status
}

# All parts of HPC Challenge, small. HPL prints PASSED or FAILED for each of its residuals, the other
# parts their errors, and the whole its Success.
program_hpcc() {
    local btls=$1 limit_s=300
    mkdir -p "$programs_folder/hpcc-$btls" || return 1
    printf '%s\n' 'HPLinpack benchmark input file' 'made by a test' HPL.out 8 1 300 1 48 0 1 2 2 16.0 \
        1 2 1 4 1 2 1 1 1 0 1 0 2 64 0 0 1 8 '##### PTRANS' 0 300 0 48 \
        >"$programs_folder/hpcc-$btls/hpccinf.txt"
    rm -f "$programs_folder/hpcc-$btls/hpccoutf.txt"
    program_run "hpcc-$btls" 4 multilane "$btls" hpcc || return 1
    grep -E 'FAILED|PASSED|residual|Success|rror' hpccoutf.txt
    grep -q 'PASSED$' hpccoutf.txt && ! grep -q 'FAILED$' hpccoutf.txt &&
        grep -qx 'Success=1' hpccoutf.txt &&
        awk -F= '$1 == "PTRANS_residual" || $1 == "MPIFFT_maxErr" { seen++; bad += $2 !~ /^[0-9]/ || $2 > 1e-9 }
            /^MPIRandomAccess(_LCG)?_ErrorsFraction=/ { seen++; bad += $2 > 0.01 }
            END { exit seen != 4 || bad }' hpccoutf.txt
}

program_scalapack() {
    local btls=$1 test=$2 tests=$programs_place/scalapack/openmpi-tests
    mkdir -p "$programs_folder/scalapack-$test-$btls" &&
        cp "$tests"/*.dat "$programs_folder/scalapack-$test-$btls" || return 1
    program_run "scalapack-$test-$btls" 4 multilane "$btls" "$tests/$test" || return 1
    grep -Eq '^ *[1-9][0-9]* tests completed and passed' output &&
        grep -Eq '^ *0 tests completed and failed' output
}

# Its solution is 1 2 3 4 5.
program_mumps() {
    program_run "mumps-$1" 3 multilane "$1" @/usr/lib/mumps/input_simpletest_real \
        /usr/lib/mumps/dsimpletest || return 1
    awk '/Solution is/ { for (i = 3; i <= NF; i++) x[++n] = $i; more = n < 5; next }
        more { for (i = 1; i <= NF; i++) x[++n] = $i; more = n < 5 }
        END { for (i = 1; i <= 5; i++) if (x[i] !~ /[0-9]/ || x[i] - i > 1e-9 || i - x[i] > 1e-9) exit 1 }' output
}

program_netpipe() {
    program_run "netpipe-$1" 2 multilane "$1" NPopenmpi -i -u 300000 || return 1
    grep -qi 'passed' output && ! grep -qi 'failed' output
}

# The same steps, to the last printed digit, as over Open MPI's own PML.
program_lammps() {
    local btls=$1 pml in=/usr/share/lammps/examples/melt/in.melt
    for pml in multilane ob1; do
        program_run "lammps-$pml-$btls" 4 "$pml" "$(test $pml = ob1 && echo self,$sm || echo "$btls")" \
            lmp -in $in -log none || return 1
        awk '$1 == "Step" { steps = 1; next } /^Loop time/ { steps = 0 } steps' output >steps
        [ "$(wc -l <steps)" -ge 5 ] || return 1
    done
    cmp "$programs_folder/lammps-multilane-$btls/steps" "$programs_folder/lammps-ob1-$btls/steps"
}

program_mpi4py() {
    program_run "mpi4py-$1" 4 multilane "$1" /usr/bin/python3 -m mpi4py.bench ringtest -l 100 -s 10 -n 100000 &&
        grep -q 'time for 100 loops' output || return 1
    program_run "mpi4py-$1" 4 multilane "$1" /usr/bin/python3 -m mpi4py.bench helloworld &&
        [ "$(grep -c 'Hello, World! I am process [0-3] of 4' output)" = 4 ]
}

# program_is_here NAME PACKAGE...: installed, now if need be. Debian's testing lacks one now and then.
program_is_here() {
    local name=$1
    shift
    packages_need "$@" >"$build/programs.packages" 2>&1 && return
    skip "${prefix}programs.$name" "$(tail -n 1 "$build/programs.packages")"
    return 1
}

if [ -n "$sanitizer" ]; then
    skip "${prefix}programs" "they are not built with the sanitizer that the components need"
elif [ "$series" != 4.1 ] && [ -z "${MULTILANE_LONG:-}" ]; then
    skip "${prefix}programs" "installing them takes longer than running them; 4.1 runs them, and --long does here"
else
    # They take seconds: one that stands still for a minute and goes on is to be seen.
    if [ -n "$MULTILANE_LONG" ]; then limit_s=300; else limit_s=40; fi
    programs_here=
    program_is_here hpcc hpcc && programs_here="$programs_here hpcc"
    program_is_here mumps mumps-test && programs_here="$programs_here mumps"
    program_is_here netpipe netpipe-openmpi && programs_here="$programs_here netpipe"
    program_is_here mpi4py python3-mpi4py && programs_here="$programs_here mpi4py"
    # Not xdllt: in 5 of 12 runs its processes wait in different collectives for ever, under ob1 as well.
    program_is_here scalapack scalapack-mpi-test &&
        for program in xdqr ${MULTILANE_LONG:+xdlu xdls xdsyevr xzsep}; do
            programs_here="$programs_here scalapack-$program"
        done
    [ -n "${MULTILANE_LONG:-}" ] && program_is_here lammps lammps lammps-examples &&
        programs_here="$programs_here lammps"
    for btls in self,shm self,$sm${MULTILANE_LONG:+ self,tcp}; do
        for program in $programs_here; do
            check "${prefix}programs.$program.$btls" "program_${program%%-*}" "$btls" "${program#*-}"
        done
    done
fi
true
