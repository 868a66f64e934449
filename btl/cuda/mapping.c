/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of other processes that is open here: bounded, counted, and closed when the other
 * process has something else at its place. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

/* Under the lock. */
static void mapping_close(struct cuda_mapping *mapping)
{
    struct cuda_mapping **at = &cuda.mappings;

    while (*at != mapping)
        at = &(*at)->next;
    *at = mapping->next;
    cuda.mapping_count--;
    if (!mapping->is_refused && copier_is_alive(mapping->copier))
        share_close(mapping->kind, mapping->copier, mapping->here, mapping->size);
    free(mapping);
}

static bool overlaps(const struct cuda_mapping *mapping, const cuda_key_t *key)
{
    return mapping->start < key->start + key->size && key->start < mapping->start + mapping->size;
}

/* Is that the allocation that the key is for, and not another one that was at its place? */
static bool is_of_key(const struct cuda_mapping *mapping, const cuda_key_t *key)
{
    return mapping->buffer_id == key->buffer_id && mapping->start == key->start &&
           mapping->size == key->size && (mapping->is_refused || copier_is_alive(mapping->copier));
}

/* Under the lock. What the key is for, if it is open where the copier copies. Whatever else was
 * open at that place of the peer's has been freed there, or its context here has ended: it is
 * closed, or will be by its last user. */
static struct cuda_mapping *mapping_find(const cuda_peer_t *peer, const cuda_key_t *key,
                                         const struct copier *copier)
{
    struct cuda_mapping *found = NULL, *next;

    for (struct cuda_mapping *mapping = cuda.mappings; NULL != mapping; mapping = next) {
        next = mapping->next;
        if (mapping->peer != peer || mapping->is_stale || !overlaps(mapping, key))
            continue;
        if (!is_of_key(mapping, key)) {
            if (0 == mapping->users)
                mapping_close(mapping);
            else
                mapping->is_stale = true;
        } else if (mapping->copier == copier || (NULL == copier && !mapping->is_refused)) {
            if (NULL == found || found->is_refused)
                found = mapping;
        }
    }
    return found;
}

/* Under the lock. Closes what is open of the peer's, but for what is in use: false if some is. */
static bool idle_close(const cuda_peer_t *peer)
{
    struct cuda_mapping *next;
    bool is_all = true;

    for (struct cuda_mapping *mapping = cuda.mappings; NULL != mapping; mapping = next) {
        next = mapping->next;
        if (mapping->peer != peer || mapping->is_refused)
            continue;
        if (0 == mapping->users)
            mapping_close(mapping);
        else
            is_all = false;
    }
    return is_all;
}

/* Under the lock. Makes room for one more by closing the one that was not used for longest. */
static bool room_make(void)
{
    struct cuda_mapping *oldest = NULL;

    if (cuda.mapping_count < (uint32_t) cuda.handles_max)
        return true;
    for (struct cuda_mapping *mapping = cuda.mappings; NULL != mapping; mapping = mapping->next)
        if (0 == mapping->users && (NULL == oldest || mapping->last_use < oldest->last_use))
            oldest = mapping;
    if (NULL == oldest)
        return false;
    mapping_close(oldest);
    return true;
}

/* What this process calls the device with that name; below 0 if it does not see it. */
static int device_find(const struct driver_uuid *wanted)
{
    struct driver_uuid uuid;
    int count = 0;

    if (DRIVER_SUCCESS != driver.device_count(&count))
        return -1;
    for (int device = 0; device < count; device++)
        if (DRIVER_SUCCESS == driver.device_uuid(&uuid, device) &&
            0 == memcmp(&uuid, wanted, sizeof(uuid)))
            return device;
    return -1;
}

bool device_is(const struct copier *copier, const struct driver_uuid *other)
{
    return device_find(other) == copier->device;
}

bool device_may_reach(const struct copier *copier, const struct driver_uuid *other)
{
    int device = device_find(other), can = 1;

    return device < 0 || device == copier->device ||
           (DRIVER_SUCCESS == driver.device_can_access(&can, copier->device, device) && can);
}

/* The copier of the key's device. NULL, and `why` says it: there is none. A program that only uses
 * host memory may receive from a device: then the driver starts here. */
