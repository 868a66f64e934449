/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of the CUDA driver, the stand-in's or a device's, and Multilane does not, as any
 * program would that has loaded it. DRIVER_NOT_FOUND: the driver has it not. */
#ifndef TEST_CUDA_CALLS_H
#define TEST_CUDA_CALLS_H

#include <dlfcn.h>
#include <string.h>

#include "common/memory/driver.h"

enum { DRIVER_CHUNK_PINNED = 1 };

struct driver_chunk_properties {
    int type;         /* DRIVER_CHUNK_PINNED */
    int handle_types; /* that it may be exported by */
    struct driver_location location;
    void *reserved;
    unsigned char flags[8];
};

_Static_assert(sizeof(struct driver_chunk_properties) == 32, "the driver's layout");

/* Into the pointer to a function at `call`. */
static inline bool cuda_call_find(void *call, const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    memcpy(call, &function, sizeof(function));
    return function != NULL;
}

static inline driver_result cuda_copy(driver_ptr to, driver_ptr from, size_t bytes)
{
    driver_result (*call)(driver_ptr, driver_ptr, size_t);
    return cuda_call_find(&call, "cuMemcpy") ? call(to, from, bytes) : DRIVER_NOT_FOUND;
}

static inline driver_result cuda_alloc_managed(driver_ptr *pointer, size_t bytes)
{
    enum { FOR_ALL_STREAMS = 1 };
    driver_result (*call)(driver_ptr *, size_t, unsigned);
    return cuda_call_find(&call, "cuMemAllocManaged") ? call(pointer, bytes, FOR_ALL_STREAMS)
                                                      : DRIVER_NOT_FOUND;
}

static inline driver_result cuda_reset(driver_device device)
{
    driver_result (*call)(driver_device);
    return cuda_call_find(&call, "cuDevicePrimaryCtxReset_v2") ||
                   cuda_call_find(&call, "cuDevicePrimaryCtxReset")
               ? call(device)
               : DRIVER_NOT_FOUND;
}

static inline driver_result cuda_chunk_create(driver_chunk *chunk, size_t bytes,
                                              const struct driver_chunk_properties *properties)
{
    driver_result (*call)(driver_chunk *, size_t, const struct driver_chunk_properties *, uint64_t);
    return cuda_call_find(&call, "cuMemCreate") ? call(chunk, bytes, properties, 0)
                                                : DRIVER_NOT_FOUND;
}

#endif
