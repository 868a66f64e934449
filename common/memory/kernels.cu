// SPDX-License-Identifier: BSD-3-Clause
// What runs on the device. Nothing here waits without bound: a kernel is started for work that is
// there, or looks some times for what the other end of a ring is about to do, and ends.
#include "common/memory/device.cuh"

#include "common/memory/chunk.h"
#include "common/memory/pack.h"

extern "C" __global__ void multilane_pack(const struct pack pack)
{
    uint64_t words = pack_words(&pack), step = (uint64_t) gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        pack_word(&pack, i);
}

// In one block.
extern "C" __global__ void multilane_chunks(const struct chunk_job job)
{
    chunk_run(&job, threadIdx.x, blockDim.x);
}
