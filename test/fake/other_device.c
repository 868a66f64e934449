/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for the library of a device that is not CUDA's. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

void *fake_device_memory(size_t bytes);

/* Memory that the processor cannot touch; null: there is none. */
void *fake_device_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
