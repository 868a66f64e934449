/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets and puts: copies by the driver from and to memory that is open here, and their ends. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* A copy under way. */
struct cuda_copy {
    struct cuda_copy *next;
    struct copier *copier;
    driver_event event;
    struct cuda_mapping *mapping; /* NULL: the memory is this process's own */
    cuda_peer_t *peer;
    void *local;
    mca_btl_base_rdma_completion_fn_t callback;
    void *context;
    void *data;
};

static struct {
    opal_mutex_t lock; /* guards all below; never held while a callback runs */
    struct {
        struct cuda_copy *first, **last;
    } queues[COPIERS_MAX];  /* by copier: its copies end in the order of their start */
    _Atomic uint32_t count; /* under way. Relaxed: progress looks at it without the lock */
} copies;

/* Under the lock. A copy that has ended, and *result. */
static struct cuda_copy *ended_take(driver_result *result)
{
    for (unsigned i = 0, count = copiers_count(); i < count; i++) {
        struct cuda_copy *copy = copies.queues[i].first;

        if (!copy)
            continue;
        *result = copier_event_test(copy->event);
        if (*result == DRIVER_NOT_READY)
            continue;
        copies.queues[i].first = copy->next;
        if (!copy->next)
            copies.queues[i].last = &copies.queues[i].first;
        atomic_fetch_sub_explicit(&copies.count, 1, memory_order_relaxed);
        return copy;
    }
    return NULL;
}

static void copy_end(struct cuda_copy *copy, driver_result result)
{
    char words[160];

    copier_event_return(copy->copier, copy->event);
    if (copy->mapping)
        cuda_mapping_release(copy->mapping);
    if (result != DRIVER_SUCCESS)
        CUDA_SAY("a copy of device memory failed: the CUDA driver says %s.",
                 driver_words(result, words, sizeof(words)));
    copy->callback(&cuda_module, copy->peer, copy->local, NULL, copy->context, copy->data,
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

/* Starts the copy and puts it into its queue: the lock keeps both in one order. */
static driver_result copy_start(struct cuda_copy *copy, driver_ptr to, driver_ptr from, size_t size)
{
    unsigned index = copy->copier->index;

    OPAL_THREAD_LOCK(&copies.lock);
    driver_result result = copier_copy(copy->copier, COPY_BETWEEN, to, from, size);
    if (result == DRIVER_SUCCESS) {
        result = copier_event_record(copy->copier, COPY_BETWEEN, &copy->event);
        if (result != DRIVER_SUCCESS) /* its end could not be detected otherwise */
            (void) copier_wait(copy->copier, COPY_BETWEEN);
    }
    if (result == DRIVER_SUCCESS) {
        copy->next = NULL;
        *copies.queues[index].last = copy;
        copies.queues[index].last = &copy->next;
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

/* Finds the address of the other end's memory in this process, and the copier for it. */
static int remote_find(cuda_peer_t *peer, const cuda_key_t *key, struct cuda_copy *copy,
                       driver_ptr *start)
{
    driver_result result;

    if (peer->is_self) {
        struct memory memory;

        memory_ask((void *) (uintptr_t) key->start, &memory);
        *start = key->start;
        if (memory.kind != MEMORY_DEVICE || memory.buffer_id != key->buffer_id)
            return OPAL_ERR_BAD_PARAM;
        copy->copier = copier_get(&memory, &result);
        return !copy->copier ? OPAL_ERR_NOT_SUPPORTED : OPAL_SUCCESS;
    }
    int status = cuda_mapping_get(peer, key, copier_here(copy->local), &copy->mapping);
    if (status != OPAL_SUCCESS)
        return status;
    copy->copier = copy->mapping->copier;
    *start = copy->mapping->here;
    return OPAL_SUCCESS;
}

static int copy_fail(struct cuda_copy *copy, int status)
{
    if (copy->mapping)
        cuda_mapping_release(copy->mapping);
    free(copy);
    return status;
}

static int copy_begin(struct cuda_copy *copy, const cuda_key_t *key, uint64_t remote, size_t size,
                      bool is_get)
{
    driver_ptr start, local = (driver_ptr) (uintptr_t) copy->local;
    int status = OPAL_ERR_BAD_PARAM;

    /* The key came from outside: all requested bytes must be in its allocation. */
    if (remote >= key->start && remote - key->start <= key->size &&
        size <= key->size - (remote - key->start))
        status = remote_find(copy->peer, key, copy, &start);
    if (status != OPAL_SUCCESS)
        return copy_fail(copy, status);
    start += remote - key->start;
    if (copy_start(copy, is_get ? local : start, is_get ? start : local, size) != DRIVER_SUCCESS)
        return copy_fail(copy, OPAL_ERROR);
    return OPAL_SUCCESS;
}

static struct cuda_copy *copy_new(cuda_peer_t *peer, void *local,
                                  mca_btl_base_rdma_completion_fn_t callback, void *context,
                                  void *data)
{
    struct cuda_copy *copy = calloc(1, sizeof(*copy));

    if (copy) {
        copy->peer = peer;
        copy->local = local;
        copy->callback = callback;
        copy->context = context;
        copy->data = data;
    }
    return copy;
}

int cuda_copy_get(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *local, uint64_t remote,
                  mca_btl_base_registration_handle_t *local_key,
                  mca_btl_base_registration_handle_t *remote_key, size_t size, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct cuda_copy *copy = copy_new(peer, local, callback, context, data);

    (void) btl;
    (void) local_key;
    (void) flags;
    (void) order;
    return !copy ? OPAL_ERR_OUT_OF_RESOURCE : copy_begin(copy, remote_key, remote, size, true);
}

int cuda_copy_put(mca_btl_base_module_t *btl, cuda_peer_t *peer, void *local, uint64_t remote,
                  mca_btl_base_registration_handle_t *local_key,
                  mca_btl_base_registration_handle_t *remote_key, size_t size, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct cuda_copy *copy = copy_new(peer, local, callback, context, data);

    (void) btl;
    (void) local_key;
    (void) flags;
    (void) order;
    return !copy ? OPAL_ERR_OUT_OF_RESOURCE : copy_begin(copy, remote_key, remote, size, false);
}

void cuda_copies_init(void)
{
    OBJ_CONSTRUCT(&copies.lock, opal_mutex_t);
    atomic_store_explicit(&copies.count, 0, memory_order_relaxed);
    for (int i = 0; i < COPIERS_MAX; i++) {
        copies.queues[i].first = NULL;
        copies.queues[i].last = &copies.queues[i].first;
    }
}

/* The driver ends copies that are under way before their memory goes; their callbacks are not
 * called. */
void cuda_copies_close(void)
{
    for (int i = 0; i < COPIERS_MAX; i++)
        while (copies.queues[i].first) {
            struct cuda_copy *copy = copies.queues[i].first;

            copies.queues[i].first = copy->next;
            copier_wait(copy->copier, COPY_BETWEEN);
            copier_event_return(copy->copier, copy->event);
            free(copy);
        }
    OBJ_DESTRUCT(&copies.lock);
}
