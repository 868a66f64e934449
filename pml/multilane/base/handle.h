/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for objects, to be sent to another process or given to a BTL: index and generation. What
 * comes back is checked against the table. */
#ifndef MULTILANE_HANDLE_H
#define MULTILANE_HANDLE_H

#include "common/compat/tsan.h"
#include "common/compat/pml.h"

#include "wire/wire.h"

enum handle_kind { HANDLE_FREE = 0, HANDLE_SEND, HANDLE_RECEIVE, HANDLE_FRAGMENT };

struct handle_entry {
    void *object;
    uint32_t generation;
    uint32_t next_free; /* while free */
    enum handle_kind kind;
};

struct handle_table {
    opal_mutex_t lock; /* guards all below */
    struct handle_entry *entries;
    uint32_t size;
    uint32_t first_free;
};

void handle_table_init(struct handle_table *table);
void handle_table_fini(struct handle_table *table);

/* Gives the object a handle; OMPI_ERR_OUT_OF_RESOURCE: no memory. */
int handle_acquire(struct handle_table *table, enum handle_kind kind, void *object,
                   struct wire_handle *handle);

/* The object of a handle from the wire; null: the handle names no object of that kind. */
void *handle_find(struct handle_table *table, enum handle_kind kind, struct wire_handle handle);

/* Call before the object's handle is sent, for ThreadSanitizer: handle_find of the answer
 * happens after what was done to the object, by way of two messages through another process. */
static inline void handle_goes_out(void *object)
{
    tsan_release(object);
}

/* The next object of that kind from index *at on, and its handle; moves *at behind it. Null:
 * there is none. */
void *handle_next(struct handle_table *table, enum handle_kind kind, uint32_t *at,
                  struct wire_handle *handle);

/* Removes the handle: handle_find no longer finds the object. True for exactly one caller; false
 * where the handle was removed before. */
bool handle_take(struct handle_table *table, struct wire_handle handle);

/* Removes the handle, if it is set, and clears it. */
void handle_release(struct handle_table *table, struct wire_handle *handle);

/* Generations start at 1, so a zeroed handle names nothing. */
static inline bool handle_is_set(struct wire_handle handle)
{
    return handle.generation != 0;
}

#endif
