/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the lines of common/model/protocol.c round: what is added up there is taken apart. */
#include "tools/lane/lane_of_times.h"

#include <math.h>

/* What a model can compute with. */
#define BANDWIDTH_MOST 1e30

/* Sends of the model: of each size the first of these that carries it. */
static const uint32_t eager[] = {MODEL_EAGER_SHORT, MODEL_EAGER_COPY, MODEL_EAGER_ZCOPY};

double lane_predict(const struct model_lane *lane, const struct model_surroundings *around,
                    uint32_t protocol, uint64_t bytes)
{
    struct plan_input input;
    struct plan_entry entry;
    struct cost cost;
    plan_input_init(&input);
    input.lanes = lane;
    input.lane_count = 1;
    input.around = *around;
    input.around.bias = 1;
    return plan_best_of_protocol(&input, protocol, bytes, &entry, &cost)
               ? cost_of(&cost, COST_OF_MESSAGE, bytes)
               : NAN;
}

/* --- what registrations and copies that the lane chooses took of the times -------------------- */

struct parts {
    struct model_lane with, without; /* latency and overhead 0; those parts, and not */
    const struct model_surroundings *around;
};

static void parts_set(struct parts *parts, const struct model_lane *lane,
                      const struct model_surroundings *around)
{
    parts->around = around;
    parts->with = *lane;
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
            struct model_lane_range *range = &parts->with.cost[way].ranges[i];
            range->latency_s = range->overhead_send_s = range->overhead_receive_s = 0;
        }
    parts->without = parts->with;
    parts->without.copy_growth_s_byte = 0;
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
            struct model_lane_range *range = &parts->without.cost[way].ranges[i];
            range->reg_cost_s = range->reg_growth_s_byte = 0;
        }
}

/* The time without them; below 0: it was not measured. */
static double time_at(const struct lane_times *times, const struct parts *parts, uint32_t protocol,
                      uint32_t bucket)
{
    const struct lane_time *time = &times->at[protocol][bucket];
    uint64_t bytes = UINT64_C(1) << bucket;
    if (!time->messages || !(time->seconds > 0))
        return -1;
    double paid_s = lane_predict(&parts->with, parts->around, protocol, bytes) -
                    lane_predict(&parts->without, parts->around, protocol, bytes);
    return paid_s > 0 ? fmax(time->seconds / 10, time->seconds - paid_s) : time->seconds;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The last size before this one, and what it took; `seconds` below 0: there is none. */
struct node {
    double bytes, seconds;
};

/* What a line through both has at 0 bytes. Where the second took less, the line is flat; where it
 * would begin below 0, it begins there and meets the second. */
static double fixed_of(struct node before, double bytes, double seconds)
{
    double growth = fmax(0, (seconds - before.seconds) / (bytes - before.bytes));
    return before.seconds < 0 ? 0 : fmax(0, seconds - growth * bytes);
}

/* A range that ends at this size, where such a line with such a beginning takes so long. */
static void range_set(struct model_lane_range *range, double bytes, double seconds, double fixed_s,
                      double latency_s, double overhead_s)
{
    range->largest_bytes = (uint64_t) bytes;
    range->bandwidth_bytes_s = fmin(BANDWIDTH_MOST, bytes / fmax(seconds - fixed_s, 1e-30));
    range->latency_s = latency_s;
    model_overhead_divide(overhead_s, &range->overhead_send_s, &range->overhead_receive_s);
}

/* As the last one, which holds the registration of the way. */
static struct model_lane_range range_like(const struct model_lane_cost *cost)
{
    struct model_lane_range range = {.reg_cost_s = 0};
    if (cost->range_count) {
        range.reg_cost_s = cost->ranges[cost->range_count - 1].reg_cost_s;
        range.reg_growth_s_byte = cost->ranges[cost->range_count - 1].reg_growth_s_byte;
    }
    return range;
}

/* The last line goes on beyond what was measured; one that is flat would make larger messages free.
 */
static void way_end(struct model_lane *lane, enum model_way way, struct node last_node,
                    struct model_lane_cost *cost)
{
    if (!cost->range_count)
        return;
    struct model_lane_range *last = &cost->ranges[cost->range_count - 1];
    if (last->bandwidth_bytes_s >= BANDWIDTH_MOST)
        range_set(last, last_node.bytes, last_node.seconds, 0, 0, 0);
    last->largest_bytes = UINT64_MAX;
    lane->cost[way] = *cost;
}

static double eager_at(const struct lane_times *times, const struct parts *parts, uint32_t bucket)
{
    double seconds = -1;
    for (size_t i = 0; i < sizeof(eager) / sizeof(eager[0]) && seconds < 0; i++)
        seconds = time_at(times, parts, eager[i], bucket);
    return seconds;
}

/* Eager: over + size / bw. rndv-am: 4 lat + 3 over + size / bw. Where rndv-am was
 * quicker, which that cannot say, its time stands for both, as what the bytes took. */
static void sends_set(const struct lane_times *times, const struct parts *parts,
                      struct model_lane *lane)
{
    struct model_lane_cost cost = {.range_count = 0};
    struct node before_eager = {0, -1}, before_am = {0, -1};
    double latency_s = 0, over_s = 0;
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++) {
        double bytes = exp2(bucket);
        double eager_s = eager_at(times, parts, bucket);
        double am_s = time_at(times, parts, MODEL_RNDV_AM, bucket);
        struct model_lane_range *range = &cost.ranges[cost.range_count];
        bool has_line = eager_s >= 0 ? before_eager.seconds >= 0 : before_am.seconds >= 0;
        *range = range_like(&lane->cost[MODEL_BY_SEND]);
        if (eager_s >= 0 && has_line) {
            bool am_wins = am_s >= 0 && am_s * parts->around->bias <= eager_s;
            over_s = am_wins ? 0 : fixed_of(before_eager, bytes, eager_s);
            if (am_s >= 0)
                latency_s = fmax(0, am_s - eager_s - 2 * over_s) / 4;
            range_set(range, bytes, am_wins ? am_s : eager_s, over_s, latency_s, over_s);
        } else if (am_s >= 0 && has_line) {
            double fixed_s = fixed_of(before_am, bytes, am_s);
            over_s = fmin(over_s, fixed_s / 3);
            range_set(range, bytes, am_s, fixed_s, (fixed_s - 3 * over_s) / 4, over_s);
        } else {
            has_line = false;
        }
        cost.range_count += has_line;
        before_eager = eager_s >= 0 ? (struct node){bytes, eager_s} : before_eager;
        before_am = am_s >= 0 ? (struct node){bytes, am_s} : before_am;
    }
    way_end(lane, MODEL_BY_SEND, before_eager.bytes > before_am.bytes ? before_eager : before_am,
            &cost);
}

