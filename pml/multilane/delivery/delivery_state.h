/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames between this process and one peer: see delivery.h. */
#ifndef MULTILANE_DELIVERY_STATE_H
#define MULTILANE_DELIVERY_STATE_H

#include <stdatomic.h>

#include "lane/lane.h"
#include "peer/peer.h"
#include "wire/wire.h"

/* One message in its envelope, as on the wire. */
struct frame {
    struct frame *next;
    struct delivery *delivery;
    struct lane *lane;  /* the last lane, or the next one; null: any */
    struct lane *meant; /* the lane that it was written for; it may name its keys */
    uint32_t number;
    uint32_t ask;   /* delivery->ask when it was sent */
    uint32_t heard; /* delivery->heard when it was sent */
    uint32_t users; /* threads and lanes that use it: it must not be freed */
    bool busy;      /* a thread is giving it to a lane */
    bool done;      /* not kept any more; its last user frees it */
    bool unsent;    /* counted in delivery->unsent: progress has to send it */
    bool was_sent;  /* a lane has taken it before */
    bool striped;   /* counts among the striped bytes of its lane, see stripe.h */
    uint32_t room;  /* for the message */
    lane_left left; /* null; or called when a lane has handed it over, or the peer has it */
    void *owner;
    size_t length; /* of bytes */
    unsigned char bytes[];
};

/* All frames between this process and one peer. */
struct delivery {
    struct peer *peer;
    opal_mutex_t lock; /* guards what follows; the lock of schedule.c is taken inside */

    struct frame *first; /* kept frames, by number */
    struct frame **last;
    struct frame *departed;    /* forgotten frames whose owners were not told yet */
    uint32_t next;             /* number of the next frame */
    uint32_t acknowledged;     /* the peer has all with a smaller number */
    uint32_t begun;            /* frames between frame_begin and frame_send */
    uint32_t unsent;           /* frames that no lane has taken yet */
    _Atomic size_t kept_bytes; /* relaxed: others than its lock's owner take it as a hint */
    bool lost;                 /* the peer is lost: nothing is kept any more */
    /* index + 1 of the peer's only lane where watch.c asks it now and then though nothing is
     * kept; else 0 */
    _Atomic uint8_t alone;

    uint32_t heard;                        /* all frames below have come */
    uint64_t come[WIRE_FRAME_WINDOW / 64]; /* later ones that have come */
    uint32_t owed_frames;                  /* come and not acknowledged */
    size_t owed_bytes;
    bool owes_now; /* a duplicate came: acknowledge at once */

    /* For watch.c, in active time (schedule.h). */
    uint32_t ask;         /* number of the last question */
    uint64_t asked_ns;    /* when it was asked */
    uint64_t moved_ns;    /* when `acknowledged` moved last, or the first frame was kept */
    uint64_t alive_ns;    /* when the peer answered last */
    uint64_t waited_ns;   /* when it was first asked since, though nothing is kept */
    uint64_t owed_ns;     /* since when an acknowledgement is due */
    uint64_t verified_ns; /* when the system was last asked about the peer */
    _Atomic bool watched; /* in watch.c's list */
    struct delivery *next_watched;
};

/* The peer's delivery, or null. Acquire, against delivery_of: what is found is whole. */
static inline struct delivery *delivery_find(const struct peer *peer)
{
    return atomic_load_explicit(&peer->delivery, memory_order_acquire);
}

/* Is more on its way to the peer, as far as it has said, than a message of that size? */
static inline bool delivery_is_ahead(const struct peer *peer, size_t bytes)
{
    const struct delivery *delivery = delivery_find(peer);
    return delivery && atomic_load_explicit(&delivery->kept_bytes, memory_order_relaxed) >= bytes;
}

#endif
