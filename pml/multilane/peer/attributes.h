/* SPDX-License-Identifier: BSD-3-Clause */
/* What the model is told of a lane, and by whom. */
#ifndef MULTILANE_ATTRIBUTES_H
#define MULTILANE_ATTRIBUTES_H

#include "common/lane/profile.h"
#include "common/model/lane.h"
#include "peer/peer.h"

/* Where a peer is, as far as lanes to it may differ. */
enum profile_placement attributes_placement(const struct peer *peer);

/* Gathers the attributes of a lane from all sources, the strongest last. False: they cannot be
 * computed with, which was said. `group` is not 0 where the lanes to this peer share one. */
bool attributes_of_lane(const struct lane *lane, uint32_t group, struct model_lane *out);

#endif
