/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: their words, their checks, and what two ends make of one. */
#include "common/model/lane.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What lies beyond is no attribute of anything that moves bytes, and would overflow sums. */
#define TIME_S_MAX    1e9
#define BANDWIDTH_MIN 1e-6
#define BANDWIDTH_MAX 1e30

const char *model_source_name(enum model_source source)
{
    static const char *const names[MODEL_SOURCES] = {
        [MODEL_SOURCE_USER] = "user",         [MODEL_SOURCE_PROFILE] = "profile",
        [MODEL_SOURCE_MEASURED] = "measured", [MODEL_SOURCE_DECLARED] = "declared",
        [MODEL_SOURCE_FOREIGN] = "foreign",   [MODEL_SOURCE_DEFAULT] = "default"};
    return source < MODEL_SOURCES ? names[source] : "unknown";
}

const char *model_way_name(enum model_way way)
{
    static const char *const names[MODEL_WAYS] = {"send", "get", "put", "both"};
    return way < MODEL_WAYS ? names[way] : "unknown";
}

const char *model_attribute_name(enum model_attribute attribute)
{
    static const char *const names[MODEL_ATTRIBUTES] = {[MODEL_LATENCY] = "latency",
                                                        [MODEL_BANDWIDTH] = "bandwidth",
                                                        [MODEL_OVERHEAD_SEND] = "overhead_send",
                                                        [MODEL_OVERHEAD_RECEIVE] =
                                                            "overhead_receive",
                                                        [MODEL_REG_COST] = "reg_cost",
                                                        [MODEL_REG_GROWTH] = "reg_growth"};
    return attribute < MODEL_ATTRIBUTES ? names[attribute] : "unknown";
}

/* The name of the lowest bit of `bits`. */
static const char *bit_name(uint32_t bits, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bits >> i & 1)
            return names[i];
    return "nothing";
}

const char *model_ability_name(enum model_ability ability)
{
    static const char *const names[MODEL_ABILITIES] = {"send",    "short",   "get",  "put",
                                                       "atomics", "control", "copy", "stage",
                                                       "deliver", "fence",   "ring"};
    return bit_name((uint32_t) ability, names, MODEL_ABILITIES);
}

const char *model_memory_name(enum model_memory memory)
{
    static const char *const names[MODEL_MEMORIES] = {"host", "cuda", "managed"};
    return bit_name((uint32_t) memory, names, MODEL_MEMORIES);
}

void model_lane_init(struct model_lane *lane, const char *name)
{
    memset(lane, 0, sizeof *lane);
    snprintf(lane->name, sizeof lane->name, "%s", name);
    lane->reach = MODEL_MEMORY_HOST;
    lane->use = MODEL_USE_BOTH;
    lane->pieces_max = 1;
    lane->reg_cached_s = -1;
    model_lane_set_source(lane, MODEL_WAYS, MODEL_ATTRIBUTES, MODEL_SOURCE_DEFAULT);
}

void model_lane_set_source(struct model_lane *lane, enum model_way way,
                           enum model_attribute attribute, enum model_source source)
{
    for (int i = 0; i < MODEL_WAYS; i++)
        for (int j = 0; j < MODEL_ATTRIBUTES; j++)
            if ((way == MODEL_WAYS || way == (enum model_way) i) &&
                (attribute == MODEL_ATTRIBUTES || attribute == (enum model_attribute) j))
                lane->source[i][j] = (uint8_t) source;
}

void model_lane_set_cost(struct model_lane *lane, enum model_way way,
                         const struct model_lane_range *range)
{
    for (int i = 0; i < MODEL_WAYS; i++)
        if (way == MODEL_WAYS ? i != MODEL_BY_BOTH : way == (enum model_way) i) {
            lane->cost[i].range_count = 1;
            lane->cost[i].ranges[0] = *range;
            lane->cost[i].ranges[0].largest_bytes = UINT64_MAX;
        }
}

void model_overhead_divide(double overhead_s, double *send_s, double *receive_s)
{
    *send_s = overhead_s / 2;
    *receive_s = overhead_s - *send_s; /* exact: the two are within a factor of two */
}

bool model_attribute_check(enum model_attribute attribute, double value, struct model_error *error)
{
    if (attribute == MODEL_BANDWIDTH) {
        if ((value >= BANDWIDTH_MIN && value <= BANDWIDTH_MAX) || value == INFINITY)
            return true;
        return model_fail(error, "bandwidth = %g is not from %g to %g bytes a second", value,
                          BANDWIDTH_MIN, BANDWIDTH_MAX);
    }
    if (value >= 0 && value <= TIME_S_MAX)
        return true;
    return model_fail(error, "%s = %g is not a time from 0 to %g seconds",
                      model_attribute_name(attribute), value, TIME_S_MAX);
}

static bool check_range(const struct model_lane *lane, const struct model_lane_range *range,
                        struct model_error *error)
{
    const double values[MODEL_ATTRIBUTES] = {[MODEL_LATENCY] = range->latency_s,
                                             [MODEL_BANDWIDTH] = range->bandwidth_bytes_s,
                                             [MODEL_OVERHEAD_SEND] = range->overhead_send_s,
                                             [MODEL_OVERHEAD_RECEIVE] = range->overhead_receive_s,
                                             [MODEL_REG_COST] = range->reg_cost_s,
                                             [MODEL_REG_GROWTH] = range->reg_growth_s_byte};
    struct model_error why;
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (!model_attribute_check((enum model_attribute) i, values[i], &why))
            return model_fail(error, "lane \"%s\": %.200s", lane->name, why.text);
    return true;
}

