/* SPDX-License-Identifier: BSD-3-Clause */
/* Capacity groups: lanes driven by the same core, bus or card, whose bandwidths do not add up. */
#ifndef COMMON_MODEL_GROUP_H
#define COMMON_MODEL_GROUP_H

#include <stdint.h>

#include "common/model/lane.h"

/* One lane's part in what several carry together. */
struct group_member {
    uint32_t group; /* 0: of its own */
    double bandwidth_bytes_s;
};

/* A member's bandwidth; less where its group is exhausted. A group carries what was measured, or
 * else as much as the fastest of its members. */
double group_part(const struct group_member *members, uint32_t count, uint32_t i,
                  const struct model_groups *groups);

/* Writes the bandwidths that add up to what the members carry together, at most one a member, to
 * `parts` and returns how many: members of a group that is not exhausted one by one, an exhausted
 * group as one. That the caller adds them, not this function, is what lets it add without rounding.
 */
uint32_t group_bandwidths(const struct group_member *members, uint32_t count,
                          const struct model_groups *groups, double parts[MODEL_LANES_MAX]);

#endif
