/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of our own lanes; see given.h. */
#include "common/lane/given.h"

#include <string.h>

#include "common/model/lane.h"
#include "common/model/number.h"

static const char *const names[GIVEN_ATTRIBUTES] = {
    [GIVEN_LATENCY] = "latency",   [GIVEN_BANDWIDTH] = "bandwidth",   [GIVEN_OVERHEAD] = "overhead",
    [GIVEN_REG_COST] = "reg_cost", [GIVEN_REG_GROWTH] = "reg_growth",
};

/* What the model takes; a bandwidth of 0 is an infinite one. */
static bool can_be(int attribute, double value, struct model_error *why)
{
    static const enum model_attribute attributes[GIVEN_ATTRIBUTES] = {
        [GIVEN_LATENCY] = MODEL_LATENCY,        [GIVEN_BANDWIDTH] = MODEL_BANDWIDTH,
        [GIVEN_OVERHEAD] = MODEL_OVERHEAD_SEND, [GIVEN_REG_COST] = MODEL_REG_COST,
        [GIVEN_REG_GROWTH] = MODEL_REG_GROWTH,
    };

    return (GIVEN_BANDWIDTH == attribute && 0 == value) ||
           model_attribute_check(attributes[attribute], value, why);
}

bool given_read(struct given *given, const char *btl, struct model_error *error)
{
    for (int i = 0; i < GIVEN_ATTRIBUTES; i++) {
        const char *text = given->texts[i];
        struct model_error why;

        given->values[i] = -1;
        if (NULL == text || 0 == strcmp(text, "auto"))
            continue;
        if (!number_parse_real(text, &given->values[i], NULL))
            return model_fail(error,
                              "btl_%s_lane_%s is \"%.64s\", which is not a number of at least 0; "
                              "give one, or auto.",
                              btl, names[i], text);
        if (!can_be(i, given->values[i], &why))
            return model_fail(error, "btl_%s_lane_%s is \"%.64s\": %.150s; give another, or auto.",
                              btl, names[i], text, why.text);
    }
    return true;
}

static void value_apply(double given, double *value)
{
    if (given >= 0)
        *value = given;
}

void given_apply(const struct given *given, struct multilane_lane_range *ranges, uint32_t count)
{
    for (struct multilane_lane_range *range = ranges; range < ranges + count; range++) {
        value_apply(given->values[GIVEN_LATENCY], &range->latency_s);
        value_apply(given->values[GIVEN_BANDWIDTH], &range->bandwidth_bytes_s);
        value_apply(given->values[GIVEN_OVERHEAD] / 2, &range->overhead_send_s);
        value_apply(given->values[GIVEN_OVERHEAD] / 2, &range->overhead_receive_s);
        value_apply(given->values[GIVEN_REG_COST], &range->registration_s);
        value_apply(given->values[GIVEN_REG_GROWTH], &range->registration_s_byte);
    }
}
