/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets and puts: copies by the driver from and to memory that is open here, and their ends. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* What a copy moves from or to one chunk of the other end's memory. */
struct part {
    struct cuda_mapping *mapping; /* NULL: the memory is this process's own */
    driver_ptr there;             /* as it is mapped here */
    size_t size;
};

/* A copy under way. */
struct cuda_copy {
    opal_list_item_t super;
    struct copier *copier;
    driver_event event;
    cuda_peer_t *peer;
    struct remote_request request;
    uint32_t count; /* of the parts */
    struct part parts[];
};

static struct {
    opal_mutex_t lock;               /* guards all below; never held while a callback runs */
    opal_list_t queues[COPIERS_MAX]; /* by copier: its copies end in the order of their start */
    _Atomic uint32_t count;          /* under way. Relaxed: progress looks at it without the lock */
} copies;

/* Under the lock. A copy that has ended, and *result. */
static struct cuda_copy *ended_take(driver_result *result)
{
    for (unsigned i = 0, count = copiers_count(); i < count; i++) {
        struct cuda_copy *copy = (struct cuda_copy *) opal_list_get_first(&copies.queues[i]);

        if (opal_list_is_empty(&copies.queues[i]))
            continue;
        *result = copier_event_test(copy->event);
        if (*result == DRIVER_NOT_READY)
            continue;
        opal_list_remove_first(&copies.queues[i]);
        atomic_fetch_sub_explicit(&copies.count, 1, memory_order_relaxed);
        return copy;
    }
    return NULL;
}

static void parts_release(struct cuda_copy *copy)
{
    for (uint32_t i = 0; i < copy->count; i++)
        if (copy->parts[i].mapping)
            cuda_mapping_release(copy->parts[i].mapping);
}

static void copy_end(struct cuda_copy *copy, driver_result result)
{
    char words[160];

    copier_event_return(copy->copier, copy->event);
    parts_release(copy);
    if (result != DRIVER_SUCCESS)
        CUDA_SAY("a copy of device memory failed: the CUDA driver says %s.",
                 driver_words(result, words, sizeof(words)));
    remote_request_end(&cuda_module, copy->peer, &copy->request,
                       result == DRIVER_SUCCESS ? OPAL_SUCCESS : OPAL_ERROR);
    free(copy);
}

int cuda_copies_progress(void)
{
    int ended = 0;

    while (atomic_load_explicit(&copies.count, memory_order_relaxed) != 0) {
        driver_result result = DRIVER_SUCCESS;

        OPAL_THREAD_LOCK(&copies.lock);
        struct cuda_copy *copy = ended_take(&result);
        OPAL_THREAD_UNLOCK(&copies.lock);
        if (!copy)
            break;
        copy_end(copy, result);
        ended++;
    }
    return ended;
}

/* The parts follow each other in one stream, so that the end of the last is that of all. */
static driver_result parts_start(struct cuda_copy *copy, bool is_get)
{
    driver_ptr local = (driver_ptr) (uintptr_t) copy->request.local;
    driver_result result = DRIVER_SUCCESS;

    for (uint32_t i = 0; result == DRIVER_SUCCESS && i < copy->count; i++) {
        const struct part *part = &copy->parts[i];

        result = copier_copy(copy->copier, COPY_BETWEEN, is_get ? local : part->there,
                             is_get ? part->there : local, part->size);
        local += part->size;
    }
    return result;
}

/* Starts the copy and puts it into its queue: the lock keeps both in one order. */
static driver_result copy_start(struct cuda_copy *copy, bool is_get)
{
    OPAL_THREAD_LOCK(&copies.lock);
    driver_result result = parts_start(copy, is_get);
    if (result == DRIVER_SUCCESS)
        result = copier_event_record(copy->copier, COPY_BETWEEN, &copy->event);
    if (result != DRIVER_SUCCESS) /* the end of what was started could not be detected otherwise */
        (void) copier_wait(copy->copier, COPY_BETWEEN);
    if (result == DRIVER_SUCCESS) {
        opal_list_append(&copies.queues[copy->copier->index], &copy->super);
        atomic_fetch_add_explicit(&copies.count, 1, memory_order_relaxed);
    }
    OPAL_THREAD_UNLOCK(&copies.lock);
    return result;
}

/* The copier of this end's memory: the driver gives a device access to memory opened for it. NULL:
 * it is memory of the host, which any device reaches. */
static struct copier *copier_here(const void *local)
{
    struct memory memory;
    driver_result result;

    memory_ask(local, &memory);
    return memory.kind == MEMORY_DEVICE ? copier_get(&memory, &result) : NULL;
}

/* Whether the key is of that memory. Of one range of mapped memory each chunk has a number of its
 * own. */
static bool key_is_of(const cuda_key_t *key, const struct memory *memory)
{
    return memory->kind == MEMORY_DEVICE &&
           (memory->buffer_id == key->buffer_id ||
            (!memory->context && memory->start == key->start && memory->size == key->size));
}

