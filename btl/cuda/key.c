/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: what another process needs to open an allocation of this one. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* IPC handles that the driver gave, each at the place that the remainder of the allocation's number
 * gives it: a handle covers a whole allocation and is the same every time, and a number is never
 * used again. */
#define KEYS_KEPT 64

/* A chunk that the program has mapped. The driver's number need not tell it from a chunk that is
 * mapped there later. But the handle that the driver has for an address is the one that it was
 * mapped by, and a handle that is held is of one chunk only: so we hold it, and as long as
 * the address has the same handle it has the same chunk, whose number is ours. What the program has
 * unmapped is let go when the next chunk is shared. */
struct chunk {
    struct chunk *next;
    driver_chunk handle; /* held */
    cuda_key_t key;
    uint32_t users; /* keys that are out */
    uint64_t last_use;
};

static struct {
    opal_mutex_t lock;
    cuda_key_t keys[KEYS_KEPT];
    struct chunk *chunks;
    int chunk_count;
    uint64_t chunk_number, uses;
} kept = {.lock = OPAL_MUTEX_STATIC_INIT};

/* --- of cudaMalloc --- */

static bool kept_find(const struct memory *memory, cuda_key_t *key)
{
    OPAL_THREAD_LOCK(&kept.lock);
    *key = kept.keys[memory->buffer_id % KEYS_KEPT];
    OPAL_THREAD_UNLOCK(&kept.lock);
    return key->kind == SHARE_IPC && key->buffer_id == memory->buffer_id &&
           key->start == memory->start && key->size == memory->size;
}

static driver_result ipc_export(const struct memory *memory, cuda_key_t *key)
{
    driver_result result = driver.ipc_export(&key->handle.ipc, memory->start);

    if (result == DRIVER_SUCCESS)
        result = driver.device_uuid(&key->device, memory->device);
    if (result != DRIVER_SUCCESS)
        return result;
    key->kind = SHARE_IPC;
    OPAL_THREAD_LOCK(&kept.lock);
    kept.keys[key->buffer_id % KEYS_KEPT] = *key;
    OPAL_THREAD_UNLOCK(&kept.lock);
    return DRIVER_SUCCESS;
}

/* --- mapped --- */

/* Under the lock. */
static void chunk_drop(struct chunk **at)
{
    struct chunk *chunk = *at;

    *at = chunk->next;
    kept.chunk_count--;
    cuda_share_retract(&chunk->key, chunk->handle);
    free(chunk);
}

/* Under the lock. Lets go of what is not mapped any more, and of one if that makes no room. */
static void chunks_tidy(void)
{
    struct chunk **oldest = NULL;

    for (struct chunk **at = &kept.chunks; *at;) {
        if ((*at)->users == 0 && !cuda_share_is_mapped(&(*at)->key, (*at)->handle)) {
            chunk_drop(at);
            continue;
        }
        at = &(*at)->next;
    }
    if (kept.chunk_count < cuda.handles_max)
        return;
    for (struct chunk **at = &kept.chunks; *at; at = &(*at)->next)
        if ((*at)->users == 0 && (!oldest || (*at)->last_use < (*oldest)->last_use))
            oldest = at;
    if (oldest)
        chunk_drop(oldest);
}

/* Under the lock. Takes over the handle. */
static driver_result chunk_share(const cuda_peer_t *peer, driver_chunk handle, int device,
                                 const cuda_key_t *range, struct chunk **out)
{
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    driver_result result = chunk ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;

    chunks_tidy();
    if (chunk) {
        chunk->handle = handle;
        chunk->key = *range;
        result = driver.device_uuid(&chunk->key.device, device);
    }
    if (result == DRIVER_SUCCESS)
        result = cuda_share_export(handle, peer, &chunk->key);
    if (result != DRIVER_SUCCESS) {
        driver.chunk_release(handle);
        free(chunk);
        return result;
    }
    chunk->key.buffer_id = ++kept.chunk_number;
    chunk->next = kept.chunks;
    kept.chunks = *out = chunk;
    kept.chunk_count++;
    return DRIVER_SUCCESS;
}

/* Under the lock. */
static struct chunk *chunk_find(driver_chunk handle, const cuda_key_t *range)
{
    struct chunk *chunk = kept.chunks;

    while (chunk && (chunk->handle != handle || chunk->key.start != range->start ||
                     chunk->key.size != range->size))
        chunk = chunk->next;
    return chunk;
}

static driver_result mapped_export(const struct memory *memory, const cuda_peer_t *peer,
                                   driver_ptr first, driver_ptr last, cuda_key_t *key)
{
    driver_chunk handle;
    driver_result result = cuda_share_chunk(first, last, &handle, key);

    if (result != DRIVER_SUCCESS)
        return result;
    OPAL_THREAD_LOCK(&kept.lock);
    struct chunk *chunk = chunk_find(handle, key);
    if (chunk)
        driver.chunk_release(handle); /* it is held */
    else
        result = chunk_share(peer, handle, memory->device, key, &chunk);
    if (result == DRIVER_SUCCESS && chunk->key.kind == SHARE_FD && !peer->knows_pids)
        result = DRIVER_NOT_SUPPORTED;
    if (result == DRIVER_SUCCESS) {
        chunk->users++;
        chunk->last_use = ++kept.uses;
        *key = chunk->key;
    }
    OPAL_THREAD_UNLOCK(&kept.lock);
    return result;
}

static void chunk_give_back(const cuda_key_t *key)
{
    OPAL_THREAD_LOCK(&kept.lock);
    for (struct chunk *chunk = kept.chunks; chunk; chunk = chunk->next)
        if (chunk->key.buffer_id == key->buffer_id)
            chunk->users--;
    OPAL_THREAD_UNLOCK(&kept.lock);
}

void cuda_keys_close(void)
{
    while (kept.chunks)
        chunk_drop(&kept.chunks);
}

/* --- of both --- */

/* The key for the other end. */
static driver_result key_fill(const cuda_peer_t *peer, const struct memory *memory,
                              driver_ptr first, driver_ptr last, cuda_key_t *key)
{
    driver_result result = DRIVER_NOT_SUPPORTED;

    *key =
        (cuda_key_t){.buffer_id = memory->buffer_id, .start = memory->start, .size = memory->size};
    if (peer->is_self)
        return DRIVER_SUCCESS;
    /* Some drivers report memory of cudaMalloc (memory with a context) as not shareable, and share
     * it. */
    if (memory->ipc_capable || memory->context)
        result = ipc_export(memory, key);
    return result == DRIVER_SUCCESS || memory->ipc_capable
               ? result
               : mapped_export(memory, peer, first, last, key);
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
    if (key->kind == SHARE_FD || key->kind == SHARE_FABRIC)
        chunk_give_back(key);
    free(key);
    return OPAL_SUCCESS;
}
