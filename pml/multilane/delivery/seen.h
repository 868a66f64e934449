/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the striped bytes received on each lane; the peer computes the speed of its lanes from
 * them (stripe.h). */
#ifndef MULTILANE_SEEN_H
#define MULTILANE_SEEN_H

#include "peer/peer.h"

/* A counted piece arrived on a lane (null: on no lane of the peer). Reports now and then, on the
 * same lane. */
void seen_on_lane(struct lane *lane, size_t size);

/* A message is complete: reports the rest. */
void seen_flush(struct peer *peer);

#endif
