/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable messages over lanes of Open MPI that may lose messages, as tcp. Each is numbered, kept
 * until the peer has it, sent again over another lane when its lane is lost, and dropped by the
 * receiver when it arrives twice. Our own lanes keep messages themselves, and return them when they
 * break (return_to in multilane/extension.h, control_returned).
 *
 * Needed only where the peer has another lane to send over. lane->framed says so, fixed when the
 * peer is met. On such a lane every message is put into an envelope (struct wire_frame); the layers
 * above do not see it.
 *
 *   caller       frame_begin, fills frame_message(), frame_send
 *   delivery     numbers the frame, keeps it, gives a copy to the lane
 *   peer         delivery_arrived: new or a duplicate; acknowledges now and then
 *   delivery     delivery_heard: forgets what the peer has
 *   watch.c      from progress: sends again, asks silent lanes, gives up lanes and peers
 *
 * The receiver needs no fence: what arrives over a given-up lane is an active message with a
 * number that it has seen. Gets and puts have no number, so framed lanes do not offer them. */
#ifndef MULTILANE_DELIVERY_H
#define MULTILANE_DELIVERY_H

#include "delivery/delivery_state.h"

/* Above so many kept bytes senders wait: more than a fast network has under way. */
#define DELIVERY_WINDOW_BYTES ((size_t) 8 << 20)

/* The peer's delivery, made if there is none. Null: no memory. */
struct delivery *delivery_of(struct peer *peer);
/* Frees the deliveries of all peers. */
void deliveries_fini(void);

/* A new frame with room for a message of `length` bytes for this lane. Null, with *rc LANE_AGAIN:
 * too much is under way, or no memory. */
struct frame *frame_begin(struct lane *lane, size_t length, int *rc);

static inline unsigned char *frame_message(struct frame *frame)
{
    return frame->bytes + (frame->length - frame->room);
}

/* Sends the frame, now or from progress, with a message of `length` bytes, at most the room.
 * Calls `left`, if not null. */
void frame_send(struct frame *frame, size_t length, bool striped, lane_left left, void *owner);
/* frame_begin to frame_send in one call. LANE_UNDER_WAY, or LANE_AGAIN: nothing was done. */
int delivery_send(struct lane *lane, const void *bytes, size_t length, lane_left left, void *owner);

/* A frame has arrived. True: its message is new. *good: its number is possible. */
bool delivery_arrived(struct delivery *delivery, const struct wire_frame *wire, size_t length,
                      bool *good);
/* After the message was handled: acknowledges, if it is time. */
void delivery_answer(struct delivery *delivery, struct lane *lane);

/* WIRE_HEARD: the peer acknowledges. False: impossible numbers. */
bool delivery_heard(struct peer *peer, struct lane *lane, const struct wire_heard *heard);
/* WIRE_ASK: answers on this lane. */
void delivery_asked(struct peer *peer, struct lane *lane, const struct wire_ask *ask);

/* Acknowledges all that has arrived; `ask` is the question that this answers, or 0. */
void delivery_tell(struct delivery *delivery, struct lane *lane, uint32_t ask);
/* Sends the frames that no lane has taken, as far as there is room. */
void delivery_resend(struct delivery *delivery);
/* With the lock held: all frames of this lane will go by another one. */
void delivery_take_back(struct delivery *delivery, struct lane *lane);
/* With the lock held: a lane is up now. What silent ones were given while none was goes by it as
 * well. */
void delivery_lane_up(struct delivery *delivery);
/* The peer's lanes go away: the frames wait for new ones. */
void delivery_park(struct delivery *delivery);
/* The peer is lost: drops all frames, also later ones. */
void delivery_abandon(struct delivery *delivery);

/* Progress looks at the lane's peer until there is nothing to do: the lane is proven, or it is left
 * out. */
void delivery_lane_watch(struct lane *lane);

/* A BTL reports the lane as broken: marks it, and progress acts on it. False: no other lane takes
 * over, so what it carried may be lost. */
bool delivery_lane_broke(struct lane *lane, const char *what, const char *why);

#endif
