/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of the striped bytes that have come on each lane, by which the peer knows how fast its
 * lanes are (stripe.h). */
#ifndef MULTILANE_SEEN_H
#define MULTILANE_SEEN_H

#include "peer/peer.h"

/* A marked piece came on a lane (null: on none of the peer's). Reports, now and then, on the same
 * lane: so the sender knows which. */
void seen_on_lane(struct lane *lane, size_t size);

/* A message is complete: reports what was not reported yet. */
void seen_flush(struct peer *peer);

#endif
