/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of attributes, and the checks of values. */
#include "common/model/attribute.h"

#include <math.h>
#include <string.h>

/* What lies beyond is no attribute of anything that moves bytes, and would overflow sums. */
#define BANDWIDTH_MIN 1e-6
#define BANDWIDTH_MAX 1e30

#define AT(member) offsetof(struct model_lane_range, member)

static const char both_overheads[] = "time of sender and receiver for one message in seconds";

const struct model_attribute_row model_attributes[MODEL_ATTRIBUTES] = {
    [MODEL_LATENCY] = {"latency", "latency", AT(latency_s), 1e-6, "latency of the lane in seconds"},
    [MODEL_BANDWIDTH] = {"bandwidth", "bandwidth", AT(bandwidth_bytes_s), 1e9,
                         "bandwidth of the lane in bytes a second"},
    [MODEL_OVERHEAD_SEND] = {"overhead_send", "overhead", AT(overhead_send_s), 1e-6,
                             both_overheads},
    [MODEL_OVERHEAD_RECEIVE] = {"overhead_receive", "overhead", AT(overhead_receive_s), 1e-6,
                                both_overheads},
    [MODEL_REG_COST] = {"reg_cost", "reg_cost", AT(reg_cost_s), 1e-6,
                        "time to register memory in seconds"},
    [MODEL_REG_GROWTH] = {"reg_growth", "reg_growth", AT(reg_growth_s_byte), 0,
                          "time to register one byte more in seconds"},
};

const char *model_attribute_name(enum model_attribute attribute)
{
    return attribute < MODEL_ATTRIBUTES ? model_attributes[attribute].key : "unknown";
}

bool model_attribute_shares_key(int attribute)
{
    for (int i = 0; i < attribute; i++)
        if (!strcmp(model_attributes[i].user_key, model_attributes[attribute].user_key))
            return true;
    return false;
}

void model_overhead_divide(double overhead_s, double *send_s, double *receive_s)
{
    *send_s = overhead_s / 2;
    *receive_s = overhead_s - *send_s; /* exact: the two are within a factor of two */
}

bool model_attribute_check(enum model_attribute attribute, double value, struct error_text *error)
{
    if (attribute == MODEL_BANDWIDTH) {
        if ((value >= BANDWIDTH_MIN && value <= BANDWIDTH_MAX) || value == INFINITY)
            return true;
        return fail_with(error, "bandwidth = %g: it is above 0, from %g to %g bytes a second",
                         value, BANDWIDTH_MIN, BANDWIDTH_MAX);
    }
    if (value >= 0 && value <= MODEL_TIME_S_MAX)
        return true;
    return fail_with(error, "%s = %g is not a time from 0 to %g seconds",
                     model_attribute_name(attribute), value, MODEL_TIME_S_MAX);
}
