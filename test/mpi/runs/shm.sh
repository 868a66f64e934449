# SPDX-License-Identifier: BSD-3-Clause
# The lane over shared memory under Open MPI's own PML: sizes, traffic, one-sided operations.
shm="--mca pml ob1 --mca btl self,shm"
if [ -n "${MULTILANE_LONG:-}" ]; then shm_seconds=60; else shm_seconds=3; fi

# shellcheck disable=SC2086
shm_runs() {
    mpi shm.sizes 2 $shm -- shm_sizes
    mpi shm.sizes.no-single-copy 2 $shm --mca btl_shm_single_copy none -- shm_sizes 7
    mpi shm.sizes.small-ring 2 $shm --mca btl_shm_ring_bytes 16k -- shm_sizes 7
    mpi shm.traffic.2 2 $shm -- shm_traffic $shm_seconds
    mpi shm.traffic.5 5 $shm -- shm_traffic $shm_seconds
    mpi shm.traffic.5.no-single-copy 5 $shm --mca btl_shm_single_copy none -- shm_traffic $shm_seconds
    mpi shm.traffic.5.small-ring 5 $shm --mca btl_shm_ring_bytes 16k -- shm_traffic $shm_seconds
    mpi shm.traffic.64 64 $shm -- shm_traffic $shm_seconds
    mpi shm.rma 4 $shm --mca osc rdma -- shm_rma
    mpi shm.rma.no-single-copy 4 $shm --mca osc rdma --mca btl_shm_single_copy none -- shm_rma
    mpi_fails shm.bad-single-copy 'btl_shm_single_copy is "xpmem"; it can be auto, cma or none' \
        2 $shm --mca btl_shm_single_copy xpmem -- shm_sizes 10000
    mpi_fails shm.bad-ring-bytes 'btl_shm_ring_bytes is "100k"; it can be a power of two' \
        2 $shm --mca btl_shm_ring_bytes 100k -- shm_sizes 10000
    mpi_fails shm.bad-lane-latency 'btl_shm_lane_latency is "abc", which is not a number' \
        2 $shm --mca btl_shm_lane_latency abc -- shm_sizes 10000
}
shm_runs
