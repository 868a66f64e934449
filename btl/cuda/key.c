/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: what another process needs to open an allocation of this one. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* IPC handles that the driver gave, each at the place that the remainder of the allocation's number
 * gives it: a handle covers a whole allocation and is the same every time, and a number is never
 * used again. Handles of mapped memory are not kept: the driver's numbers need not tell such memory
 * from what is mapped there later, and a descriptor would hold memory that the program freed. */
#define KEYS_KEPT 64
static struct {
    opal_mutex_t lock;
    cuda_key_t keys[KEYS_KEPT];
} kept = {.lock = OPAL_MUTEX_STATIC_INIT};

static bool kept_find(const struct memory *memory, cuda_key_t *key)
{
    OPAL_THREAD_LOCK(&kept.lock);
    *key = kept.keys[memory->buffer_id % KEYS_KEPT];
    OPAL_THREAD_UNLOCK(&kept.lock);
    return key->kind == SHARE_IPC && key->buffer_id == memory->buffer_id &&
           key->start == memory->start && key->size == memory->size;
}

static void kept_add(const cuda_key_t *key)
{
    if (key->kind != SHARE_IPC)
        return;
    OPAL_THREAD_LOCK(&kept.lock);
    kept.keys[key->buffer_id % KEYS_KEPT] = *key;
    OPAL_THREAD_UNLOCK(&kept.lock);
}

/* The key for the other end. */
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
    cuda_key_t *key = malloc(sizeof(*key));
    if (!key || (!peer->is_self && kept_find(&memory, key)))
        return key;
    struct copier *copier = copier_get(&memory, &result);
    if (!copier) {
        free(key);
        return NULL;
    }
    result = copier_enter(copier);
    if (result == DRIVER_SUCCESS) {
        driver_ptr first = (driver_ptr) (uintptr_t) base;

        result = key_fill(peer, &memory, first, first + size - 1, key);
        context_leave();
    }
    if (result == DRIVER_SUCCESS) {
        kept_add(key);
        return key;
    }
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
