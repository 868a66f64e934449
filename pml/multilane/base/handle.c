/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of handles. */
#include "base/handle.h"

#include <stdlib.h>

#define NO_ENTRY UINT32_MAX

void handle_table_init(struct handle_table *table)
{
    OBJ_CONSTRUCT(&table->lock, opal_mutex_t);
    table->entries = NULL;
    table->size = 0;
    table->first_free = NO_ENTRY;
}

void handle_table_fini(struct handle_table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->size = 0;
    OBJ_DESTRUCT(&table->lock);
}

static int table_grow(struct handle_table *table)
{
    uint32_t size = table->size ? table->size * 2 : 64;
    if (size <= table->size)
        return OMPI_ERR_OUT_OF_RESOURCE;
    struct handle_entry *entries = realloc(table->entries, size * sizeof(*entries));
    if (!entries)
        return OMPI_ERR_OUT_OF_RESOURCE;
    for (uint32_t i = table->size; i < size; i++)
        entries[i] = (struct handle_entry){.generation = 1,
                                           .next_free = i + 1 < size ? i + 1 : table->first_free};
    table->first_free = table->size;
    table->entries = entries;
    table->size = size;
    return OMPI_SUCCESS;
}

int handle_acquire(struct handle_table *table, enum handle_kind kind, void *object,
                   struct wire_handle *handle)
{
    int rc = OMPI_SUCCESS;
    OPAL_THREAD_LOCK(&table->lock);
    if (table->first_free == NO_ENTRY)
        rc = table_grow(table);
    if (rc == OMPI_SUCCESS) {
        uint32_t index = table->first_free;
        struct handle_entry *entry = &table->entries[index];
        table->first_free = entry->next_free;
        entry->object = object;
        entry->kind = kind;
        *handle = (struct wire_handle){.index = index, .generation = entry->generation};
    }
    OPAL_THREAD_UNLOCK(&table->lock);
    return rc;
}

/* With the lock held. */
static struct handle_entry *entry_of(struct handle_table *table, struct wire_handle handle)
{
    if (handle.index >= table->size)
        return NULL;
    struct handle_entry *entry = &table->entries[handle.index];
    return entry->kind != HANDLE_FREE && entry->generation == handle.generation ? entry : NULL;
}

void *handle_find(struct handle_table *table, enum handle_kind kind, struct wire_handle handle)
{
    OPAL_THREAD_LOCK(&table->lock);
    struct handle_entry *entry = entry_of(table, handle);
    void *object = entry && entry->kind == kind ? entry->object : NULL;
    OPAL_THREAD_UNLOCK(&table->lock);
    if (object)
        tsan_acquire(object); /* handle_goes_out */
    return object;
}

void *handle_next(struct handle_table *table, enum handle_kind kind, uint32_t *at,
                  struct wire_handle *handle)
{
    void *object = NULL;
    OPAL_THREAD_LOCK(&table->lock);
    for (; !object && *at < table->size; ++*at) {
        const struct handle_entry *entry = &table->entries[*at];
        if (entry->kind != kind)
            continue;
        object = entry->object;
        *handle = (struct wire_handle){.index = *at, .generation = entry->generation};
    }
    OPAL_THREAD_UNLOCK(&table->lock);
    return object;
}

bool handle_take(struct handle_table *table, struct wire_handle handle)
{
    OPAL_THREAD_LOCK(&table->lock);
    struct handle_entry *entry = entry_of(table, handle);
    if (entry) {
        entry->kind = HANDLE_FREE;
        entry->object = NULL;
        if (++entry->generation == 0)
            entry->generation = 1;
        entry->next_free = table->first_free;
        table->first_free = handle.index;
    }
    OPAL_THREAD_UNLOCK(&table->lock);
    return entry != NULL;
}

void handle_release(struct handle_table *table, struct wire_handle *handle)
{
    if (!handle_is_set(*handle))
        return;
    handle_take(table, *handle);
    *handle = (struct wire_handle){0};
}
