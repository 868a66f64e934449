/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for objects that come back to us from another process or from a BTL: an index and a
 * generation, checked. */
#ifndef MULTILANE_HANDLE_H
#define MULTILANE_HANDLE_H

#include "common/compat/tsan.h"
#include "common/compat/pml.h"

#include "wire/wire.h"

enum handle_kind { HANDLE_FREE = 0, HANDLE_SEND, HANDLE_RECEIVE, HANDLE_DEPARTURE };

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

/* Gives the object a handle; OMPI_ERR_OUT_OF_RESOURCE without memory. */
int handle_acquire(struct handle_table *table, enum handle_kind kind, void *object,
                   struct wire_handle *handle);

/* The object of a handle that came from the wire, or null if there is none of that kind. */
void *handle_find(struct handle_table *table, enum handle_kind kind, struct wire_handle handle);

/* The object's handle is about to be sent. What was done to the object is seen by who finds it by
 * what the peer answers: the two messages are the order, through another process. */
static inline void handle_goes_out(void *object)
{
    tsan_release(object);
}

/* The next object of that kind from entry *at on, which then is the one behind it, and its handle;
 * null: there is no more. */
void *handle_next(struct handle_table *table, enum handle_kind kind, uint32_t *at,
                  struct wire_handle *handle);

/* Nobody finds the object by the handle any more. Of several threads that try it is true for one,
 * and for none where the object gave it up itself. */
bool handle_take(struct handle_table *table, struct wire_handle handle);

/* Forgets the handle, if it is one, and makes it one that names nothing. */
void handle_release(struct handle_table *table, struct wire_handle *handle);

/* Generations start at 1, so a zeroed handle names nothing. */
static inline bool handle_is_set(struct wire_handle handle)
{
    return handle.generation != 0;
}

#endif
