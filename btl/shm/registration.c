/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that peers may put to, get from and update by message. The owner carries the requests
 * out, and checks each one against this table. */
#include "btl/shm/shm.h"

#include <stdlib.h>

#include "opal/class/opal_pointer_array.h"

struct registration {
    struct mca_btl_base_registration_handle_t handle;
    uint64_t base;
    uint64_t size;
    uint32_t flags;
};

static struct {
    opal_mutex_t lock; /* guards all of it */
    opal_pointer_array_t entries;
    uint32_t made;
} table;

void shm_registration_init(void)
{
    OBJ_CONSTRUCT(&table.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&table.entries, opal_pointer_array_t);
}

void shm_registration_finish(void)
{
    for (int i = 0; i < opal_pointer_array_get_size(&table.entries); i++)
        free(opal_pointer_array_get_item(&table.entries, i));
    OBJ_DESTRUCT(&table.entries);
    OBJ_DESTRUCT(&table.lock);
}

mca_btl_base_registration_handle_t *shm_registration_make(mca_btl_base_module_t *btl,
                                                          shm_peer_t *peer, void *base, size_t size,
                                                          uint32_t flags)
{
    struct registration *entry = malloc(sizeof(*entry));

    (void) btl;
    (void) peer;
    if (!entry)
        return NULL;
    OPAL_THREAD_LOCK(&table.lock);
    *entry =
        (struct registration){.base = (uint64_t) (uintptr_t) base,
                              .size = size,
                              .flags = flags,
                              .handle = {.index = opal_pointer_array_add(&table.entries, entry),
                                         .generation = ++table.made}};
    OPAL_THREAD_UNLOCK(&table.lock);
    if (entry->handle.index >= 0)
        return &entry->handle;
    free(entry);
    return NULL;
}

int shm_registration_end(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    (void) btl;
    OPAL_THREAD_LOCK(&table.lock);
    (void) opal_pointer_array_set_item(&table.entries, handle->index, NULL);
    OPAL_THREAD_UNLOCK(&table.lock);
    free(handle); /* the first member of its entry */
    return OPAL_SUCCESS;
}

bool shm_registration_allows(const mca_btl_base_registration_handle_t *handle, uint64_t address,
                             uint64_t size, uint32_t access)
{
    OPAL_THREAD_LOCK(&table.lock);
    /* Null for an index that is below 0 or behind the last. */
    const struct registration *entry = opal_pointer_array_get_item(&table.entries, handle->index);
    bool allowed = entry && entry->handle.generation == handle->generation &&
                   (entry->flags & access) != 0 && size <= entry->size && address >= entry->base &&
                   address - entry->base <= entry->size - size;
    OPAL_THREAD_UNLOCK(&table.lock);
    return allowed;
}
