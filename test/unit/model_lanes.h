/* SPDX-License-Identifier: BSD-3-Clause */
/* Fake lanes for the tests of the model: with fixed numbers, and by chance. */
#ifndef TEST_UNIT_MODEL_LANES_H
#define TEST_UNIT_MODEL_LANES_H

#include <math.h>

#include "check.h"
#include "common/model/lane.h"
#include "common/model/plan.h"

/* As the lane file's defaults: sends, gets and puts in place, no copied fragments. */
static inline void fake_lane(struct model_lane *lane, const char *name, enum model_use use,
                             double latency, double bandwidth, double overhead, double reg_cost,
                             double reg_growth)
{
    struct model_lane_range range = {.largest_bytes = UINT64_MAX,
                                     .latency_s = latency,
                                     .bandwidth_bytes_s = bandwidth,
                                     .reg_cost_s = reg_cost,
                                     .reg_growth_s_byte = reg_growth};
    model_overhead_divide(overhead, &range.overhead_send_s, &range.overhead_receive_s);
    model_lane_init(lane, name);
    lane->can = MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT;
    lane->use = (uint32_t) use;
    lane->zcopied_max_bytes = UINT64_MAX;
    model_lane_set_cost(lane, MODEL_WAYS, &range);
}

/* A value around `middle`, up to three magnitudes off, sometimes 0, sometimes round. */
static inline double chance_value(uint64_t *chance, double middle)
{
    switch (chance_below(chance, 8)) {
    case 0:
        return 0;
    case 1:
        return middle;
    default:
        return middle * pow(10, 6 * chance_real(chance) - 3);
    }
}

static inline double chance_bandwidth(uint64_t *chance)
{
    double value = chance_value(chance, 1e10);
    return value > 0 ? value : 1e10;
}

/* One draw a statement: C leaves the order within an expression to the compiler, and every compiler
 * is to see the same lanes. */
static inline void chance_lane(uint64_t *chance, struct model_lane *lane, enum model_use use)
{
    double latency = chance_value(chance, 1e-6);
    double bandwidth = chance_bandwidth(chance);
    double overhead = chance_value(chance, 1e-7);
    double reg_cost = chance_value(chance, 1e-6);
    double reg_growth = chance_value(chance, 1e-10);
    fake_lane(lane, "by chance", use, latency, bandwidth, overhead, reg_cost, reg_growth);
}

#endif
