/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a peer with lanes that break and return their messages: when it answered last,
 * and what it was asked. Made when one of its lanes is to be looked at; watch.c does that. */
#ifndef MULTILANE_LIVENESS_H
#define MULTILANE_LIVENESS_H

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
    uint64_t verified_ns; /* when its lanes were last asked for signs of life */
    _Atomic bool watched; /* in watch.c's list */
    struct liveness *next_watched;
};

/* The peer's, or null. Acquire, against liveness_of: what is found is whole. */
static inline struct liveness *liveness_find(const struct peer *peer)
{
    return atomic_load_explicit(&peer->liveness, memory_order_acquire);
}

/* The peer's, made if there is none. Null: no memory. */
struct liveness *liveness_of(struct peer *peer);
/* Frees those of all peers. */
void livenesses_fini(void);

/* With the lock held. True: progress will print the change, and make plans with the lane or
 * without it. */
bool lane_state_set(struct liveness *liveness, struct lane *lane, enum lane_state state,
                    const char *why);

/* WIRE_ASK: answers on this lane. */
void liveness_asked(struct lane *lane, const struct wire_ask *ask);
/* WIRE_HEARD: the peer answers. False: it was not asked that. */
bool liveness_heard(struct peer *peer, struct lane *lane, const struct wire_ask *answer);

/* The peer is lost: its lanes return nothing any more. */
void liveness_end(struct liveness *liveness);

/* Progress looks at the lane's peer until there is nothing to do: the lane is proven, or it is left
 * out. */
void lane_watch(struct lane *lane);

/* A BTL reports the lane as broken: marks it, and progress acts on it. False: no other lane takes
 * over, so what it carried may be lost. */
bool lane_break(struct lane *lane, const char *what, const char *why);

#endif
