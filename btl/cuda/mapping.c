/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of other processes that is open here: limited in number, reference counted, and closed
 * when the other process has freed it. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>

/* Under the lock. */
static void mapping_close(struct cuda_mapping *mapping)
{
    opal_list_remove_item(&cuda.mappings, &mapping->super);
    if (!mapping->is_refused && copier_is_alive(mapping->copier))
        cuda_share_close(mapping->kind, mapping->copier, mapping->here, mapping->size);
    free(mapping);
}

static bool overlaps(const struct cuda_mapping *mapping, const cuda_key_t *key)
{
    return mapping->start < key->start + key->size && key->start < mapping->start + mapping->size;
}

/* Whether it is the allocation of the key, and not an earlier one at the same address. */
static bool is_of_key(const struct cuda_mapping *mapping, const cuda_key_t *key)
{
    return mapping->kind == (enum share_kind) key->kind && mapping->buffer_id == key->buffer_id &&
           mapping->start == key->start && mapping->size == key->size &&
           (mapping->is_refused || copier_is_alive(mapping->copier));
}

/* Under the lock. The mapping of the key in the copier's context, if there is one. Any other
 * mapping at that address of the peer is of freed memory, or its context here has ended: it is
 * closed, now or by its last user. Where the key's own is open there is no such other: it was
 * closed when that one was opened. */
static struct cuda_mapping *mapping_find(const cuda_peer_t *peer, const cuda_key_t *key,
                                         const struct copier *copier)
{
    struct cuda_mapping *found = NULL, *mapping, *next;

    OPAL_LIST_FOREACH_SAFE(mapping, next, &cuda.mappings, struct cuda_mapping)
    {
        if (mapping->peer != peer || mapping->is_stale || !overlaps(mapping, key))
            continue;
        if (!is_of_key(mapping, key)) {
            if (mapping->users == 0)
                mapping_close(mapping);
            else
                mapping->is_stale = true;
        } else if (!mapping->is_refused && (!copier || mapping->copier == copier)) {
            return mapping;
        } else if (mapping->copier == copier) {
            found = mapping;
        }
    }
    return found;
}

/* Under the lock. Closes all mappings of the peer that are not in use: false if some are. */
static bool idle_close(const cuda_peer_t *peer)
{
    struct cuda_mapping *mapping, *next;
    bool is_all = true;

    OPAL_LIST_FOREACH_SAFE(mapping, next, &cuda.mappings, struct cuda_mapping)
    {
        if (mapping->peer != peer || mapping->is_refused)
            continue;
        if (mapping->users == 0)
            mapping_close(mapping);
        else
            is_all = false;
    }
    return is_all;
}

/* Under the lock. Makes room for one more mapping by closing the one unused for the longest time.
 */
static bool room_make(void)
{
    struct cuda_mapping *mapping;

    if (opal_list_get_size(&cuda.mappings) < (size_t) cuda.handles_max)
        return true;
    OPAL_LIST_FOREACH_REV(mapping, &cuda.mappings, struct cuda_mapping)
    {
        if (mapping->users != 0)
            continue;
        mapping_close(mapping);
        return true;
    }
    return false;
}

/* The copier of the key's device; NULL and `why`: there is none. A program that only uses memory of
 * the host may receive from a device: then the driver starts here. */
static struct copier *copier_for_host(const cuda_key_t *key, char *why, size_t why_size)
{
    driver_result result = driver.init(0);
    int device = result == DRIVER_SUCCESS ? cuda_device_find(&key->device) : -1;
    struct copier *copier = NULL;

    if (result == DRIVER_SUCCESS && device < 0)
        result = DRIVER_INVALID_DEVICE;
    if (result == DRIVER_SUCCESS)
        copier = copier_of_device(device, &result);
    driver_words(result, why, why_size);
    return copier;
}

