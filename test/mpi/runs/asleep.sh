# SPDX-License-Identifier: BSD-3-Clause
# Alone: it measures the time of processors.
# Waiting that sleeps (pml_multilane_wait): it takes no processor, nothing is lost or comes late, and
# where the kernel refuses the sleep it is short naps.

# What is measured is time; flood, threads and kill are what a sanitizer may find something in.
elsewhere_only 'series=asleep.@(flood|threads|threads.shm-sock|cpu|cpu.tcp|session|kill.*)' \
    'asan=asleep.@(flood*|threads*|session|kill.*)'

# asleep NAME RANKS [mpirun's arguments] -- PROGRAM...
asleep() {
    local name=$1 ranks=$2
    shift 2
    mpi "asleep.$name" "$ranks" --mca pml multilane --mca btl "${asleep_btl:-self,shm}" \
        --mca pml_multilane_wait sleep "$@"
}

asleep_runs() {
    local n kills=1
    asleep flood 5 -- asleep flood
    asleep threads 2 -- asleep threads
    # A thread says that something has come over a socket, alone and beside shm's bell.
    asleep_btl=self,sock asleep flood.sock 5 -- asleep flood
    asleep_btl=self,sock asleep threads.sock 2 -- asleep threads
    asleep_btl=self,shm,sock asleep threads.shm-sock 2 -- asleep threads
    [ "$sanitizer" = tsan ] && return
    asleep cpu 4 -- asleep cpu
    # Sockets are in Open MPI's event loop, which does not wake: short sleeps.
    asleep_btl=self,tcp asleep cpu.tcp 4 --mca btl_tcp_if_include lo -- asleep cpu
    asleep_btl=self,sock asleep cpu.sock 4 -- asleep cpu
    asleep cpu.no-futex 4 -- "$build/test/mpi/shm_confine" no-futex "$build/test/mpi/asleep" cpu
    asleep test 2 -- asleep test
    asleep stop 4 -- asleep stop
    for n in 5 12; do
        asleep "traffic.$n" "$n" -- shm_traffic 1
    done
    mpi asleep.spin.traffic.5 5 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait spin \
        -- shm_traffic 1
    # MPI is begun and ended several times in a process.
    [ "$series" = 4.1 ] || asleep session 3 -- session --seconds 20
    if [ -n "$MULTILANE_LONG" ]; then
        kills=100
        asleep traffic.2 2 -- shm_traffic 10
        asleep traffic.40 40 -- shm_traffic 10
        asleep traffic.129 129 -- shm_traffic 1
    fi
    # mpirun says so, or a rank that has noticed it before.
    for ((n = 1; n <= kills; n++)); do
        mpi_fails "asleep.kill.$n" 'signal 15|that process has ended' 4 --mca pml multilane --mca btl self,shm \
            --mca pml_multilane_wait sleep -- asleep kill $((RANDOM % 50))
    done
}
asleep_runs
