/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of one peer, see liveness.h. */
#ifndef MULTILANE_LIVENESS_STATE_H
#define MULTILANE_LIVENESS_STATE_H

#include <stdatomic.h>

#include "lane/lane.h"
#include "peer/peer.h"
#include "wire/wire.h"

struct liveness {
    struct peer *peer;
    /* Guards what follows, and the health of the peer's lanes; the lock of schedule.c is taken
     * inside. */
    opal_mutex_t lock;
    bool lost; /* the peer is: it is not looked at any more */

    /* For watch.c, in active time (schedule.h). */
    uint32_t ask;         /* number of the last question */
    uint64_t asked_ns;    /* when it was asked */
    uint64_t alive_ns;    /* when the peer answered last */
    uint64_t waited_ns;   /* when it was first asked since */
    _Atomic bool watched; /* in watch.c's list */
    struct liveness *next_watched;
};

/* The peer's, or null. Acquire, against liveness_of: what is found is whole. */
static inline struct liveness *liveness_find(const struct peer *peer)
{
    return atomic_load_explicit(&peer->liveness, memory_order_acquire);
}

#endif
