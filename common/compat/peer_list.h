/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers of a BTL: a table to find one by its name, and lists of those that something is to be
 * done for. */
#ifndef MULTILANE_COMPAT_PEER_LIST_H
#define MULTILANE_COMPAT_PEER_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compat/threads.h"
#include "opal/util/proc.h"

struct mca_btl_base_endpoint_t;

/* --- by name --- */

static inline bool peer_names_equal(const opal_process_name_t *a, const opal_process_name_t *b)
{
    return a->jobid == b->jobid && a->vpid == b->vpid;
}

/* A peer's entry in the table. It stays there until the table ends. */
struct peer_entry {
    struct peer_entry *next;
    struct mca_btl_base_endpoint_t *peer;
    const opal_process_name_t *name;
};

#define PEER_BUCKETS 1024u

struct peer_table {
    struct peer_entry *_Atomic buckets[PEER_BUCKETS];
};

/* By any thread; null: there is none of that name. */
struct mca_btl_base_endpoint_t *peer_table_find(struct peer_table *table,
                                                const opal_process_name_t *name);
/* By one thread at a time. A thread that finds the peer also sees all that was written to it
 * before.
 */
void peer_table_add(struct peer_table *table, struct peer_entry *entry,
                    const opal_process_name_t *name, struct mca_btl_base_endpoint_t *peer);
/* Calls `visit`, which may free the peer, for each one until it returns false. */
void peer_table_visit(struct peer_table *table,
                      bool (*visit)(struct mca_btl_base_endpoint_t *peer, void *context),
                      void *context);

/* --- in turn --- */

/* A peer's place in one list, cleared when it is made. */
struct peer_place {
    struct peer_place *next, *before; /* null: it is in none */
    struct mca_btl_base_endpoint_t *peer;
};

struct peer_list {
    opal_mutex_t lock; /* guards the list and the places in it; a leaf */
    struct peer_place end;
    _Atomic uint32_t count; /* relaxed: who looks without the lock gets a hint */
};

void peer_list_open(struct peer_list *list);
void peer_list_close(struct peer_list *list);

/* Puts the peer at the end, unless it is in the list. */
void peer_list_add(struct peer_list *list, struct peer_place *place,
                   struct mca_btl_base_endpoint_t *peer);
/* Takes it out, if it is in the list. */
void peer_list_remove(struct peer_list *list, struct peer_place *place);

/* The first one; null: there is none. */
struct mca_btl_base_endpoint_t *peer_list_first(struct peer_list *list);
/* The same, and takes it out. */
struct mca_btl_base_endpoint_t *peer_list_take(struct peer_list *list);
/* The same, and moves it to the end. */
struct mca_btl_base_endpoint_t *peer_list_turn(struct peer_list *list);

static inline uint32_t peer_list_count(const struct peer_list *list)
{
    return atomic_load_explicit(&list->count, memory_order_relaxed);
}

#endif
