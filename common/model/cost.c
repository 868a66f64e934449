/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs: adding terms, and what they come to at a size. */
#include "common/model/cost.h"

const char *cost_stage_name(enum cost_stage stage)
{
    static const char *const names[COST_STAGES] = {[COST_SENDER] = "sender",
                                                   [COST_WIRE] = "wire",
                                                   [COST_RECEIVER] = "receiver",
                                                   [COST_LATENCY] = "latency"};
    return stage < COST_STAGES ? names[stage] : "unknown";
}

double cost_of_stage(const struct cost *cost, enum cost_stage stage, uint64_t bytes)
{
    return cost_line_at(&cost->stage[stage], (double) bytes);
}

double cost_of(const struct cost *cost, enum cost_view view, uint64_t bytes)
{
    double sum = 0, largest = 0;
    for (int stage = 0; stage < COST_STAGES; stage++) {
        double time = cost_of_stage(cost, (enum cost_stage) stage, bytes);
        sum += time;
        if (stage != COST_LATENCY && time > largest)
            largest = time;
    }
    return view == COST_OF_MESSAGE ? sum : largest + (sum - largest) / COST_STREAM_MESSAGES;
}

void cost_begin(struct cost *cost, double scale)
{
    *cost = (struct cost){.last_bytes = UINT64_MAX, .scale = scale};
}

void cost_end(struct cost *cost)
{
    if (cost->bandwidth_bytes_s > 0)
        cost->stage[COST_WIRE].growth_s_byte += 1 / cost->bandwidth_bytes_s;
    for (int stage = 0; stage < COST_STAGES; stage++) {
        cost->stage[stage].fixed_s *= cost->scale;
        cost->stage[stage].growth_s_byte *= cost->scale;
    }
}

struct cost_line cost_sum_line(const struct cost *cost)
{
    struct cost_line sum = {0, 0};
    for (int stage = 0; stage < COST_STAGES; stage++) {
        sum.fixed_s += cost->stage[stage].fixed_s;
        sum.growth_s_byte += cost->stage[stage].growth_s_byte;
    }
    return sum;
}
