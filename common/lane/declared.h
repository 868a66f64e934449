/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of lanes whose BTL is ours, from what its extension declares. */
#ifndef COMMON_LANE_DECLARED_H
#define COMMON_LANE_DECLARED_H

#include "common/model/lane.h"
#include "multilane/extension.h"

/* Fills `lane`; `can` are the abilities that btl.h gives the module. Values that the BTL does not
 * know (below 0) become 0. What cannot be (a latency of a minute, a bandwidth that is no number) is
 * replaced by a default, and *complaint is a sentence about the first such value; else it is empty.
 */
void declared_attributes(const char *btl, uint32_t can,
                         const struct multilane_lane_attributes *attributes,
                         struct model_lane *lane, struct model_error *complaint);

#endif