/* Memory of this process itself. */
static int own_find(struct cuda_copy *copy, const cuda_key_t *key, uint64_t remote, size_t size)
{
    driver_result result;
    struct memory memory;

    memory_ask((void *) (uintptr_t) remote, &memory);
    if (!key_is_of(key, &memory))
        return OPAL_ERR_BAD_PARAM;
    copy->copier = copier_get(&memory, &result);
    copy->parts[copy->count++] = (struct part){NULL, remote, size};
    return !copy->copier ? OPAL_ERR_NOT_SUPPORTED : OPAL_SUCCESS;
}

/* Opens those of the chunks, as many as the copy has room for, that the bytes at `remote` are in:
 * all for one device. */
static int parts_find(struct cuda_copy *copy, const cuda_key_t *chunks, uint32_t count,
                      uint64_t remote, size_t size)
{
    copy->copier = copier_here(copy->request.local);
    for (uint32_t i = 0; size > 0 && i < count; i++) {
        uint64_t offset = remote - chunks[i].start;
        struct part *part = &copy->parts[copy->count];

        if (offset >= chunks[i].size)
            continue;
        int status = cuda_mapping_get(copy->peer, &chunks[i], copy->copier, &part->mapping);
        if (status != OPAL_SUCCESS)
            return status;
        copy->count++;
        copy->copier = part->mapping->copier;
        part->there = part->mapping->here + offset;
        part->size = size < chunks[i].size - offset ? size : (size_t) (chunks[i].size - offset);
        remote += part->size;
        size -= part->size;
    }
    return size == 0 && copy->count > 0 ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* The keys of the chunks that the key's memory is in; *list, which the caller frees, if they had to
 * be read. NULL: they cannot be had. */
static const cuda_key_t *chunks_of(cuda_peer_t *peer, const cuda_key_t *key, cuda_key_t **list,
                                   uint32_t *count)
{
    char why[160];

    *list = NULL;
    *count = 1;
    if (key->kind != SHARE_LIST)
        return key;
    *list = cuda_list_read(key, why, sizeof(why));
    *count = key->handle.list.count;
    if (!*list) {
        OPAL_THREAD_LOCK(&cuda.lock);
        cuda_mapping_complain(peer, why);
        OPAL_THREAD_UNLOCK(&cuda.lock);
    }
    return *list;
}

static int copy_begin(struct cuda_copy *copy, const cuda_key_t *chunks, uint32_t count,
                      uint64_t remote, size_t size, bool is_get)
{
    int status = copy->peer->is_self ? own_find(copy, chunks, remote, size)
                                     : parts_find(copy, chunks, count, remote, size);

    if (status == OPAL_SUCCESS && copy_start(copy, is_get) != DRIVER_SUCCESS)
        status = OPAL_ERROR;
    if (status != OPAL_SUCCESS) {
        parts_release(copy);
        free(copy);
    }
    return status;
}

static int copy_make(cuda_peer_t *peer, const cuda_key_t *key, uint64_t remote, size_t size,
                     bool is_get, struct remote_request request)
{
    cuda_key_t *list;
    uint32_t count;

    /* The key came from outside: all requested bytes must be in its allocation. */
    if (remote < key->start || remote - key->start > key->size ||
        size > key->size - (remote - key->start))
        return OPAL_ERR_BAD_PARAM;
    const cuda_key_t *chunks = chunks_of(peer, key, &list, &count);
    if (!chunks)
        return OPAL_ERR_NOT_SUPPORTED;
    struct cuda_copy *copy = calloc(1, sizeof(*copy) + count * sizeof(copy->parts[0]));
    int status = OPAL_ERR_OUT_OF_RESOURCE;
    if (copy) {
        copy->peer = peer;
        copy->request = request;
        OBJ_CONSTRUCT(&copy->super, opal_list_item_t);
        status = copy_begin(copy, chunks, count, remote, size, is_get);
    }
    free(list);
    return status;
}

int cuda_copy_get(REMOTE_FROM(cuda_peer_t), size_t size, REMOTE_ENDING)
{
    return copy_make(peer, remote_handle, remote_address, size, true,
                     (struct remote_request){local_address, NULL, callback, context, data});
}

int cuda_copy_put(REMOTE_FROM(cuda_peer_t), size_t size, REMOTE_ENDING)
{
    return copy_make(peer, remote_handle, remote_address, size, false,
                     (struct remote_request){local_address, NULL, callback, context, data});
}

void cuda_copies_init(void)
{
    OBJ_CONSTRUCT(&copies.lock, opal_mutex_t);
    atomic_store_explicit(&copies.count, 0, memory_order_relaxed);
    for (int i = 0; i < COPIERS_MAX; i++)
        OBJ_CONSTRUCT(&copies.queues[i], opal_list_t);
}

/* The driver ends copies that are under way before their memory goes; their callbacks are not
 * called. */
void cuda_copies_close(void)
{
    struct cuda_copy *copy;

    for (int i = 0; i < COPIERS_MAX; i++)
        while ((copy = (struct cuda_copy *) opal_list_remove_first(&copies.queues[i]))) {
            copier_wait(copy->copier, COPY_BETWEEN);
            copier_event_return(copy->copier, copy->event);
            free(copy);
        }
    OBJ_DESTRUCT(&copies.lock);
}
