/* SPDX-License-Identifier: BSD-3-Clause */
/* From the extension's words to the model's. */
#include "common/lane/declared.h"

#include <math.h>
#include <stdio.h>

_Static_assert(MULTILANE_LANE_RANGES_MAX <= MODEL_LANE_RANGES_MAX, "what a BTL declares fits");

struct conversion {
    const char *btl;
    struct model_error *complaint;
};

/* In the extension's words a value below 0 is not known, and a bandwidth of 0 has no bound. */
static double convert(const struct conversion *conversion, enum model_attribute attribute,
                      double value)
{
    struct model_error why;
    double assumed = model_attributes[attribute].assumed;
    if (attribute == MODEL_BANDWIDTH ? value <= 0 : value < 0)
        return attribute == MODEL_BANDWIDTH ? INFINITY : 0;
    if (model_attribute_check(attribute, value, &why))
        return value;
    if (!conversion->complaint->text[0])
        model_fail(conversion->complaint, "BTL %s declares what cannot be: %.200s; %g is assumed",
                   conversion->btl, why.text, assumed);
    return assumed;
}

static void convert_cost(const struct conversion *conversion,
                         const struct multilane_lane_cost *from, struct model_lane_cost *to)
{
    to->range_count = from->range_count <= MULTILANE_LANE_RANGES_MAX ? from->range_count : 0;
    for (uint32_t i = 0; i < to->range_count; i++) {
        to->ranges[i].largest_bytes = from->ranges[i].largest_bytes;
        for (int j = 0; j < MODEL_ATTRIBUTES; j++)
            *model_attribute_in(&to->ranges[i], j) = convert(
                conversion, (enum model_attribute) j, model_attribute_of(&from->ranges[i], j));
    }
}

static uint32_t abilities(uint64_t capabilities)
{
    uint32_t can = 0;
    if (capabilities & MULTILANE_CAN_CONTROL)
        can |= MODEL_CAN_CONTROL;
    if (capabilities & MULTILANE_CAN_COPY)
        can |= MODEL_CAN_COPY;
    if (capabilities & MULTILANE_CAN_DELIVER)
        can |= MODEL_CAN_DELIVER;
    if (capabilities & MULTILANE_CAN_FENCE)
        can |= MODEL_CAN_FENCE;
    if (capabilities & MULTILANE_CAN_RING)
        can |= MODEL_CAN_RING;
    return can;
}

void declared_attributes(const char *btl, uint32_t can,
                         const struct multilane_lane_attributes *attributes,
                         struct model_lane *lane, struct model_error *complaint)
{
    const struct conversion conversion = {.btl = btl, .complaint = complaint};
    complaint->text[0] = '\0';
    model_lane_init(lane, btl);
    if (attributes->device[0] && attributes->device[sizeof(attributes->device) - 1] == '\0')
        snprintf(lane->name, sizeof(lane->name), "%s:%.40s", btl, attributes->device);
    lane->can = can | abilities(attributes->capabilities);
    lane->reach = (attributes->memory & MODEL_MEMORY_HOST ? MODEL_MEMORY_HOST : 0) |
                  (attributes->memory & MODEL_MEMORY_CUDA ? MODEL_MEMORY_CUDA : 0);
    lane->use = MODEL_USE_BOTH;
    lane->group = attributes->capacity_group;
    lane->short_max_bytes = attributes->short_max_bytes;
    lane->copied_max_bytes = attributes->copied_max_bytes;
    lane->zcopied_max_bytes = attributes->zcopied_max_bytes;
    if (attributes->copy_s_byte > 0 && attributes->copy_s_byte <= MODEL_TIME_S_MAX)
        lane->copy_growth_s_byte = attributes->copy_s_byte;
    for (int way = 0; way < MULTILANE_WAYS; way++)
        convert_cost(&conversion, &attributes->cost[way], &lane->cost[way]);
    if (lane->cost[MODEL_BY_GET].range_count == 0)
        lane->can &= ~(uint32_t) MODEL_CAN_GET;
    if (lane->cost[MODEL_BY_PUT].range_count == 0)
        lane->can &= ~(uint32_t) MODEL_CAN_PUT;
    model_lane_set_source(lane, MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_DECLARED);
}
