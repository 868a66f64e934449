/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: their words and their checks. */
#include "common/model/lane.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *model_source_name(enum model_source source)
{
    static const char *const names[MODEL_SOURCES] = {
        [MODEL_SOURCE_USER] = "user",         [MODEL_SOURCE_PROFILE] = "profile",
        [MODEL_SOURCE_MEASURED] = "measured", [MODEL_SOURCE_DECLARED] = "declared",
        [MODEL_SOURCE_LINK] = "link speed",   [MODEL_SOURCE_STOCK_BTL] = "stock BTL",
        [MODEL_SOURCE_DEFAULT] = "default",   [MODEL_SOURCE_UNMEASURED] = "not measured"};
    return source < MODEL_SOURCES ? names[source] : "unknown";
}

const char *model_way_name(enum model_way way)
{
    static const char *const names[MODEL_WAYS] = {"send", "get", "put", "both"};
    return way < MODEL_WAYS ? names[way] : "unknown";
}

/* The name of the lowest bit of `bits`. */
static const char *bit_name(uint32_t bits, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bits >> i & 1)
            return names[i];
    return "nothing";
}

const char *model_ability_name(uint32_t abilities)
{
    static const char *const names[MODEL_ABILITIES] = {
        "send", "short", "get", "put", "atomics", "control", "copy", "deliver", "fence", "ring"};
    return bit_name(abilities, names, MODEL_ABILITIES);
}

bool model_use_find(const char *name, uint32_t *use)
{
    static const struct {
        const char *name;
        enum model_use use;
    } uses[] = {{"eager", MODEL_USE_EAGER}, {"rndv", MODEL_USE_RNDV}, {"both", MODEL_USE_BOTH}};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (!strcmp(name, uses[i].name)) {
            *use = (uint32_t) uses[i].use;
            return true;
        }
    return false;
}

const char *model_memory_name(uint32_t memories)
{
    static const char *const names[MODEL_MEMORIES] = {"host", "cuda", "managed"};
    return bit_name(memories, names, MODEL_MEMORIES);
}

int model_memory_find(const char *name)
{
    int bit = 0;
    while (bit < MODEL_MEMORIES && strcmp(name, model_memory_name(UINT32_C(1) << bit)))
        bit++;
    return bit;
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
                for (int range = 0; range < MODEL_LANE_RANGES_MAX; range++)
                    lane->source[i][range][j] = (uint8_t) source;
}

bool model_lane_has_source(const struct model_lane *lane, enum model_source source)
{
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t range = 0; range < lane->cost[way].range_count; range++)
            for (int i = 0; i < MODEL_ATTRIBUTES; i++)
                if (lane->source[way][range][i] == (uint8_t) source)
                    return true;
    return false;
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

static bool check_range(const struct model_lane *lane, const struct model_lane_range *range,
                        struct error_text *error)
{
    struct error_text why;
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (!model_attribute_check((enum model_attribute) i, model_attribute_of(range, i), &why))
            return fail_with(error, "lane \"%s\": %.200s", lane->name, why.text);
    return true;
}

static bool check_cost(const struct model_lane *lane, const struct model_lane_cost *cost,
                       struct error_text *error)
{
    uint32_t count = cost->range_count;
    if (count > MODEL_LANE_RANGES_MAX)
        return fail_with(error, "lane \"%s\" has %u size ranges, more than %d", lane->name,
                         (unsigned) count, MODEL_LANE_RANGES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (i && cost->ranges[i].largest_bytes <= cost->ranges[i - 1].largest_bytes)
            return fail_with(error, "lane \"%s\": size range %u does not end above the one before",
                             lane->name, (unsigned) i + 1);
        if (!check_range(lane, &cost->ranges[i], error))
            return false;
    }
    if (count && cost->ranges[count - 1].largest_bytes != UINT64_MAX)
        return fail_with(error, "lane \"%s\": its last size range does not end at inf", lane->name);
    return true;
}

/* What one of them gets of the lane's device; INFINITY: it is not shared. */
static double lane_part(const struct model_lane *lane, struct model_sharers sharers)
{
    uint32_t least = sharers.same_node ? 2 : 1, processes = sharers.processes;
    if (!(lane->shared_bytes_s > 0))
        return INFINITY;
    if (processes < least)
        processes = least;
    if (processes > MODEL_SHARERS_MOST)
        processes = MODEL_SHARERS_MOST;
    return lane->shared_bytes_s / (sharers.same_node ? 2 : 1) / processes;
}

void model_lane_share(struct model_lane *lane, struct model_sharers sharers)
{
    double part = lane_part(lane, sharers);
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            if (lane->cost[way].ranges[i].bandwidth_bytes_s > part)
                lane->cost[way].ranges[i].bandwidth_bytes_s = part;
}

bool model_lane_check(const struct model_lane *lane, struct error_text *error)
{
    struct error_text why;
    if (!(lane->reg_cached_s <= MODEL_TIME_S_MAX))
        return fail_with(error, "lane \"%s\": reg_cached = %g is not a time of at most %g seconds",
                         lane->name, lane->reg_cached_s, MODEL_TIME_S_MAX);
    if (!(lane->copy_growth_s_byte >= 0 && lane->copy_growth_s_byte <= MODEL_TIME_S_MAX))
        return fail_with(error, "lane \"%s\": copy_growth = %g is not a time of at most %g seconds",
                         lane->name, lane->copy_growth_s_byte, MODEL_TIME_S_MAX);
    if (lane->shared_bytes_s != 0 &&
        !model_attribute_check(MODEL_BANDWIDTH, lane->shared_bytes_s, &why))
        return fail_with(error, "lane \"%s\": shared = %g is no bandwidth", lane->name,
                         lane->shared_bytes_s);
    for (int way = 0; way < MODEL_WAYS; way++)
        if (!check_cost(lane, &lane->cost[way], error))
            return false;
    return true;
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

uint64_t model_lane_next_end(const struct model_lane *lane, int ways, uint64_t bytes)
{
    uint64_t end = UINT64_MAX;
    for (int way = 0; way < ways; way++) {
        const struct model_lane_range *range =
            model_lane_range_at(lane, (enum model_way) way, bytes);
        if (range && range->largest_bytes < end)
            end = range->largest_bytes;
    }
    return end;
}