/* 4 lat + 3 over + size / bw. */
static void moves_set(const struct lane_times *times, const struct parts *parts, uint32_t protocol,
                      enum model_way way, struct model_lane *lane)
{
    struct model_lane_cost cost = {.range_count = 0};
    struct node before = {0, -1};
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++) {
        double bytes = exp2(bucket), seconds = time_at(times, parts, protocol, bucket);
        struct model_lane_range *range = &cost.ranges[cost.range_count];
        if (seconds < 0)
            continue;
        if (before.seconds >= 0) {
            const struct model_lane_range *send =
                model_lane_range_at(lane, MODEL_BY_SEND, (uint64_t) bytes);
            double fixed_s = fixed_of(before, bytes, seconds);
            double latency_s = send ? fmin(send->latency_s, fixed_s / 4) : 0;
            *range = range_like(&lane->cost[way]);
            range_set(range, bytes, seconds, fixed_s, latency_s, (fixed_s - 4 * latency_s) / 3);
            cost.range_count++;
        }
        before = (struct node){bytes, seconds};
    }
    way_end(lane, way, before, &cost);
}

bool lane_of_times(const struct lane_times *times, const struct model_surroundings *around,
                   struct model_lane *lane, struct model_error *error)
{
    struct parts parts;
    struct model_lane made = *lane;
    parts_set(&parts, lane, around);
    sends_set(times, &parts, &made);
    moves_set(times, &parts, MODEL_RNDV_GET, MODEL_BY_GET, &made);
    moves_set(times, &parts, MODEL_RNDV_PUT, MODEL_BY_PUT, &made);
    moves_set(times, &parts, MODEL_RNDV_BOTH, MODEL_BY_BOTH, &made);
    if (!model_lane_check(&made, error))
        return false;
    *lane = made;
    return true;
}
