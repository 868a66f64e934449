// SPDX-License-Identifier: BSD-3-Clause
// What runs on the device. Nothing here waits for anything: a kernel is started for work that is
// there, and ends.
#define KERNEL_PLACE(type, address) (reinterpret_cast<type *>(address))
#define KERNEL_FUNCTION             static __device__ __forceinline__
#include "common/memory/pack.h"

extern "C" __global__ void multilane_pack(const struct pack pack)
{
    uint64_t words = pack_words(&pack), step = (uint64_t) gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        pack_word(&pack, i);
}
