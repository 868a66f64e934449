/* SPDX-License-Identifier: BSD-3-Clause */
/* Striping: each piece of a message takes the lane on which it arrives first, by the lane's
 * measured speed and what is under way on it. So all lanes finish together, and a lane that
 * slows down gets less at once. */
#ifndef MULTILANE_STRIPE_H
#define MULTILANE_STRIPE_H

#include "peer/peer.h"
#include "plan/peer_class.h"

/* The lane for the next piece, and its largest size: `size` bytes are left of `total`. Null: it
 * waits; with `waits` also while the best lane is busy, where waiting for it is better. */
struct lane *stripe_choose(const struct route *route, struct peer *peer, size_t total, size_t *size,
                           bool waits);

/* In place of a lane that returns messages: itself; where it is not up another one, or null if none
 * is; where its BTL tells what is under way, the one like it on which a whole message of that size
 * arrives first. */
struct lane *stripe_instead(struct lane *lane, size_t size);

/* The lane for a whole message of that size by the route's only lane. Null: none now. */
static inline struct lane *stripe_whole(const struct route *route, struct peer *peer, size_t size)
{
    struct lane *lane = route_lane(route, peer, 0);
    return OPAL_LIKELY(!lane->returns) ? lane : stripe_instead(lane, size);
}

/* The size of the next fragment of `left` bytes on a lane that takes `most`: as few fragments as
 * possible, of about equal size, in whole cache lines. After a full fragment a short one would
 * arrive while the receiver still copies; of two halves it copies one meanwhile. */
size_t stripe_fragment(size_t left, size_t most);

/* Marks the header of a piece as counted, so that the receiver reports it, unless its BTL
 * measures the lane. Not needed where the plan uses one lane at a time, nor for whole messages. */
static inline void stripe_set_counted(const struct route *route, void *header)
{
    ((struct wire_base *) header)->traits = route->counted ? WIRE_STRIPED : 0;
}

/* A counted piece was given to a lane. */
void stripe_sent(struct lane *lane, size_t size);

/* The lane is lost, or what is under way on it: forgets that. */
void stripe_lane_lost(struct lane *lane);

/* The same for gets and puts: returns an index in `lanes`, or below 0: wait. Under way is what
 * has not ended at this end. */
int stripe_choose_copy(struct lane *const *lanes, int count, size_t total, size_t *size);
void stripe_copying(struct lane *lane, size_t size);
void stripe_copied(struct lane *lane, size_t size);
/* It failed: the time that it took is not the lane's speed. */
void stripe_copy_failed(struct lane *lane, size_t size);
/* The lane had no room for the piece. */
void stripe_not_copying(struct lane *lane, size_t size);

/* WIRE_RECEIVED: the peer's count of striped bytes received on this lane. */
void stripe_received(struct lane *lane, const struct wire_received *received);

/* The speed that the lane has shown by messages, or by gets and puts; 0: it carried no part of any.
 */
double stripe_observed_speed(const struct lane *lane, bool copies);
/* The bytes that it has carried, or was given where its BTL measures it. */
uint64_t stripe_carried(const struct lane *lane, bool copies);

/* Sets the first speed from the model, once per lane. */
void stripe_init(struct lane *lane, const struct model_lane *attributes);

#endif