static bool check_cost(const struct model_lane *lane, const struct model_lane_cost *cost,
                       struct model_error *error)
{
    uint32_t count = cost->range_count;
    if (count > MODEL_LANE_RANGES_MAX)
        return model_fail(error, "lane \"%s\" has %u size ranges, more than %d", lane->name,
                          (unsigned) count, MODEL_LANE_RANGES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (i && cost->ranges[i].largest_bytes <= cost->ranges[i - 1].largest_bytes)
            return model_fail(error, "lane \"%s\": size range %u does not end above the one before",
                              lane->name, (unsigned) i + 1);
        if (!check_range(lane, &cost->ranges[i], error))
            return false;
    }
    if (count && cost->ranges[count - 1].largest_bytes != UINT64_MAX)
        return model_fail(error, "lane \"%s\": its last size range does not end at inf",
                          lane->name);
    return true;
}

bool model_lane_check(const struct model_lane *lane, struct model_error *error)
{
    if (!(lane->reg_cached_s <= TIME_S_MAX))
        return model_fail(error, "lane \"%s\": reg_cached = %g is not a time of at most %g seconds",
                          lane->name, lane->reg_cached_s, TIME_S_MAX);
    for (int way = 0; way < MODEL_WAYS; way++)
        if (!check_cost(lane, &lane->cost[way], error))
            return false;
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* 0 means "no bound" here. */
static uint64_t tighter(uint64_t a, uint64_t b)
{
    return !a ? b : !b ? a : smaller(a, b);
}

static void range_pair(const struct model_lane_range *a, const struct model_lane_range *b,
                       struct model_lane_range *out)
{
    out->latency_s = fmax(a->latency_s, b->latency_s);
    out->bandwidth_bytes_s = fmin(a->bandwidth_bytes_s, b->bandwidth_bytes_s);
    out->overhead_send_s = fmax(a->overhead_send_s, b->overhead_send_s);
    out->overhead_receive_s = fmax(a->overhead_receive_s, b->overhead_receive_s);
    out->reg_cost_s = fmax(a->reg_cost_s, b->reg_cost_s);
    out->reg_growth_s_byte = fmax(a->reg_growth_s_byte, b->reg_growth_s_byte);
}

/* Walks both lists of ranges. Where together they bend more often than a list can hold, the last
 * one is taken as it is at its start: large messages, whose ranges differ least. */
static void cost_pair(const struct model_lane_cost *a, const struct model_lane_cost *b,
                      struct model_lane_cost *out)
{
    uint32_t in_a = 0, in_b = 0, count = 0;
    while (in_a < a->range_count && in_b < b->range_count && count < MODEL_LANE_RANGES_MAX) {
        uint64_t end = smaller(a->ranges[in_a].largest_bytes, b->ranges[in_b].largest_bytes);
        range_pair(&a->ranges[in_a], &b->ranges[in_b], &out->ranges[count]);
        out->ranges[count++].largest_bytes = end;
        in_a += a->ranges[in_a].largest_bytes == end;
        in_b += b->ranges[in_b].largest_bytes == end;
    }
    out->range_count = count;
    if (count)
        out->ranges[count - 1].largest_bytes = UINT64_MAX;
}

void model_lane_pair(const struct model_lane *local, const struct model_lane *remote,
                     struct model_lane *out)
{
    *out = *local;
    out->can = local->can & remote->can;
    out->reach = local->reach & remote->reach;
    out->short_max_bytes = smaller(local->short_max_bytes, remote->short_max_bytes);
    out->copied_max_bytes = smaller(local->copied_max_bytes, remote->copied_max_bytes);
    out->zcopied_max_bytes = smaller(local->zcopied_max_bytes, remote->zcopied_max_bytes);
    out->pieces_max = (uint32_t) smaller(local->pieces_max, remote->pieces_max);
    out->piece_min_bytes = larger(local->piece_min_bytes, remote->piece_min_bytes);
    out->align_bytes = larger(local->align_bytes, remote->align_bytes);
    out->in_flight_max_bytes = tighter(local->in_flight_max_bytes, remote->in_flight_max_bytes);
    if (local->reg_cached_s < 0 || remote->reg_cached_s < 0)
        out->reg_cached_s = -1;
    else
        out->reg_cached_s = fmax(local->reg_cached_s, remote->reg_cached_s);
    for (int way = 0; way < MODEL_WAYS; way++)
        cost_pair(&local->cost[way], &remote->cost[way], &out->cost[way]);
}

const struct model_lane_range *model_lane_range_at(const struct model_lane *lane,
                                                   enum model_way way, uint64_t bytes)
{
    const struct model_lane_cost *cost = &lane->cost[way];
    for (uint32_t i = 0; i < cost->range_count; i++)
        if (bytes <= cost->ranges[i].largest_bytes)
            return &cost->ranges[i];
    return NULL;
}
