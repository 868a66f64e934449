/* SPDX-License-Identifier: BSD-3-Clause */
/* Capacity groups. */
#include "common/model/group.h"

#include <stdbool.h>

/* What a group carries. */
static double group_capacity(uint32_t group, const struct group_member *members, uint32_t count,
                             const struct model_groups *groups)
{
    double fastest = 0;
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->list[i].id == group && groups->list[i].bandwidth_bytes_s > 0)
            return groups->list[i].bandwidth_bytes_s;
    for (uint32_t i = 0; i < count; i++)
        if (members[i].group == group && members[i].bandwidth_bytes_s > fastest)
            fastest = members[i].bandwidth_bytes_s;
    return fastest;
}

static double group_sum(uint32_t group, const struct group_member *members, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (members[i].group == group)
            sum += members[i].bandwidth_bytes_s;
    return sum;
}

double group_part(const struct group_member *members, uint32_t count, uint32_t i,
                  const struct model_groups *groups)
{
    double bytes_s = members[i].bandwidth_bytes_s;
    if (!members[i].group)
        return bytes_s;
    double sum = group_sum(members[i].group, members, count);
    double capacity = group_capacity(members[i].group, members, count, groups);
    return sum > capacity ? bytes_s * (capacity / sum) : bytes_s;
}

static bool group_seen_before(const struct group_member *members, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (members[j].group == members[i].group)
            return true;
    return false;
}

uint32_t group_bandwidths(const struct group_member *members, uint32_t count,
                          const struct model_groups *groups, double parts[MODEL_LANES_MAX])
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = members[i].group;
        double capacity;
        if (!group || group_sum(group, members, count) <=
                          (capacity = group_capacity(group, members, count, groups)))
            parts[written++] = members[i].bandwidth_bytes_s;
        else if (!group_seen_before(members, i))
            parts[written++] = capacity;
    }
    return written;
}
