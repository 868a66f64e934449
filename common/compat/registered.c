/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of registrations. */
#include "common/compat/registered.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/compat/threads.h"
#include "common/lane/host.h"
#include "opal/class/opal_pointer_array.h"

struct registration {
    struct mca_btl_base_registration_handle_t handle;
    uint64_t base;
    uint64_t size;
    uint32_t access;
};

static struct {
    opal_mutex_t lock; /* guards all of it */
    opal_pointer_array_t entries;
} table;

void registered_init(void)
{
    OBJ_CONSTRUCT(&table.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&table.entries, opal_pointer_array_t);
}

void registered_finish(void)
{
    for (int i = 0; i < opal_pointer_array_get_size(&table.entries); i++)
        free(opal_pointer_array_get_item(&table.entries, i));
    OBJ_DESTRUCT(&table.entries);
    OBJ_DESTRUCT(&table.lock);
}

static mca_btl_base_registration_handle_t *add_as(uint64_t key, void *base, size_t size,
                                                  uint32_t flags)
{
    struct registration *entry = malloc(sizeof(*entry));

    if (!entry)
        return NULL;
    *entry = (struct registration){
        .handle = {.key = key}, .base = (uint64_t) (uintptr_t) base, .size = size, .access = flags};
    OPAL_THREAD_LOCK(&table.lock);
    int slot = opal_pointer_array_add(&table.entries, entry);
    entry->handle.slot = (uint32_t) slot;
    OPAL_THREAD_UNLOCK(&table.lock);
    if (slot >= 0)
        return &entry->handle;
    free(entry);
    return NULL;
}

mca_btl_base_registration_handle_t *registered_add(mca_btl_base_module_t *btl,
                                                   struct mca_btl_base_endpoint_t *peer, void *base,
                                                   size_t size, uint32_t flags)
{
    uint64_t key;

    return host_random(&key, sizeof(key)) ? add_as(key, base, size, flags) : NULL;
}

mca_btl_base_registration_handle_t *registered_add_inside(mca_btl_base_module_t *btl,
                                                          struct mca_btl_base_endpoint_t *peer,
                                                          void *base, size_t size, uint32_t flags)
{
    static _Atomic uint64_t made; /* relaxed: it orders nothing */

    return add_as(atomic_fetch_add_explicit(&made, 1, memory_order_relaxed), base, size, flags);
}

int registered_remove(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    OPAL_THREAD_LOCK(&table.lock);
    (void) opal_pointer_array_set_item(&table.entries, (int) handle->slot, NULL);
    OPAL_THREAD_UNLOCK(&table.lock);
    free(handle); /* the first member of its entry */
    return OPAL_SUCCESS;
}

bool registered_allows(const mca_btl_base_registration_handle_t *named, uint64_t address,
                       uint64_t size, uint32_t access)
{
    OPAL_THREAD_LOCK(&table.lock);
    /* Null for a slot that is below 0 or behind the last. */
    const struct registration *entry =
        opal_pointer_array_get_item(&table.entries, (int) named->slot);
    bool allowed = entry && entry->handle.key == named->key && (entry->access & access) != 0 &&
                   size <= entry->size && address >= entry->base &&
                   address - entry->base <= entry->size - size;
    OPAL_THREAD_UNLOCK(&table.lock);
    return allowed;
}
