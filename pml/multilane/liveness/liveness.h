/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes and peers that are silent, fail or become worse: what the files of this layer offer each
 * other and those above. */
#ifndef MULTILANE_LIVENESS_H
#define MULTILANE_LIVENESS_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/compat/pml.h"
#include "lane/lane.h"
#include "peer/peer.h"

/* --- liveness.c ------------------------------------------------------------------------------- */

/* What is known of a peer with lanes that break and return their messages: when it answered last,
 * and what it was asked. Made when one of its lanes is to be looked at; watch.c does that. */

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
    bool has_parted;      /* it has disconnected, and did not answer: tried seldom */
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

/* --- liveness.c: the list of peers for progress ----------------------------------------------- */

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

/* --- liveness.c: fences ----------------------------------------------------------------------- */

/* Messages between the two ends of a broken lane, carried by another one: a fence needs the word of
 * the other end, which a lane that is cut cannot bring. */

/* Tells the other end of this broken lane, if a fence is waited for. Where no lane carries it now,
 * the next call does. */
void fence_send(struct lane *lane);
/* WIRE_FENCE came on `lane` (null: unknown); answers. False: it is none. */
bool fence_heard(struct peer *peer, struct lane *lane, const struct wire_fence *message);

/* --- errors.c --------------------------------------------------------------------------------- */

/* Reports failed lanes and lost peers: one message, and MPI's error handling. */

/* Is MPI_Finalize so far that lost connections are no errors any more? */
bool mpi_is_ending(void);

/* Fills lane_events: another lane takes over (watch.c), or the peer counts as failed. */
void errors_begin(void);

/* Prints how a lane has changed ("is left out"), and why. `last`: later changes will only be
 * counted. */
void lane_say(const struct lane *lane, const char *change, const char *why, bool last);

/* The peer is lost: prints why, and starts MPI's error handling. */
void peer_lost(struct peer *peer, const char *why);

/* WIRE_GONE: the peer counts this process as lost, so the peer is lost to this process. */
void errors_peer_gave_up(struct peer *peer);

/* The error callback of the BTLs. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

/* --- lost.c ----------------------------------------------------------------------------------- */

/* A lost peer, where Open MPI's fault tolerance is off and the user wants errors returned. The
 * job goes on; what waits for the peer, and later calls that need it, end with an error. */

/* Marks the peer as lost; progress ends what waits for it. False: nothing was done, because on
 * every communicator with it errors end the job. A BTL may call this. */
bool lost_is_returned(struct peer *peer);

/* Would lost_is_returned do that? Takes the component's lock. */
bool lost_would_be_returned(struct peer *peer);

/* Sends WIRE_GONE on this lane: the lost peer may live and not know. */
void gone_send(struct lane *lane);

/* --- losses that the progress thread finds ---------------------------------------------------- */

/* Hands losses that the progress thread finds to the program's own threads, because Open MPI's
 * error handling may call the user's functions. */

/* `proc` may be null. */
typedef void (*loss_function)(ompi_proc_t *proc, const char *sentence);

/* In the progress thread: keeps the loss; a thread of the program calls the function at its next
 * progress. False in other threads, or without memory: the caller calls it. */
bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence);

/* Is the calling thread the progress thread? That one says so. */
extern __attribute__((visibility("hidden"))) _Thread_local bool is_progress_thread;

/* --- watch.c ---------------------------------------------------------------------------------- */

/* Watches which lanes and peers still answer. Callbacks of BTLs only mark a failure; all that
 * follows is done here, from opal_progress or the progress thread. A peer that computes answers
 * on no lane, so no lane of it becomes suspect. */

/* After a contact: those of its lanes whose BTL says whether they are quiet are looked at now and
 * then.
 */
void watch_peer(struct peer *peer);

/* Calls of progress to come that need not look. Relaxed: losing one is harmless. */
extern __attribute__((visibility("hidden"))) _Atomic uint32_t watch_skips;

void watch_look(void);

/* Called by progress. */
static inline int watch_progress(void)
{
    uint32_t left = atomic_load_explicit(&watch_skips, memory_order_relaxed);
    if (OPAL_LIKELY(left > 0))
        atomic_store_explicit(&watch_skips, left - 1, memory_order_relaxed);
    /* Without the lock: the next call sees what is added now. */
    if (OPAL_UNLIKELY((left == 0 || schedule_has_any()) && schedule_has_begun()))
        watch_look();
    return 0;
}

/* --- wrong.c ---------------------------------------------------------------------------------- */

/* Lanes that bring wrong bytes, as sums show (pml_multilane_verify). */

/* Fills its part of lane_events, after errors_begin. */
void wrong_begin(void);

/* WIRE_WRONG: the other end leaves the lane out. */
void wrong_reported(struct lane *lane);

/* A message by a lane that cannot bring it again: its sender is lost. Null: it is not known. */
void wrong_is_lost(struct peer *peer, mca_btl_base_module_t *btl, size_t bytes);

/* --- drain.c ---------------------------------------------------------------------------------- */

/* Lanes that multilane-top --drain asks this process to empty. */

/* Does what was asked since, from progress. No lock is held. */
void drain_look(void);

/* What was asked (own_page_drain) when it was last done, toward each peer. */
uint64_t drain_done(void);

/* --- worse.c ---------------------------------------------------------------------------------- */

/* Lanes that work and have become worse than they were. */

/* Looks at the peer's lanes, about once a second; `now` in active time. By one thread at a time; no
 * lock is held. */
void worse_look(struct peer *peer, uint64_t now);

#endif
