/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that peers may put to, get from and update by message. The owner carries the requests
 * out, and checks each one against this table. */
#include "btl/shm/shm.h"

#include <stdlib.h>

struct registration {
    struct mca_btl_base_registration_handle_t handle; /* index here, and how often it was used */
    uint64_t base;
    uint64_t size;
    uint32_t flags;
    bool used;
    struct registration *next_free;
};

#define CHUNK_ENTRIES 64u

static struct {
    opal_mutex_t lock; /* guards all of it */
    struct registration **chunks;
    uint32_t count; /* of entries in all chunks */
    struct registration *free;
} table;

void shm_registration_init(void)
{
    OBJ_CONSTRUCT(&table.lock, opal_mutex_t);
}

void shm_registration_finish(void)
{
    for (uint32_t i = 0; i * CHUNK_ENTRIES < table.count; i++)
        free(table.chunks[i]);
    free(table.chunks);
    table.chunks = NULL;
    table.free = NULL;
    table.count = 0;
    OBJ_DESTRUCT(&table.lock);
}

static bool table_grow(void)
{
    uint32_t chunk = table.count / CHUNK_ENTRIES;
    struct registration **chunks = realloc(table.chunks, (chunk + 1) * sizeof(*chunks));

    if (!chunks)
        return false;
    table.chunks = chunks;
    chunks[chunk] = calloc(CHUNK_ENTRIES, sizeof(*chunks[chunk]));
    if (!chunks[chunk])
        return false;
    for (uint32_t i = 0; i < CHUNK_ENTRIES; i++) {
        struct registration *entry = &chunks[chunk][i];

        entry->handle.index = table.count + i;
        entry->next_free = table.free;
        table.free = entry;
    }
    table.count += CHUNK_ENTRIES;
    return true;
}

mca_btl_base_registration_handle_t *shm_registration_make(mca_btl_base_module_t *btl,
                                                          shm_peer_t *peer, void *base, size_t size,
                                                          uint32_t flags)
{
    struct registration *entry = NULL;

    (void) btl;
    (void) peer;
    OPAL_THREAD_LOCK(&table.lock);
    if (table.free || table_grow()) {
        entry = table.free;
        table.free = entry->next_free;
        entry->used = true;
        entry->base = (uint64_t) (uintptr_t) base;
        entry->size = size;
        entry->flags = flags;
        entry->handle.generation++;
    }
    OPAL_THREAD_UNLOCK(&table.lock);
    return !entry ? NULL : &entry->handle;
}

int shm_registration_end(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    /* The handle is the first member of its entry. */
    struct registration *entry = (struct registration *) handle;

    (void) btl;
    OPAL_THREAD_LOCK(&table.lock);
    entry->used = false;
    entry->next_free = table.free;
    table.free = entry;
    OPAL_THREAD_UNLOCK(&table.lock);
    return OPAL_SUCCESS;
}

bool shm_registration_allows(const mca_btl_base_registration_handle_t *handle, uint64_t address,
                             uint64_t size, uint32_t access)
{
    bool allowed = false;

    OPAL_THREAD_LOCK(&table.lock);
    if (handle->index < table.count) {
        const struct registration *entry =
            &table.chunks[handle->index / CHUNK_ENTRIES][handle->index % CHUNK_ENTRIES];

        allowed = entry->used && entry->handle.generation == handle->generation &&
                  (entry->flags & access) != 0 && size <= entry->size && address >= entry->base &&
                  address - entry->base <= entry->size - size;
    }
    OPAL_THREAD_UNLOCK(&table.lock);
    return allowed;
}
