/* SPDX-License-Identifier: BSD-3-Clause */
/* From times to attributes of a lane. */
#include "common/lane/startup.h"

#include <math.h>
#include <string.h>

#include "common/lane/last_cache.h"

/* From an empty message to a copy of 256 KiB: at most this, and at least a millionth of it. */
#define LONGEST_S 1e-2

static bool is_time(double time_s)
{
    return time_s >= LONGEST_S * 1e-6 && time_s <= LONGEST_S; /* not where it is not a number */
}

bool startup_check(const struct startup_costs *costs)
{
    bool is_good = is_time(costs->empty_s) && (costs->change_s == 0 || is_time(costs->change_s));
    for (int i = 0; i < STARTUP_SIZES; i++)
        is_good = is_good && is_time(costs->ring_s[i]) && is_time(costs->kernel_s[i]) &&
                  costs->ring_s[i] > costs->empty_s;
    return is_good && is_time(costs->both_s);
}

/* The line through two points; through the second and 0 where it would fall. */
static void line_set(struct model_lane_range *range, double from_bytes, double from_s, double bytes,
                     double time_s, double overhead_s)
{
    double growth = (time_s - from_s) / (bytes - from_bytes);
    if (!(growth > 0) || growth * bytes > time_s)
        growth = time_s / bytes;
    range->bandwidth_bytes_s = 1 / growth;
    range->overhead_send_s = range->overhead_receive_s =
        (overhead_s + fmax(0, time_s - growth * bytes)) / 2;
}

/* Sends: as declared while a message fits a line of the ring; beyond, the time of the copies is
 * measured, and what else a message costs is declared. */
static void sends_apply(const struct startup_costs *costs, struct model_lane_cost *cost)
{
    const struct model_lane_range small = cost->ranges[0], next = cost->ranges[1];
    double overhead_s = next.overhead_send_s + next.overhead_receive_s;
    cost->range_count = 1 + STARTUP_SIZES;
    for (int i = 0; i < STARTUP_SIZES; i++) {
        struct model_lane_range *range = &cost->ranges[1 + i];
        double from = i ? (double) STARTUP_BYTES(i - 1) : 0;
        double from_s = i ? costs->ring_s[i - 1] - costs->empty_s : 0;
        *range = next;
        range->largest_bytes = i + 1 < STARTUP_SIZES ? STARTUP_BYTES(i) : UINT64_MAX;
        line_set(range, from, from_s, (double) STARTUP_BYTES(i), costs->ring_s[i] - costs->empty_s,
                 overhead_s);
    }
    cost->ranges[0] = small;
}

/* The range that holds at `bytes` ends there, and one like it follows. */
static void range_split(struct model_lane_cost *cost, uint64_t bytes)
{
    uint32_t at = 0;
    while (at < cost->range_count && cost->ranges[at].largest_bytes < bytes)
        at++;
    if (at == cost->range_count || cost->ranges[at].largest_bytes == bytes ||
        cost->range_count == MODEL_LANE_RANGES_MAX)
        return;
    memmove(&cost->ranges[at + 1], &cost->ranges[at],
            (cost->range_count - at) * sizeof(cost->ranges[0]));
    cost->ranges[at].largest_bytes = bytes;
    cost->range_count++;
}

/* The bandwidth with which a copy of that size takes its time. */
static double copy_bytes_s(int size, double time_s, double fixed_s)
{
    return (double) STARTUP_BYTES(size) / fmax(time_s - fixed_s, time_s / 2);
}

/* Beyond STARTUP_256K the largest copy counts. */
static bool is_larger(const struct model_lane_range *range)
{
    return range->largest_bytes > STARTUP_BYTES(STARTUP_256K);
}

/* A get or put: one copy by the kernel. What it takes for any size is its overhead. */
static bool copies_apply(const struct startup_costs *costs, struct model_lane_cost *cost)
{
    double fixed_s = costs->kernel_s[STARTUP_4K] / 2;
    if (!cost->range_count || cost->ranges[0].reg_growth_s_byte > 0)
        return false;
    range_split(cost, STARTUP_BYTES(STARTUP_256K));
    for (uint32_t i = 0; i < cost->range_count; i++) {
        struct model_lane_range *range = &cost->ranges[i];
        int size = is_larger(range) ? STARTUP_1M : STARTUP_256K;
        range->overhead_send_s = fixed_s;
        range->overhead_receive_s = 0;
        range->bandwidth_bytes_s = copy_bytes_s(size, costs->kernel_s[size], fixed_s);
    }
    return true;
}

