// SPDX-License-Identifier: BSD-3-Clause
// The kernel of test/bench/device_ring. A wait in it is bounded by a number of looks.
#include <stdint.h>

// Signals are shared with other devices and other processes: the scope is the whole system. Before
// compute capability 7.0 devices have fences only.
static __device__ __forceinline__ uint64_t kernel_acquire(uint64_t address)
{
    uint64_t value;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
#else
    value = *reinterpret_cast<volatile uint64_t *>(address);
    __threadfence_system();
#endif
    return value;
}

static __device__ __forceinline__ void kernel_release(uint64_t address, uint64_t value)
{
#if __CUDA_ARCH__ >= 700
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
#else
    __threadfence_system();
    *reinterpret_cast<volatile uint64_t *>(address) = value;
#endif
}

#define KERNEL_PLACE(type, address) (reinterpret_cast<type *>(address))
#define KERNEL_FUNCTION             static __device__ __forceinline__
#define KERNEL_BARRIER()            __syncthreads()
#define KERNEL_SHARED               __shared__
#define KERNEL_PAUSE()
#define KERNEL_ACQUIRE(address)        kernel_acquire(address)
#define KERNEL_RELEASE(address, value) kernel_release(address, value)
#include "test/bench/device_ring.h"

extern "C" __global__ void multilane_ring(const struct ring_job job)
{
    ring_block(&job, blockIdx.x, threadIdx.x, blockDim.x);
}