static driver_result mapping_open(struct cuda_mapping *mapping, const cuda_key_t *key, char *why,
                                  size_t why_size)
{
    if (!mapping->copier)
        mapping->copier = copier_for_host(key, why, why_size);
    return !mapping->copier ? DRIVER_INVALID_DEVICE
                            : cuda_share_open(key, mapping->copier, &mapping->here, why, why_size);
}

void cuda_mapping_complain(cuda_peer_t *peer, const char *why)
{
    if (peer->complained)
        return;
    peer->complained = true;
    CUDA_SAY("device memory of process %s cannot be opened: %s. It is copied through host memory "
             "instead.",
             OPAL_NAME_PRINT(peer->name), why);
}

/* Under the lock. The driver opens memory of cudaMalloc by blocks: while a freed allocation of a
 * block is open here, a new one in its place cannot be opened. */
static int mapping_open_past_others(struct cuda_mapping *mapping, const cuda_peer_t *peer,
                                    const cuda_key_t *key, char *why, size_t why_size)
{
    driver_result result = mapping_open(mapping, key, why, why_size);

    if (result == DRIVER_ALREADY_MAPPED) {
        bool is_alone = idle_close(peer);

        result = mapping_open(mapping, key, why, why_size);
        if (result == DRIVER_ALREADY_MAPPED && !is_alone)
            return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    }
    return result == DRIVER_SUCCESS ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

/* Under the lock. */
static int mapping_make(cuda_peer_t *peer, const cuda_key_t *key, struct copier *copier,
                        struct cuda_mapping **mapping)
{
    char why[160];

    if (!room_make())
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    struct cuda_mapping *made = calloc(1, sizeof(*made));
    if (!made)
        return OPAL_ERR_OUT_OF_RESOURCE;
    *made = (struct cuda_mapping){.peer = peer,
                                  .kind = (enum share_kind) key->kind,
                                  .buffer_id = key->buffer_id,
                                  .start = key->start,
                                  .size = key->size,
                                  .copier = copier};
    OBJ_CONSTRUCT(&made->super, opal_list_item_t);
    int status = mapping_open_past_others(made, peer, key, why, sizeof(why));
    if (status == OPAL_ERR_TEMP_OUT_OF_RESOURCE) {
        free(made);
        return status;
    }
    if (status != OPAL_SUCCESS) {
        made->is_refused = true;
        made->copier = copier;
        cuda_mapping_complain(peer, why);
    }
    opal_list_prepend(&cuda.mappings, &made->super);
    *mapping = made;
    return OPAL_SUCCESS;
}

int cuda_mapping_get(cuda_peer_t *peer, const cuda_key_t *key, struct copier *copier,
                     struct cuda_mapping **mapping)
{
    int status = OPAL_SUCCESS;

    OPAL_THREAD_LOCK(&cuda.lock);
    *mapping = mapping_find(peer, key, copier);
    if (!*mapping) {
        status = mapping_make(peer, key, copier, mapping);
    } else {
        opal_list_remove_item(&cuda.mappings, &(*mapping)->super);
        opal_list_prepend(&cuda.mappings, &(*mapping)->super);
    }
    if (status == OPAL_SUCCESS) {
        if (!(*mapping)->is_refused) {
            (*mapping)->users++;
        } else {
            *mapping = NULL;
            status = OPAL_ERR_NOT_SUPPORTED;
        }
    }
    OPAL_THREAD_UNLOCK(&cuda.lock);
    return status;
}

void cuda_mapping_release(struct cuda_mapping *mapping)
{
    OPAL_THREAD_LOCK(&cuda.lock);
    mapping->users--;
    if (mapping->is_stale && mapping->users == 0)
        mapping_close(mapping);
    OPAL_THREAD_UNLOCK(&cuda.lock);
}

void cuda_mappings_close(void)
{
    while (!opal_list_is_empty(&cuda.mappings))
        mapping_close((struct cuda_mapping *) opal_list_get_first(&cuda.mappings));
}
