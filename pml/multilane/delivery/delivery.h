/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over lanes that may lose what they took: numbered, kept until the peer has them, sent
 * again over another lane when theirs is lost, and dropped by the receiver when they come twice.
 *
 * Only lanes whose completion does not mean delivery need it, and only where a peer has another
 * lane to send again over; lane->framed says so, decided once when the peer is met. What such a
 * lane sends, of whatever type, is put into an envelope (struct wire_frame); the storeys above do
 * not know of it.
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

#include "delivery/delivery_state.h"

/* Kept bytes above which a sender has to wait: more than a fast network has under way. */
#define DELIVERY_WINDOW_BYTES ((size_t) 8 << 20)

/* Makes the peer's delivery if it has none. Null without memory. */
struct delivery *delivery_of(struct peer *peer);
/* Frees those of all peers. */
void deliveries_fini(void);

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
/* Before that: the message goes on with `length` bytes of the owner's, registered with the lane,
 * which has `in_place`. They stay until `left` was called. */
static inline void frame_refer(struct frame *frame, const void *payload, size_t length,
                               mca_btl_base_registration_handle_t *registration)
{
    frame->payload = payload;
    frame->payload_length = length;
    frame->registration = registration;
}

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

/* Tells the peer what has come; `ask` is the question that it answers, or 0. */
void delivery_tell(struct delivery *delivery, struct lane *lane, uint32_t ask);
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

/* The lane's BTL says that it is broken: marks it, and progress acts on that. False: it is not one
 * that messages are kept for, so that what it carried may be lost. */
bool delivery_lane_broke(struct lane *lane, const char *what, const char *why);

#endif
