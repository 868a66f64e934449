/* SPDX-License-Identifier: BSD-3-Clause */
/* What kind of memory a pointer is. */
#ifndef COMMON_MEMORY_MEMORY_H
#define COMMON_MEMORY_MEMORY_H

#include "common/memory/driver.h"

enum memory_kind {
    MEMORY_HOST,    /* the processor may touch it; pinned memory is this too */
    MEMORY_DEVICE,  /* only the driver's copies may */
    MEMORY_MANAGED, /* moves between both: treated as a device's, which is always right */
    MEMORY_FREED,   /* was a device's when it was last asked about, and belongs to none now */
    MEMORY_LOST,    /* the driver fails to say, and the processor cannot read there */
    MEMORY_OTHER    /* of a device that is not CUDA's (other_devices.h), where it cannot read */
};

struct memory {
    enum memory_kind kind;
    driver_result error; /* of MEMORY_LOST */
    int device;
    driver_context context; /* null: of no one context, as memory from a pool */
    uint64_t buffer_id; /* never used again: tells an allocation from a later one at its place */
    driver_ptr start;   /* of the allocation */
    size_t size;
    bool ipc_capable;
};

/* All that is to be known of `address`: of the heap, of variables and of this thread's stack
 * without the driver (host_only.h), of all else by one question to it. Only
 * while device_memory_possible. */
void memory_ask(const void *address, struct memory *memory);

/* The same for any process: without devices this is one branch that never goes the other way. Of
 * the host's memory the kind alone is set. */
static inline void memory_look(const void *address, struct memory *memory)
{
    memory->kind = MEMORY_HOST;
    if (__builtin_expect(device_memory_possible, 0))
        memory_ask(address, memory);
}

/* Or managed memory. */
static inline bool memory_is_of_device(const void *address)
{
    struct memory memory;
    memory_look(address, &memory);
    return memory.kind != MEMORY_HOST;
}

#endif
