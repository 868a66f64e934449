// SPDX-License-Identifier: BSD-3-Clause
// Kernels of the benchmark device_ring: messages to and fro between two ends, by the ring's own
// kernel (each end waits for a counter in its own memory) and by one state word a chunk in the
// receiver's memory, at which the sender has to look from afar.
#include "common/memory/device.cuh"

#include "common/memory/chunk.h"
#include "test/bench/device_ring.h"

extern "C" __global__ void turns_local(const struct turns given)
{
    struct turns turns = given;
    bool goes_on = true;
    for (uint32_t i = 0; i < turns.count && goes_on; i++) {
        goes_on = chunk_run(turns.begins ? &turns.out : &turns.in, threadIdx.x, blockDim.x) &&
                  chunk_run(turns.begins ? &turns.in : &turns.out, threadIdx.x, blockDim.x);
        turns.out.first++;
        turns.in.first++;
    }
    if (threadIdx.x == 0 && !goes_on)
        kernel_release(turns.gave_up, 1);
}

// The word of the chunk is 0 while the sender may fill it, and 1 while the receiver may empty it.
static __device__ bool single_run(const struct chunk_job *job, uint64_t words)
{
    __shared__ bool goes_on;
    uint64_t word = words + job->first % job->ring_chunks * CHUNK_LINE_BYTES;
    uint64_t wanted = job->is_sender ? 0 : 1;
    if (threadIdx.x == 0) {
        goes_on = false;
        for (uint32_t look = 0; look < job->looks && !goes_on; look++)
            goes_on = kernel_acquire(word) == wanted;
    }
    __syncthreads();
    if (!goes_on)
        return false;
    chunk_move(job, job->first, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
        kernel_release(word, !wanted);
    return true;
}

extern "C" __global__ void turns_single(const struct turns given)
{
    struct turns turns = given;
    bool goes_on = true;
    for (uint32_t i = 0; i < turns.count && goes_on; i++) {
        if (turns.begins)
            goes_on =
                single_run(&turns.out, turns.out_words) && single_run(&turns.in, turns.in_words);
        else
            goes_on =
                single_run(&turns.in, turns.in_words) && single_run(&turns.out, turns.out_words);
        turns.out.first++;
        turns.in.first++;
    }
    if (threadIdx.x == 0 && !goes_on)
        kernel_release(turns.gave_up, 1);
}
