/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a peer with lanes that break and return their messages: when it answered last,
 * and what it was asked. Made when one of its lanes is to be looked at; watch.c does that. */
#ifndef MULTILANE_LIVENESS_H
#define MULTILANE_LIVENESS_H

#include <stdatomic.h>

#include "peer/peer.h"

/* What is known of one peer, see liveness.h. */

struct liveness {
    struct peer *peer;
    /* Guards what follows, and the health of the peer's lanes; the lock of the schedule is taken
     * inside. */
    opal_mutex_t lock;
    bool lost; /* the peer is: it is not looked at any more */

    /* For watch.c, in active time (active_time_ns). */
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
/* WIRE_ALIVE: the peer answers. False: it was not asked that. */
bool liveness_answered(struct peer *peer, struct lane *lane, const struct wire_ask *answer);

/* The peer is lost: its lanes return nothing any more. */
void liveness_end(struct liveness *liveness);

/* Progress looks at the lane's peer until there is nothing to do: the lane is proven, or it is left
 * out. */
void lane_watch(struct lane *lane);

/* A BTL reports the lane as broken: marks it, and progress acts on it. False: no other lane takes
 * over, so what it carried may be lost. */
bool lane_break(struct lane *lane, const char *what, const char *why);

/* --- the list of peers for progress ----------------------------------------------------------- */

/* Which peers progress has to look at, and the active time by which it judges lanes and peers.
 *
 * Active time passes only while this process calls MPI, or its progress thread runs: at other
 * times it hears no peer and can conclude nothing. */

/* Active time in nanoseconds. The thread in watch.c writes it, all read it. */
extern __attribute__((visibility("hidden"))) _Atomic uint64_t active_time;

static inline uint64_t active_time_ns(void)
{
    return counter_read(&active_time);
}

/* Adds a peer for progress to look at. The lock of its liveness may be held. */
void schedule_add(struct liveness *liveness);
/* Takes all that were added, linked by next_watched. Each may be added again once its `watched`
 * is false. */
struct liveness *schedule_take(void);
/* Was one added? A hint, without the lock, in each round of progress. */
extern struct liveness *_Atomic schedule_first; /* written under a lock */
static inline bool schedule_has_any(void)
{
    return atomic_load_explicit(&schedule_first, memory_order_relaxed) != NULL;
}

void schedule_fini(void);
/* From now on progress looks, though none was added yet. */
void schedule_begin(void);
extern _Atomic bool schedule_begun;
static inline bool schedule_has_begun(void)
{
    return atomic_load_explicit(&schedule_begun, memory_order_relaxed);
}

/* --- fences: messages between the two ends of a broken lane
 * ---------------------------------------------- */

/* Messages between the two ends of a broken lane, carried by another one: a fence needs the word of
 * the other end, which a lane that is cut cannot bring. */

/* Tells the other end of this broken lane, if a fence is waited for. Where no lane carries it now,
 * the next call does. */
void fence_send(struct lane *lane);
/* WIRE_FENCE came on `lane` (null: unknown); answers. False: it is none. */
bool fence_heard(struct peer *peer, struct lane *lane, const struct wire_fence *message);

#endif
