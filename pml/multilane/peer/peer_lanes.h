/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a peer: taken over from the BML, lost, found again, made anew. */
#ifndef MULTILANE_PEER_LANES_H
#define MULTILANE_PEER_LANES_H

#include "peer/peer.h"

/* What a BTL of ours offers beside btl.h; null for another's. */
const struct multilane_extension *lane_extension_of(const mca_btl_base_module_t *btl);

/* Is there a BTL of Open MPI's that may lose what it took, and so a whole process, met or not? */
bool lanes_may_lose(void);

/* Takes what the BML has toward the peer and is no lane yet, and plans for it. False: nothing
 * reaches the peer. With the component's lock held. */
bool peer_take_lanes(struct peer *peer);

/* The same for a lane that something has come on and that the peer does not have: it may have
 * appeared after first contact. Null: the BML does not know it either. No lock is held. */
struct lane *peer_late_lane(struct peer *peer, const mca_btl_base_module_t *btl);

/* The lane is lost, or is there again: what is sent from now on is planned without it, or with it.
 * False: no lane is left to this peer. No lock is held. */
bool lane_set_lost(struct lane *lane, bool is_lost);

/* Its lanes go, and it has to be met again. */
void peer_forget_lanes(struct peer *peer);

/* Makes a renewable lane that broke anew; false: not now. */
bool lane_renew(struct lane *lane);

#endif
