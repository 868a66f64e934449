/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way between this process and one peer over lanes that may lose it: see delivery.h.
 */
#ifndef MULTILANE_DELIVERY_STATE_H
#define MULTILANE_DELIVERY_STATE_H

#include <stdatomic.h>

#include "lane/lane.h"
#include "peer/peer.h"
#include "wire/wire.h"

/* One message in its envelope, as it stands on the wire; or its beginning, and where the rest is in
 * the memory of its owner, who is then told later. */
struct frame {
    struct frame *next;
    struct delivery *delivery;
    struct lane *lane;        /* that it went by last, or is to go by; null: any */
    const struct lane *meant; /* that its message was written for, which may name keys of it */
    uint32_t number;
    uint32_t ask;   /* the last question asked before it went */
    uint32_t heard; /* of the peer's frames, when it went */
    uint32_t users; /* threads that give it to a lane, and lanes that have not handed it over: it
                     * must not be freed */
    bool busy;      /* a thread is giving it to a lane */
    bool done;      /* the peer has it; its last user frees it */
    bool unsent;    /* counted in delivery->unsent: progress has to send it */
    bool was_sent;  /* a lane had taken it before */
    bool expected;  /* the peer waits for it: it may go by a slot */
    bool striped;   /* counts among the striped bytes of its lane, see stripe.h */
    uint32_t room;  /* of the message, as asked for */
    lane_left left; /* null, or told once the first lane has handed it over, or the peer has it; if
                     * there is a payload, once the peer has it and no lane reads it any more */
    void *owner;
    const void *payload; /* null: all is in bytes */
    size_t payload_length;
    mca_btl_base_registration_handle_t *registration; /* of it, with `meant` */
    bool delivered; /* a lane said that the peer has it: it is not sent again */
    size_t length;  /* of bytes */
    unsigned char bytes[];
};

/* What is under way between this process and one peer. */
struct delivery {
    struct peer *peer;
    opal_mutex_t
        lock; /* guards all that follows; a leaf, but that watch.c's list is locked inside */

    struct frame *first; /* kept, by number */
    struct frame **last;
    struct frame *departed; /* not kept any more, and their owners have to be told */
    uint32_t next;          /* number of the next frame */
    uint32_t acknowledged;  /* the peer has all with a smaller number */
    uint32_t begun;         /* frames that are being filled */
    uint32_t unsent;        /* frames that no lane has taken yet */
    size_t kept_bytes;
    bool lost; /* the peer is given up: nothing is kept any more */
    /* 1 and the index of a lane: nothing is kept, and watch.c asks it now and then. */
    _Atomic uint8_t alone;

    uint32_t heard;                        /* all frames below have come */
    uint64_t come[WIRE_FRAME_WINDOW / 64]; /* those beyond, by number modulo the window */
    uint32_t owed_frames;                  /* come since we told the peer */
    size_t owed_bytes;
    bool owes_now; /* something came again: the peer does not know what we have */

    /* For watch.c, in its time. */
    uint32_t ask;         /* number of the last question */
    uint64_t asked_ns;    /* when it was asked */
    uint64_t moved_ns;    /* when `acknowledged` moved, or something was kept at last */
    uint64_t alive_ns;    /* when the peer was last heard of */
    uint64_t waited_ns;   /* when it was asked, the first time since, though nothing is kept */
    uint64_t owed_ns;     /* since when something is owed */
    uint64_t verified_ns; /* when the system was last asked whether the peer lives */
    _Atomic bool watched; /* in watch.c's list */
    struct delivery *next_watched;
};

/* The peer's delivery, or null. Acquire, against delivery_of: what is found is whole. */
static inline struct delivery *delivery_find(const struct peer *peer)
{
    return atomic_load_explicit(&peer->delivery, memory_order_acquire);
}

#endif
