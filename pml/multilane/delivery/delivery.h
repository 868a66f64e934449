/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over lanes that may lose what they took: numbered, kept until the peer has them, sent
 * again over another lane when theirs is lost, and dropped by the receiver when they come twice.
 *
 * Only lanes whose completion does not mean delivery need it, and only where a peer has another
 * lane to send again over; lane->framed says so, decided once when the peer is met. What such a
 * lane sends, of whatever type, is put into an envelope (struct wire_frame); nobody above knows of
 * it.
 *
 *   caller       frame_begin, fills frame_message(), frame_send
 *   delivery     numbers the frame, keeps it, gives a copy to the lane
 *   peer         delivery_arrived: new or seen before; tells now and then which ones have come
 *   delivery     delivery_heard: what the peer has is forgotten
 *   watch.c      from progress: sends again, asks silent lanes, gives lanes and peers up
 *
 * The receiver needs no fence: what comes over a lane that was given up is an active message with a
 * number that it has seen. Gets and puts have no number, so framed lanes do not offer them. */
#ifndef MULTILANE_DELIVERY_H
#define MULTILANE_DELIVERY_H

#include "lane/lane.h"
#include "peer/peer.h"
#include "wire/wire.h"

/* Kept bytes above which a sender has to wait: more than a fast network has under way. */
#define DELIVERY_WINDOW_BYTES ((size_t) 8 << 20)

/* One message in its envelope, as it stands on the wire. */
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
    bool unsent;    /* counted in delivery->unsent: watch.c has to send it */
    bool was_sent;  /* a lane had taken it before */
    bool expected;  /* the peer waits for it: it may go by a slot */
    bool striped;   /* counts among the striped bytes of its lane, see stripe.h */
    uint32_t room;  /* of the message, as asked for */
    lane_left left; /* null, or told once the first lane has handed it over, or the peer has it */
    void *owner;
    size_t length; /* of bytes */
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
    /* Atomic, 1 and the index of a lane: nothing is kept, and watch.c asks it now and then. */
    uint8_t alone;

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
    bool watched;         /* atomic: in watch.c's list */
    struct delivery *next_watched;
};

/* Makes the peer's delivery if it has none. Null without memory. */
struct delivery *delivery_of(struct peer *peer);
void delivery_free(struct delivery *delivery);

/* An envelope with room for a message of `length` bytes for this lane. Null, with *rc LANE_AGAIN:
 * too much is under way; or without memory. */
struct frame *frame_begin(struct lane *lane, size_t length, int *rc);

static inline unsigned char *frame_message(struct frame *frame)
{
    return frame->bytes + (frame->length - frame->room);
}

/* Sends it, now or from progress, with a message of `length` bytes, at most what was asked for.
 * `left`, if it is not null, is called. */
void frame_send(struct frame *frame, size_t length, bool striped, lane_left left, void *owner);
/* Nothing is to be sent after all. */
void frame_drop(struct frame *frame);

/* The same in one, for a message that is there; `is_expected`: by a slot, if it goes the first
 * time. LANE_UNDER_WAY, or LANE_AGAIN and nothing is done. */
int delivery_send(struct lane *lane, const void *bytes, size_t length, bool is_expected,
                  lane_left left, void *owner);

/* A frame has come: is the message in it new? *good: its number can be. */
bool delivery_arrived(struct delivery *delivery, const struct wire_frame *wire, size_t length,
                      bool *good);
/* After its message was dealt with: tells the peer, if it is time. */
void delivery_answer(struct delivery *delivery, struct lane *lane);

/* The peer tells what it has. False: that cannot be. */
bool delivery_heard(struct peer *peer, struct lane *lane, const struct wire_heard *heard);
/* The peer asks whether this lane lives. */
void delivery_asked(struct peer *peer, struct lane *lane, const struct wire_ask *ask);

/* For watch.c. Tells the peer what has come; `ask` is the question that it answers, or 0. */
int delivery_tell(struct delivery *delivery, struct lane *lane, uint32_t ask);
/* Sends again what no lane has taken, as far as there is room. */
void delivery_resend(struct delivery *delivery);
/* With the lock held: all that went by this lane has to go by another one. */
void delivery_take_back(struct delivery *delivery, struct lane *lane);
/* The peer's lanes go: what is kept waits for new ones. */
void delivery_park(struct delivery *delivery);
/* The peer is given up: forgets everything, and all that follows. */
void delivery_abandon(struct delivery *delivery);

/* The lane that a message of this length, with its envelope, goes by where its own is lost; null if
 * none is left. A lane that appeared late may carry less than those before it. */
struct lane *delivery_lane(struct peer *peer, size_t length);

#endif
