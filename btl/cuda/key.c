/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: what another process needs to open an allocation of this one. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* IPC handles that the driver gave, each at the place that the remainder of the allocation's number
 * gives it: a handle covers a whole allocation and is the same every time, and a number is never
 * used again. */
#define KEYS_KEPT 64

/* Lists of chunks, by where a chunk starts: they are of 2 MiB or more. */
#define CHUNK_LISTS 256
#define CHUNK_SHIFT 21
/* No answer of the driver's to what is asked here. */
#define TOO_MANY DRIVER_NOT_READY

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
    struct chunk *chunks[CHUNK_LISTS];
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

static struct chunk **chunks_at(uint64_t start)
{
    return &kept.chunks[(start >> CHUNK_SHIFT) % CHUNK_LISTS];
}

/* Each may take a file descriptor of this process: half of them are left to the program. */
static int chunks_most(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / 2 > (rlim_t) cuda.handles_max)
        return cuda.handles_max;
    return (int) files.rlim_cur / 2;
}

static driver_result too_many(void)
{
    SAY_ONCE(CUDA_SAY,
             "messages under way are in more than %d chunks of device memory, as many as may "
             "be shared at once (btl_cuda_handles_max, and half of the files that a process "
             "may have open). Messages in others are copied through host memory.",
             chunks_most());
    return TOO_MANY;
}

/* Under the lock. Lets go of what is not mapped any more, and of one if that makes no room: false
 * if all are in use. */
static bool chunks_tidy(void)
{
    struct chunk **oldest = NULL;

    for (int i = 0; i < CHUNK_LISTS; i++)
        for (struct chunk **at = &kept.chunks[i]; *at;)
            if ((*at)->users == 0 && !cuda_share_is_mapped(&(*at)->key, (*at)->handle))
                chunk_drop(at);
            else
                at = &(*at)->next;
    if (kept.chunk_count < chunks_most())
        return true;
    for (int i = 0; i < CHUNK_LISTS; i++)
        for (struct chunk **at = &kept.chunks[i]; *at; at = &(*at)->next)
            if ((*at)->users == 0 && (!oldest || (*at)->last_use < (*oldest)->last_use))
                oldest = at;
    if (oldest)
        chunk_drop(oldest);
    return oldest != NULL;
}

/* Under the lock. Takes over the handle. */
static driver_result chunk_share(const cuda_peer_t *peer, driver_chunk handle,
                                 const cuda_key_t *range, struct chunk **out)
{
    struct memory memory;
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    driver_result result = !chunk          ? DRIVER_OUT_OF_MEMORY
                           : chunks_tidy() ? DRIVER_SUCCESS
                                           : too_many();

    if (result == DRIVER_SUCCESS) {
        chunk->handle = handle;
        chunk->key = *range;
        memory_ask((void *) (uintptr_t) range->start, &memory);
        result = driver.device_uuid(&chunk->key.device, memory.device);
    }
    if (result == DRIVER_SUCCESS)
        result = cuda_share_export(handle, peer, &chunk->key);
    if (result != DRIVER_SUCCESS) {
        driver.chunk_release(handle);
        free(chunk);
        return result;
    }
    chunk->key.buffer_id = ++kept.chunk_number;
    chunk->next = *chunks_at(range->start);
    *chunks_at(range->start) = *out = chunk;
    kept.chunk_count++;
    return DRIVER_SUCCESS;
}

/* Under the lock. */
static struct chunk *chunk_find(driver_chunk handle, const cuda_key_t *range)
{
    struct chunk *chunk = *chunks_at(range->start);

    while (chunk && (chunk->handle != handle || chunk->key.start != range->start ||
                     chunk->key.size != range->size))
        chunk = chunk->next;
    return chunk;
}

/* The key of the chunk at `address`, which is in use until it is given back. */
static driver_result chunk_use(const cuda_peer_t *peer, driver_ptr address, cuda_key_t *key)
{
    driver_chunk handle;
    driver_result result = cuda_share_chunk(address, &handle, key);

    if (result != DRIVER_SUCCESS)
        return result;
    OPAL_THREAD_LOCK(&kept.lock);
    struct chunk *chunk = chunk_find(handle, key);
    if (chunk)
        driver.chunk_release(handle); /* it is held */
    else
        result = chunk_share(peer, handle, key, &chunk);
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
    for (struct chunk *chunk = *chunks_at(key->start); chunk; chunk = chunk->next)
        if (chunk->key.buffer_id == key->buffer_id)
            chunk->users--;
    OPAL_THREAD_UNLOCK(&kept.lock);
}

static void list_give_back(cuda_key_t *list, uint32_t count)
{
    while (count > 0)
        chunk_give_back(&list[--count]);
    free(list);
}

/* The key of memory in several chunks. */
static driver_result list_fill(const cuda_peer_t *peer, driver_ptr first, driver_ptr last,
                               uint32_t count, cuda_key_t *key)
{
    cuda_key_t *list = calloc(count, sizeof(*list));
    uint32_t used = 0;
    driver_result result = list ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;

    for (driver_ptr at = first; result == DRIVER_SUCCESS && used < count;) {
        result = chunk_use(peer, at, &list[used]);
        if (result == DRIVER_SUCCESS) {
            at = list[used].start + list[used].size;
            used++;
        }
    }
    if (result != DRIVER_SUCCESS) {
        list_give_back(list, used);
        return result;
    }
    *key = (cuda_key_t){.handle.list = {(int32_t) getpid(), count, (uintptr_t) list},
                        .kind = SHARE_LIST,
                        .device = list->device,
                        .start = first,
                        .size = last - first + 1};
    return DRIVER_SUCCESS;
}

static driver_result mapped_export(const cuda_peer_t *peer, driver_ptr first, driver_ptr last,
                                   cuda_key_t *key)
{
    uint32_t count = 0;
    driver_result result = chunk_use(peer, first, key);

    if (result != DRIVER_SUCCESS || last - key->start < key->size)
        return result;
    chunk_give_back(key);
    result = peer->knows_pids ? cuda_share_count(first, last, &count) : DRIVER_NOT_SUPPORTED;
    if (result == DRIVER_SUCCESS && count > (uint32_t) chunks_most())
        result = too_many();
    return result == DRIVER_SUCCESS ? list_fill(peer, first, last, count, key) : result;
}

void cuda_keys_close(void)
{
    for (int i = 0; i < CHUNK_LISTS; i++)
        while (kept.chunks[i])
            chunk_drop(&kept.chunks[i]);
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
    return result == DRIVER_SUCCESS || memory->ipc_capable ? result
                                                           : mapped_export(peer, first, last, key);
}

/* NULL where the memory cannot be shared: the host's, managed memory, memory from a pool, mapped
 * memory that was not made for it; its messages go another way. */
cuda_key_t *cuda_key_make(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *base, size_t size,
                          uint32_t flags)
{
    struct memory memory;
    driver_result result;
    char words[160];

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
    if (result != TOO_MANY)
        SAY_ONCE(CUDA_SAY,
                 "the driver has no handle to share the device memory at %p by: %s. Messages "
                 "of such memory are copied through host memory instead.",
                 base, driver_words(result, words, sizeof(words)));
    free(key);
    return NULL;
}

int cuda_key_free(mca_btl_base_module_t *btl, cuda_key_t *key)
{
    if (key->kind == SHARE_FD || key->kind == SHARE_FABRIC)
        chunk_give_back(key);
    else if (key->kind == SHARE_LIST)
        list_give_back((cuda_key_t *) (uintptr_t) key->handle.list.address, key->handle.list.count);
    free(key);
    return OPAL_SUCCESS;
}
