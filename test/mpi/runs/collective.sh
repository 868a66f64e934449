# SPDX-License-Identifier: BSD-3-Clause
# Collective operations through the memory of a node (coll/node), which are checked, mixed with those that
# are too large for it, on communicators that come and go.
#
# Processors count as short, so that it is used on machines with many, too.
collective="--mca pml multilane --mca btl self,shm --mca pml_multilane_wait sleep"
elsewhere_only 'series=collective.@(looks*|threads|3|5|9|3.large|tcp|differ.*|no-memory.*|explained|acoll.*)' 'asan=collective.@(looks*|threads|3|5|3.large|differ.*|explained)' 'tsan=collective.@(looks*|threads|3|differ.*|explained)'
rounds=400
[ -z "$whole" ] || rounds=2000
[ -z "$MULTILANE_LONG" ] || rounds=20000

# shellcheck disable=SC2086
collective_runs() {
    local ranks
    for ranks in 2 3 4 5 9 17; do
        mpi collective.$ranks $ranks $collective -- collective "$ranks" $rounds --by coll_node_operations
    done
    # Few operations of other numbers of ranks; one alone has no area.
    mpi collective.1 1 $collective -- collective 1 60
    for ranks in 6 7 8; do
        mpi collective.$ranks $ranks $collective -- collective "$ranks" 60 --by coll_node_operations
    done
    [ -z "$MULTILANE_LONG" ] || mpi collective.33 33 $collective -- collective 33 600 --by coll_node_operations
    # Each thread has a communicator, and so an area, of its own.
    mpi collective.threads 3 $collective -- collective 21 60 --by coll_node_operations --threads 3
    # Each has its processor.
    mpi collective.looks 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait spin \
        -- collective 2 $rounds --by coll_node_operations
    mpi collective.looks.5 5 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait spin \
        --mca coll_node_looking_ranks 5 -- collective 5 $((rounds / 4)) --by coll_node_operations
    mpi collective.looks.beside 2 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait spin \
        --mca pml_multilane_protocol rndv-put -- collective 3 20 --by coll_node_operations 1000
    mpi_fails collective.looks.differ 'rank 0 calls MPI_Barrier, and rank 1 calls MPI_Allreduce|rank 1 calls MPI_Allreduce, and rank 0 calls MPI_Barrier' \
        2 --mca pml multilane --mca btl self,shm --mca pml_multilane_wait spin -- collective 3 10 --differ 1
    # Some of them are too large for it.
    for ranks in 3 9; do
        mpi collective.$ranks.large $ranks $collective --mca coll_node_bytes_max 100000 \
            -- collective $((10 + ranks)) $rounds --by coll_node_operations
    done
    # Other messages come meanwhile, and what is left out is not there.
    mpi collective.without 4 --mca pml multilane --mca btl self,shm --mca coll ^node -- collective 1 100
    mpi collective.tcp 3 --mca pml multilane --mca btl self,tcp --mca btl_tcp_if_include lo -- collective 2 100
    # The report says which way they went, and why not.
    mpi_says collective.explained 'MPI_Barrier +0 +[0-9]+ .* memory of the node$' 3 $collective \
        --mca pml_multilane_explain 1 -- collective 4 100
    mpi_says collective.explained.first 'MPI_Bcast .* Open MPI: first operations of a communicator$' 3 $collective \
        --mca pml_multilane_explain 1 -- collective 4 100
    mpi_says collective.explained.gather 'MPI_Gather .* memory of the node$' 3 $collective \
        --mca pml_multilane_explain 1 -- collective 4 100
    mpi_says collective.explained.large 'MPI_Bcast .* Open MPI: too many bytes$' 3 $collective \
        --mca pml_multilane_explain 1 --mca coll_node_bytes_max 100 -- collective 4 100
    mpi_says collective.explained.tcp 'MPI_Barrier +0 +[0-9]+ .* Open MPI: no memory of btl/shm$' 3 --mca pml multilane \
        --mca btl self,tcp --mca btl_tcp_if_include lo --mca pml_multilane_explain 1 -- collective 2 100
    mpi_says collective.bad-bytes-max 'coll_node_bytes_max is "lots"; it can be 0 to' 2 $collective \
        --mca coll_node_bytes_max lots -- collective 5 100
    # Processes whose parameters differ go the same way.
    # shellcheck disable=SC2016
    mpi collective.unlike 3 $collective -- "$BASH" -c 'export OMPI_MCA_coll_node_bytes_max=$((64 << 4 * OMPI_COMM_WORLD_RANK))
        exec "$0" 5 200 --by coll_node_operations' "$build/test/mpi/collective"
    local count
    for count in 1 200000; do
        mpi_fails collective.differ.$count 'call different collective operations: rank [02] calls MPI_Barrier, and rank 1 calls MPI_Allreduce|rank 1 calls MPI_Allreduce, and rank [02] calls MPI_Barrier' \
            3 $collective -- collective 3 10 --differ $count
    done
    # Each pair with rank 1 first, and last.
    local pair seed
    for pair in "barrier bcast" "barrier reduce" "bcast allreduce" "allreduce bcast" "bcast short-bcast"; do
        for seed in 3 4; do
            # shellcheck disable=SC2086
            mpi_fails "collective.differ.${pair/ /-and-}.$seed" 'call different collective operations: rank [01] calls ' \
                2 $collective -- collective $seed 10 --differ 20000 $pair
        done
    done
    # An allocation fails in one process. A sanitizer has an allocator of its own.
    local elements
    for elements in 65536 262144; do
        [ -n "$sanitizer" ] || mpi collective.no-memory.$elements 3 $collective --mca coll_node_bytes_max 4000000 \
            -- no_memory image $elements
    done
    [ -n "$sanitizer" ] || mpi_fails collective.no-memory.module 'no memory for a communicator' 3 $collective -- no_memory module
}
collective_runs

# 6.0's own collectives within a node, put before coll/node, whose priority is 90.
if "$ompi_info" --parsable | grep -q '^mca:coll:acoll:'; then
    acoll="--mca pml multilane --mca btl self,shm --mca coll_acoll_priority 95"
    # shellcheck disable=SC2086
    mpi collective.acoll.random 4 $acoll -- collective 6 400
    # shellcheck disable=SC2086
    mpi collective.acoll.conform 4 $acoll -- conform --seconds 60
else
    skip "${prefix}collective.acoll" "this Open MPI has none"
fi