/* What each message takes beside its bytes, and the bandwidth, from that range on. */
static void are_measured(struct model_lane *lane, enum model_way way, uint32_t first)
{
    for (uint32_t i = first; i < lane->cost[way].range_count; i++)
        for (int attribute = MODEL_BANDWIDTH; attribute <= MODEL_OVERHEAD_RECEIVE; attribute++)
            lane->source[way][i][attribute] = MODEL_SOURCE_MEASURED;
}

/* Both ends together cost what a get does. */
static void both_as_get(struct model_lane *lane)
{
    lane->cost[MODEL_BY_BOTH] = lane->cost[MODEL_BY_GET];
    memcpy(lane->source[MODEL_BY_BOTH], lane->source[MODEL_BY_GET],
           sizeof(lane->source[MODEL_BY_BOTH]));
}

/* Both ends at once. Up to STARTUP_256K the data moves between two caches, and what moves it is
 * busy with one end: measured, both took as long as one. */
static void both_apply(const struct startup_costs *costs, struct model_lane *lane)
{
    struct model_lane_cost *both = &lane->cost[MODEL_BY_BOTH];
    both_as_get(lane);
    for (uint32_t i = 0; i < both->range_count; i++)
        if (is_larger(&both->ranges[i]))
            both->ranges[i].bandwidth_bytes_s =
                copy_bytes_s(STARTUP_1M, costs->both_s, both->ranges[i].overhead_send_s);
}

static void copies_of_memory_apply(const struct startup_costs *costs, struct model_lane *lane)
{
    struct model_lane_cost *sends = &lane->cost[MODEL_BY_SEND];
    if ((lane->can & MODEL_CAN_RING) && sends->range_count > 1 &&
        sends->ranges[0].largest_bytes < STARTUP_BYTES(STARTUP_4K)) {
        sends_apply(costs, sends);
        are_measured(lane, MODEL_BY_SEND, 1); /* but for what fits a line of the ring */
    }
    if (!(lane->can & MODEL_CAN_GET))
        return;
    bool is_copied = true;
    for (int way = MODEL_BY_GET; way <= MODEL_BY_PUT; way++) {
        bool is_set = copies_apply(costs, &lane->cost[way]);
        is_copied = is_copied && is_set;
        if (is_set)
            are_measured(lane, (enum model_way) way, 0);
    }
    if (is_copied && (lane->can & MODEL_CAN_CONTROL))
        both_apply(costs, lane);
}

/* --- where processes share a processor -------------------------------------------------------- */

/* A ring is full each time that so much was written, and then the sender waits as long as for the
 * answer of a rendezvous. */
static void refills_apply(double change_s, struct model_lane_cost *sends)
{
    range_split(sends, RING_BYTES_CROWDED);
    for (uint32_t i = 0; i < sends->range_count; i++) {
        struct model_lane_range *range = &sends->ranges[i];
        if (range->largest_bytes > RING_BYTES_CROWDED)
            range->bandwidth_bytes_s =
                1 / (1 / range->bandwidth_bytes_s + 4 * change_s / RING_BYTES_CROWDED);
    }
}

static void change_apply(double change_s, struct model_lane *lane)
{
    if (lane->can & MODEL_CAN_RING)
        refills_apply(change_s, &lane->cost[MODEL_BY_SEND]);
    if (lane->can & MODEL_CAN_CONTROL) /* two ends that share a processor take turns */
        both_as_get(lane);
    for (int way = 0; way < MODEL_WAYS; way++) {
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            lane->cost[way].ranges[i].latency_s = change_s;
        model_lane_set_source(lane, (enum model_way) way, MODEL_LATENCY, MODEL_SOURCE_DEFAULT);
    }
}

void startup_apply(const struct startup_costs *costs, struct model_lane *lane)
{
    if (startup_check(costs))
        copies_of_memory_apply(costs, lane);
    if (is_time(costs->change_s))
        change_apply(costs->change_s, lane);
}
