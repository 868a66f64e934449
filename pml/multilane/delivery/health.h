/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a lane. Changes are only marked here; watch.c acts on them from progress. */
#ifndef MULTILANE_HEALTH_H
#define MULTILANE_HEALTH_H

#include "delivery/delivery_state.h"

/* Both with the delivery's lock held. False: no change. After True, where the lane is not up any
 * more, the caller calls delivery_take_back. */
bool health_set(struct delivery *delivery, struct lane *lane, enum lane_state state,
                const char *why);
/* The peer answered this question on this lane. */
void health_answered(struct delivery *delivery, struct lane *lane, uint32_t ask);

#endif
