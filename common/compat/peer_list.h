/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of which something is due, in turn, each of them once. */
#ifndef MULTILANE_COMPAT_PEER_LIST_H
#define MULTILANE_COMPAT_PEER_LIST_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/compat/threads.h"

struct mca_btl_base_endpoint_t;

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

/* As the last one, unless it is there. */
void peer_list_add(struct peer_list *list, struct peer_place *place,
                   struct mca_btl_base_endpoint_t *peer);
/* If it is there. */
void peer_list_remove(struct peer_list *list, struct peer_place *place);

/* The first one; null: there is none. */
struct mca_btl_base_endpoint_t *peer_list_first(struct peer_list *list);
/* The same; it is taken off the list. */
struct mca_btl_base_endpoint_t *peer_list_take(struct peer_list *list);
/* The same; it becomes the last one. */
struct mca_btl_base_endpoint_t *peer_list_turn(struct peer_list *list);

static inline uint32_t peer_list_count(const struct peer_list *list)
{
    return atomic_load_explicit(&list->count, memory_order_relaxed);
}

#endif
