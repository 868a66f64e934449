/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer: another process, or this one, and the lanes to it. One per process, whatever
 * communicators it is in. */
#ifndef MULTILANE_PEER_H
#define MULTILANE_PEER_H

#include <stdatomic.h>

#include "common/model/flow.h"
#include "lane/lane.h"
#include "base/multilane.h"
#include "base/parameters.h"

struct inbound;
struct peer_class;
struct peer_offers;

struct peer {
    struct peer *next_other_job;
    struct peer *next_in_bucket; /* in the hash table of peer.c */
    ompi_proc_t *proc;
    opal_process_name_t name;
    bool is_of_other_job;   /* every header to it carries this process's name */
    _Atomic bool has_ended; /* of another job: its MPI has ended in order (WIRE_END); relaxed */
    _Atomic bool reachable; /* peer_reach; written under the component's lock, or once it is lost */
    bool is_self;
    _Atomic bool lost;         /* lost, and errors are returned, see lost.c */
    _Atomic uint32_t found_by; /* number of the last search in entry/comms.c that found it */
    struct pending lost_pending;

    /* The component's lock guards changes of lanes and plan, see peer_lanes.c. */
    _Atomic uint8_t lane_count; /* it only grows */
    uint8_t lane_room;
    _Atomic uint8_t control;      /* index of the lane for control messages */
    _Atomic uint8_t network_asks; /* see peer_check_network; relaxed: once too often does no harm */
    struct lane *lanes;           /* never moves; a lane keeps its index */
    struct peer_class *_Atomic class; /* the plans, shared by all peers with equal lanes */
    struct record_ends *ends; /* that it has published of its lanes; null: as this process's */
    /* The lane of device memory, which carries no messages and is not in BML r2 nor in `lanes`;
     * or null. */
    struct lane *device_lane;
    /* How often the BTL has changed what it says of further connections, and up to which change its
     * lanes follow that. */
    const _Atomic uint32_t *_Atomic link_changes; /* null: none has any; relaxed */
    _Atomic uint32_t links_followed;
    _Atomic uint32_t device_changes; /* what is known of devices, as its plan has it; relaxed */
    _Atomic uint32_t heard_before;   /* by timer.c: the next message in turn, when it last sent */

    struct liveness *_Atomic liveness; /* null until one of its lanes has to be looked at */

    /* Low half: the next message number. High half: units drawn so far (flow.h). Relaxed, by all
     * sending threads: counter_add. After 2^32 messages the carry adds one unit, which does no
     * harm. */
    _Atomic uint64_t drawn;
    struct flow_out out;

    _Atomic uint32_t under_way; /* send requests that have begun and not ended; relaxed: a hint */
    _Atomic uint64_t fills_until_ns; /* until when what was sent fills the lane; as heard_before */
    /* Messages of the window under way, and of the one before; as heard_before. */
    _Atomic uint32_t in_window, last_window;

    /* Bytes of copies of eager messages that no lane has handed over yet. */
    _Atomic uint64_t queued;

    opal_mutex_t lock; /* guards what follows; taken before a communicator's lock */
    _Atomic uint32_t next_receive_sequence; /* peer_next_sequence */
    _Atomic bool credit_due; /* the peer must be sent its limits; set with the lock held */
    bool starved;            /* the limits are used up; starved_pending is in the queue */
    bool waiting_is_pending; /* waiting_pending is in the queue; under the credit_lock */
    struct flow_in in;
    struct inbound *early;       /* messages before their turn, by ascending sequence */
    struct inbound *early_last;  /* the last of them; undefined if there is none */
    struct inbound **assemblies; /* eager messages with missing parts; null: none yet */
    struct peer_offers *offers;  /* null until the first one: match/inbound.h */
    uint64_t starved_ns;         /* since when, or when its limits last moved */
    struct pending starved_pending;

    opal_mutex_t credit_lock; /* guards out (but for out.limit) and what follows; a leaf */
    struct send_request *_Atomic waiting; /* messages that wait for the peer or a lane, by mark */
    struct send_request *waiting_last;
    struct pending waiting_pending;

    /* Of its lanes; null: none was looked at. Release, by liveness/worse.c; acquire, for reports.
     */
    struct lane_history *_Atomic histories;
    struct lane_wrongs *wrongs; /* of each lane; null: none was wrong. See liveness/wrong.c */
};

/* Relaxed: lost_end finds what another thread starts at the same moment. */
static inline bool peer_is_lost(const struct peer *peer)
{
    return atomic_load_explicit(&peer->lost, memory_order_relaxed);
}

/* The same, or Open MPI's fault tolerance says so, and handles what waits. */
static inline bool peer_is_gone(const struct peer *peer)
{
    return peer_is_lost(peer) || !compat_proc_is_active(peer->proc);
}

/* How many others are under way to it? Then the next one is a part of a stream. */
static inline uint32_t peer_under_way(const struct peer *peer)
{
    return atomic_load_explicit(&peer->under_way, memory_order_relaxed);
}

/* The next message in turn; all before it are matched or queued. Relaxed: who needs more than a
 * hint holds the lock, as the one that writes it does. */