static struct copier *copier_for_host(const cuda_key_t *key, char *why, size_t why_size)
{
    driver_result result = driver.init(0);
    int device = DRIVER_SUCCESS == result ? device_find(&key->device) : -1;
    struct copier *copier = NULL;

    if (DRIVER_SUCCESS == result && device < 0)
        result = DRIVER_INVALID_DEVICE;
    if (DRIVER_SUCCESS == result)
        copier = copier_of_device(device, &result);
    driver_words(result, why, why_size);
    return copier;
}

static driver_result mapping_open(struct cuda_mapping *mapping, const cuda_key_t *key, char *why,
                                  size_t why_size)
{
    if (NULL == mapping->copier)
        mapping->copier = copier_for_host(key, why, why_size);
    return NULL == mapping->copier
               ? DRIVER_INVALID_DEVICE
               : share_open(key, mapping->copier, &mapping->here, why, why_size);
}

static void complain(cuda_peer_t *peer, const char *why)
{
    if (peer->complained)
        return;
    peer->complained = true;
    CUDA_SAY("device memory of process %s cannot be opened: %s. It is copied through host memory "
             "instead.",
             OPAL_NAME_PRINT(peer->name), why);
}

/* Under the lock. The driver opens what cudaMalloc gave by blocks: as long as something that was
 * freed there is open here, what has come to its place cannot be. */
static int mapping_open_past_others(struct cuda_mapping *mapping, const cuda_peer_t *peer,
                                    const cuda_key_t *key, char *why, size_t why_size)
{
    driver_result result = mapping_open(mapping, key, why, why_size);

    if (DRIVER_ALREADY_MAPPED == result) {
        bool is_alone = idle_close(peer);

        result = mapping_open(mapping, key, why, why_size);
        if (DRIVER_ALREADY_MAPPED == result && !is_alone)
            return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    }
    return DRIVER_SUCCESS == result ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

/* Under the lock. */
static int mapping_make(cuda_peer_t *peer, const cuda_key_t *key, struct copier *copier,
                        struct cuda_mapping **mapping)
{
    struct cuda_mapping *made;
    char why[160];
    int status;

    if (!room_make())
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    made = calloc(1, sizeof(*made));
    if (NULL == made)
        return OPAL_ERR_OUT_OF_RESOURCE;
    *made = (struct cuda_mapping){.peer = peer,
                                  .kind = (enum share_kind) key->kind,
                                  .buffer_id = key->buffer_id,
                                  .start = key->start,
                                  .size = key->size,
                                  .copier = copier};
    status = mapping_open_past_others(made, peer, key, why, sizeof(why));
    if (OPAL_ERR_TEMP_OUT_OF_RESOURCE == status) {
        free(made);
        return status;
    }
    if (OPAL_SUCCESS != status) {
        made->is_refused = true;
        made->copier = copier;
        complain(peer, why);
    }
    /* Nobody promises that a buffer id tells mapped memory from what is mapped there later: it is
     * opened for each message. */
    made->is_stale = SHARE_IPC != made->kind && !made->is_refused;
    made->next = cuda.mappings;
    cuda.mappings = made;
    cuda.mapping_count++;
    *mapping = made;
    return OPAL_SUCCESS;
}

int mapping_get(cuda_peer_t *peer, const cuda_key_t *key, struct copier *copier,
                struct cuda_mapping **mapping)
{
    int status = OPAL_SUCCESS;

    OPAL_THREAD_LOCK(&cuda.lock);
    *mapping = mapping_find(peer, key, copier);
    if (NULL == *mapping)
        status = mapping_make(peer, key, copier, mapping);
    if (OPAL_SUCCESS == status) {
        (*mapping)->last_use = ++cuda.uses;
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

void mapping_release(struct cuda_mapping *mapping)
{
    OPAL_THREAD_LOCK(&cuda.lock);
    mapping->users--;
    if (mapping->is_stale && 0 == mapping->users)
        mapping_close(mapping);
    OPAL_THREAD_UNLOCK(&cuda.lock);
}

void mappings_close(void)
{
    while (NULL != cuda.mappings)
        mapping_close(cuda.mappings);
}
