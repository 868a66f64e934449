/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a lane answers. What is found is marked; watch.c acts on it from progress. */
#ifndef MULTILANE_HEALTH_H
#define MULTILANE_HEALTH_H

#include "delivery/delivery_state.h"

/* Both with the delivery's lock held. False: nothing changes. True: if the lane is up no more, the
 * caller has what went by it go by another one (delivery_take_back). */
bool health_set(struct delivery *delivery, struct lane *lane, enum lane_state state,
                const char *why);
/* The peer answered this question on this lane. */
void health_answered(struct delivery *delivery, struct lane *lane, uint32_t ask);

#endif