static inline uint32_t peer_next_sequence(const struct peer *peer)
{
    return atomic_load_explicit(&peer->next_receive_sequence, memory_order_relaxed);
}

/* That one has come. */
static inline void peer_sequence_came(struct peer *peer)
{
    atomic_store_explicit(&peer->next_receive_sequence, peer_next_sequence(peer) + 1,
                          memory_order_relaxed);
}

/* Messages may be sent to it. Acquire, against peer_reach: its lanes and plan are there. */
static inline bool peer_is_reachable(const struct peer *peer)
{
    return atomic_load_explicit(&peer->reachable, memory_order_acquire);
}

/* Release, against peer_is_reachable. */
static inline void peer_reach(struct peer *peer, bool is_reachable)
{
    atomic_store_explicit(&peer->reachable, is_reachable, memory_order_release);
}

/* The number of its lanes. Acquire, against peer_take_lanes: another thread may have added some. */
static inline uint8_t peer_lane_count(const struct peer *peer)
{
    return atomic_load_explicit(&peer->lane_count, memory_order_acquire);
}

/* The peer of that name, if it was contacted, or null. Needs no lock: peers are never removed while
 * the component is open, and a listed peer is whole. */
struct peer *peer_find(opal_process_name_t name);

/* Makes a peer (null: no memory); lists it, complete. With the component's lock held. */
struct peer *peer_new(opal_process_name_t name, ompi_proc_t *proc);
void peer_list(struct peer *peer);

/* All peers, one after the other: the first one (null), or the one behind `at`. Null: no more.
 * Needs no lock, as above. */
struct peer *peer_next(const struct peer *at);

/* Frees all peers. */
void peers_fini(void);

/* The peer's lane over this BTL, or null. */
struct lane *peer_lane_of(struct peer *peer, const mca_btl_base_module_t *btl);

/* The lane for control messages. Relaxed: any lane will do. */
static inline struct lane *peer_control_lane(struct peer *peer)
{
    /* Acquire, against peer_plan: it may be one that another thread has added. */
    return &peer->lanes[atomic_load_explicit(&peer->control, memory_order_acquire)];
}

/* The best lane for a message of this length; null: none now. One that appeared late may carry less
 * than the others. */
struct lane *peer_lane_for(struct peer *peer, size_t length);

/* The same in place of a lane that is not up; one that was not proven yet is tried from now on. */
struct lane *peer_lane_instead(struct lane *lane, size_t length);

/* Counts one more copy of that cost, if there is room; the first one always fits. peer_unqueue
 * ends it. Relaxed, all: the count orders nothing. */
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

/* Draws number and mark of a message of that cost. */
static inline void peer_draw(struct peer *peer, uint32_t cost, uint32_t *sequence, uint32_t *mark)
{
    uint64_t step = (uint64_t) cost << 32 | 1, before = counter_add(&peer->drawn, step);
    *sequence = (uint32_t) before;
    *mark = (uint32_t) ((before + step) >> 32);
}

/* Gives the last number back. False: a later one is drawn. */
static inline bool peer_undraw(struct peer *peer, uint32_t cost, uint32_t sequence)
{
    uint64_t drawn = atomic_load_explicit(&peer->drawn, memory_order_relaxed);
    /* Relaxed: nothing was sent with the number. */
    return (uint32_t) drawn == sequence + 1 &&
           atomic_compare_exchange_strong_explicit(&peer->drawn, &drawn,
                                                   drawn - ((uint64_t) cost << 32 | 1),
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* --- control messages ------------------------------------------------------------------------- */

/* The one place that writes control messages. */

struct control_message {
    size_t length;
    unsigned char bytes[WIRE_CONTROL_MAX];
};

/* Writes the base of a header to this peer, with this process's name if needed; returns the end. */
static inline unsigned char *peer_write_base(const struct peer *peer, void *at, uint8_t type,
                                             uint8_t flags)
{
    struct wire_base *base = at;
    *base = (struct wire_base){.type = type,
                               .flags = flags | (peer->is_of_other_job ? WIRE_NAMED : 0),
                               .from = multilane.me.vpid};
    unsigned char *end = (unsigned char *) (base + 1);
    if (OPAL_UNLIKELY(peer->is_of_other_job)) {
        struct wire_name name = {.jobid = multilane.me.jobid, .vpid = multilane.me.vpid};
        __builtin_memcpy(end, &name, sizeof(name));
        end += sizeof(name);
    }
    return end;
}

/* Appends bytes. */
static inline void control_append(struct control_message *message, const void *bytes, size_t length)
{
    if (length)
        __builtin_memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

/* Writes a message of this type with this body, which may be empty. */
static inline void control_write(struct control_message *message, const struct peer *peer,
                                 uint8_t type, const void *body, size_t length)
{
    message->length = (size_t) (peer_write_base(peer, message->bytes, type, 0) - message->bytes);
    control_append(message, body, length);
}

/* Sends it on this lane only, once. False: the lane has refused it. */
bool control_send_bare(struct lane *lane, uint8_t type, const void *body, size_t length);

#endif
