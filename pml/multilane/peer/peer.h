/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer: another process (or this one), whatever communicators it is met in, and the lanes to it.
 */
#ifndef MULTILANE_PEER_H
#define MULTILANE_PEER_H

#include <stdatomic.h>

#include "base/pending.h"
#include "common/compat/pml.h"

#include "common/model/flow.h"
#include "lane/lane.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "wire/wire.h"

struct inbound;
struct peer_class;

struct peer {
    struct peer *next_other_job;
    struct peer *next_in_bucket; /* see peer_find */
    ompi_proc_t *proc;
    opal_process_name_t name;
    bool is_of_other_job; /* of another job: we introduce ourselves by name in every header */
    bool reachable;
    bool is_self;
    _Atomic bool lost;         /* errors are returned for all that concerns it, see lost.h */
    _Atomic uint32_t found_by; /* the last search (entry/comms.c) that found it somewhere */
    struct pending lost_pending;

    /* Lanes and plan change with the component's lock held, see peer_lanes.c. */
    _Atomic uint8_t lane_count; /* it only grows */
    uint8_t lane_room;
    _Atomic uint8_t control; /* index of the lane for control messages: of the lowest latency */
    struct lane *lanes;      /* it never moves, and each keeps its place */
    struct peer_class *_Atomic class; /* plans, shared by all peers with equal lanes */
    /* The lane that gets device memory and carries no messages, so that BML r2 does not know it and
     * it is not among the others; null where there is none. */
    struct lane *device_lane;

    struct delivery *_Atomic delivery; /* made once; null while no message has to be kept */

    /* The next number of a message below, the units drawn with those before it (flow.h) above.
     * Written by every sending thread (atomic where there are threads), read by no other. After
     * 2^32 messages the number's carry makes the units one too many, which is nothing. */
    _Atomic uint64_t drawn;
    struct flow_out out;

    /* What copies of eager messages take that no lane has handed over yet. */
    _Atomic uint64_t queued;

    opal_mutex_t lock;              /* guards what follows; taken before a communicator's lock */
    uint32_t next_receive_sequence; /* what has a smaller one was matched or queued */
    _Atomic bool credit_due;  /* the peer is to be told of its limits; set with the lock held */
    _Atomic uint8_t declined; /* see peer_declined */
    bool starved;             /* it has used them up; starved_pending is in the queue */
    struct flow_in in;
    struct inbound *early;      /* arrived before their turn, by ascending sequence */
    struct inbound *early_last; /* the last of them, if there is one */
    struct inbound *assemblies; /* eager messages of which parts are missing */
    uint64_t starved_ns;        /* since when it is, or when it got some more */
    struct pending starved_pending;

    opal_mutex_t credit_lock; /* guards out (but for out.limit) and what follows; a leaf */
    struct send_request *_Atomic waiting; /* for room at the peer or on a lane, by mark */
    struct send_request *waiting_last;
    bool waiting_is_pending; /* waiting_pending is in the queue */
    struct pending waiting_pending;
};

/* Relaxed: what is asked of a peer in the moment that it is lost is found by lost_end (lost.c). */
static inline bool peer_is_lost(const struct peer *peer)
{
    return atomic_load_explicit(&peer->lost, memory_order_relaxed);
}

/* The same, or Open MPI's fault tolerance says so: then it deals with what waits for the process.
 */
static inline bool lost_or_dead(const struct peer *peer)
{
    return peer_is_lost(peer) || !compat_proc_is_active(peer->proc);
}

/* How many lanes it has. Relaxed: of the thread that adds them, or of one that met the peer and so
 * sees them whole; peer_lane_of acquires. */
static inline uint8_t peer_lane_count(const struct peer *peer)
{
    return atomic_load_explicit(&peer->lane_count, memory_order_relaxed);
}

/* A peer that was met before, or null. Needs no lock: peers are never removed while the component
 * is open, and appear whole. */
struct peer *peer_find(opal_process_name_t name);

/* Makes one, or null without memory; lists one, after which it is found, and is whole. With the
 * component's lock held. */
struct peer *peer_new(opal_process_name_t name, ompi_proc_t *proc);
void peer_list(struct peer *peer);

/* Shows all peers that were met, of this job and of others. Needs no lock, as above. */
void peers_visit(void (*visit)(struct peer *peer, void *with), void *with);

/* Frees all of them. */
void peers_fini(void);

/* A message that is offered in a way that this peer declines (struct protocol) has cost a
 * handshake. After some in a row messages are planned without it; now and then one is offered
 * again. Relaxed: a count that is lost between threads delays that. */
#define DECLINED_MANY  4
#define DECLINED_AGAIN 64

static inline bool peer_declines(const struct peer *peer)
{
    return atomic_load_explicit(&peer->declined, memory_order_relaxed) >= DECLINED_MANY;
}

static inline void peer_declined(struct peer *peer)
{
    uint8_t declined = atomic_load_explicit(&peer->declined, memory_order_relaxed);
    bool is_again = declined >= DECLINED_AGAIN;
    atomic_store_explicit(&peer->declined, is_again ? DECLINED_MANY - 1 : declined + 1,
                          memory_order_relaxed);
}

static inline void peer_accepted(struct peer *peer)
{
    atomic_store_explicit(&peer->declined, 0, memory_order_relaxed);
}

/* The peer's lane over this BTL, or null. */
struct lane *peer_lane_of(struct peer *peer, const mca_btl_base_module_t *btl);

/* The lane for control messages. Relaxed: any lane will do. */
static inline struct lane *peer_control_lane(struct peer *peer)
{
    return &peer->lanes[atomic_load_explicit(&peer->control, memory_order_relaxed)];
}

/* Is there room for one more copy, of that cost? There always is for one. Then peer_unqueue
 * follows. Relaxed, as all of this: a count, which orders nothing. */
static inline bool peer_queue(struct peer *peer, size_t cost)
{
    uint64_t queued = atomic_load_explicit(&peer->queued, memory_order_relaxed);
    if (queued && queued + cost > parameters.queued_max_bytes)
        return false;
    atomic_fetch_add_explicit(&peer->queued, cost, memory_order_relaxed);
    return true;
}

static inline void peer_unqueue(struct peer *peer, size_t cost)
{
    atomic_fetch_sub_explicit(&peer->queued, cost, memory_order_relaxed);
}

/* Draws the number of a message of that cost, and its mark. */
static inline void peer_draw(struct peer *peer, uint32_t cost, uint32_t *sequence, uint32_t *mark)
{
    uint64_t step = (uint64_t) cost << 32 | 1, before = counter_add(&peer->drawn, step);
    *sequence = (uint32_t) before;
    *mark = (uint32_t) ((before + step) >> 32);
}

/* Gives the last number back. False: a later one was drawn. */
static inline bool peer_undraw(struct peer *peer, uint32_t cost, uint32_t sequence)
{
    uint64_t drawn = atomic_load_explicit(&peer->drawn, memory_order_relaxed);
    /* Relaxed: it is a count, nothing was sent with the number. */
    return (uint32_t) drawn == sequence + 1 &&
           atomic_compare_exchange_strong_explicit(&peer->drawn, &drawn,
                                                   drawn - ((uint64_t) cost << 32 | 1),
                                                   memory_order_relaxed, memory_order_relaxed);
}

#endif
