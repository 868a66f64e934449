/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: what another process needs to open an allocation of this one. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* The key for the other end. A handle of the driver covers a whole allocation, so the same memory
 * has the same handle every time. Making it costs less than a lookup. */
static driver_result key_fill(const cuda_peer_t *peer, const struct memory *memory,
                              driver_ptr first, driver_ptr last, cuda_key_t *key)
{
    *key =
        (cuda_key_t){.buffer_id = memory->buffer_id, .start = memory->start, .size = memory->size};
    if (peer->is_self)
        return DRIVER_SUCCESS;
    driver_result result = driver.device_uuid(&key->device, memory->device);
    return result == DRIVER_SUCCESS ? cuda_share_export(memory, peer, first, last, key) : result;
}

/* NULL where the memory cannot be shared: the host's, managed memory, memory from a pool, mapped
 * memory that was not made for it; its messages go another way. */
cuda_key_t *cuda_key_make(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *base, size_t size,
                          uint32_t flags)
{
    struct memory memory;
    driver_result result;
    char words[160];

    (void) btl;
    (void) flags;
    memory_ask(base, &memory);
    if (memory.kind != MEMORY_DEVICE || (uintptr_t) base - memory.start + size > memory.size)
        return NULL;
    struct copier *copier = copier_get(&memory, &result);
    cuda_key_t *key = !copier ? NULL : malloc(sizeof(*key));
    if (!key)
        return NULL;
    result = copier_enter(copier);
    if (result == DRIVER_SUCCESS) {
        driver_ptr first = (driver_ptr) (uintptr_t) base;

        result = key_fill(peer, &memory, first, first + size - 1, key);
        context_leave();
    }
    if (result == DRIVER_SUCCESS)
        return key;
    CUDA_SAY_ONCE("the driver has no handle to share the device memory at %p by: %s. Messages of "
                  "such memory are copied through host memory instead.",
                  base, driver_words(result, words, sizeof(words)));
    free(key);
    return NULL;
}

int cuda_key_free(mca_btl_base_module_t *btl, cuda_key_t *key)
{
    (void) btl;
    cuda_share_retract(key);
    free(key);
    return OPAL_SUCCESS;
}
