/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes side by side: each piece of a message takes the lane on which it arrives first, by how fast
 * each lane was seen to be and by what is still under way on it. So shares finish together, and a
 * lane that slows down gets less at once. */
#ifndef MULTILANE_STRIPE_H
#define MULTILANE_STRIPE_H

#include "peer/peer.h"
#include "peer/peer_class.h"

/* The lane for the next piece, and how long it should be at most: `size` are left of `total` bytes.
 * With `may_wait` null where it is better to wait: the lane that would bring the piece first has
 * enough to do. */
struct lane *stripe_choose(const struct route *route, struct peer *peer, size_t total, size_t *size,
                           bool may_wait);

/* How much of `left` goes into the next fragment of a lane that takes `most`: into as few as can
 * be, all of about a size, in whole cache lines. A short one behind a full one would come when the
 * receiver is busy with that, where of two halves it could have copied the first meanwhile. */
size_t stripe_fragment(size_t left, size_t most);

/* Marks the header of a piece as one that counts: what is under way of it matters to others, so
 * the receiver reports it. Where a plan uses no two lanes at once no sender asks, and a message
 * that is not cut is none of this. */
static inline void stripe_set_counted(const struct route *route, void *header)
{
    ((struct wire_base *) header)->traits = route->counted;
}

/* A marked piece was given to a lane. */
void stripe_sent(struct lane *lane, size_t size);
/* It was not, after all. */
void stripe_not_sent(struct lane *lane, size_t size);

/* The lane is lost: what is under way on it counts no longer. */
void stripe_lane_lost(struct lane *lane);

/* The same for gets and puts, among lanes that can: the index of one, or below 0 where it is better
 * to wait. What is under way is what has not ended at this end. */
int stripe_choose_copy(struct lane *const *lanes, int count, size_t total, size_t *size);
void stripe_copying(struct lane *lane, size_t size);
void stripe_copied(struct lane *lane, size_t size);
/* It failed: how long that took is not the lane's speed. */
void stripe_copy_failed(struct lane *lane, size_t size);
/* The lane had no room: the piece is not under way after all. */
void stripe_not_copying(struct lane *lane, size_t size);

/* The peer says how many of the striped bytes that were ever sent on this lane it has. */
void stripe_seen(struct lane *lane, const struct wire_seen *seen);

/* Starts from what the model knows of the lane; nothing where it has started before. */
void stripe_init(struct lane *lane, const struct model_lane *attributes);

#endif
