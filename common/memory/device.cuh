// SPDX-License-Identifier: BSD-3-Clause
// How kernels reach memory and wait for each other, on the device; included before their sources.
#ifndef COMMON_MEMORY_DEVICE_CUH
#define COMMON_MEMORY_DEVICE_CUH

#include <stdint.h>

#define KERNEL_PLACE(type, address) (reinterpret_cast<type *>(address))
#define KERNEL_FUNCTION             static __device__ __forceinline__
#define KERNEL_BARRIER()            __syncthreads()
#define KERNEL_SHARED               __shared__

// Counters are shared with other devices and other processes: the scope is the whole system. Before
// compute capability 7.0 devices have fences only.
#if __CUDA_ARCH__ >= 700
static __device__ __forceinline__ uint64_t kernel_acquire(uint64_t address)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

static __device__ __forceinline__ void kernel_release(uint64_t address, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}
#else
static __device__ __forceinline__ uint64_t kernel_acquire(uint64_t address)
{
    uint64_t value = *reinterpret_cast<volatile uint64_t *>(address);
    __threadfence_system();
    return value;
}

static __device__ __forceinline__ void kernel_release(uint64_t address, uint64_t value)
{
    __threadfence_system();
    *reinterpret_cast<volatile uint64_t *>(address) = value;
}
#endif

#define KERNEL_ACQUIRE(address)        kernel_acquire(address)
#define KERNEL_RELEASE(address, value) kernel_release(address, value)

#endif
