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
    const struct multilane_times *time = &times->at[protocol][bucket];
    uint64_t bytes = UINT64_C(1) << bucket;
    if (!time->messages || !(time->seconds > 0))
        return -1;
    double paid_s = lane_predict(&parts->with, parts->around, protocol, bytes) -
                    lane_predict(&parts->without, parts->around, protocol, bytes);
    return paid_s > 0 ? fmax(time->seconds / 10, time->seconds - paid_s) : time->seconds;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* A line may pass the times of sizes between its ends by this part: as near as times are known. */
#define NEAR 0.05
/* rndv-am is quicker than an eager message where it takes at most this part, noise apart. */
#define QUICKER 0.95

/* Where messages of one size get their line from. */
enum rule { BY_EAGER, BY_AM_FOR_BOTH, BY_RNDV };

struct curve {
    uint32_t count;
    struct node {
        double bytes, seconds;
        double am_s; /* of rndv-am; below 0: not measured */
        enum rule rule;
    } nodes[LEARNED_BUCKETS];
};

static void node_add(struct curve *curve, uint32_t bucket, double seconds, double am_s,
                     enum rule rule)
{
    curve->nodes[curve->count++] = (struct node){exp2(bucket), seconds, am_s, rule};
}

/* Through two sizes; flat where the second took less, from 0 on where it would begin below. */
static struct cost_line line_through(const struct node *first, const struct node *last)
{
    double growth = fmax(0, (last->seconds - first->seconds) / (last->bytes - first->bytes));
    double fixed_s = fmax(0, last->seconds - growth * last->bytes);
    return (struct cost_line){fixed_s, (last->seconds - fixed_s) / last->bytes};
}

/* Eager: over + size / bw. rndv-am: 4 lat + 3 over + size / bw. The latency with which the second
 * takes what it took. */
static double latency_at(const struct node *node, double over_s)
{
    return fmax(0, node->am_s - node->seconds - 2 * over_s) / 4;
}

/* The least of all sizes of a line, as others may have been disturbed; of none `before_s`. */
static double latency_of(const struct curve *curve, uint32_t first, uint32_t last, double over_s,
                         double before_s)
{
    double least_s = INFINITY;
    for (uint32_t i = first + 1; i <= last; i++)
        if (curve->nodes[i].am_s >= 0)
            least_s = fmin(least_s, latency_at(&curve->nodes[i], over_s));
    return isfinite(least_s) ? least_s : before_s;
}

/* Is the line near all sizes from `first` to `last`, for both protocols? */
static bool is_near(const struct curve *curve, uint32_t first, uint32_t last)
{
    struct cost_line line = line_through(&curve->nodes[first], &curve->nodes[last]);
    double latency_s = latency_of(curve, first, last, line.fixed_s, 0);
    bool is_good = true;
    for (uint32_t i = first + 1; i <= last; i++) {
        const struct node *node = &curve->nodes[i];
        double seconds = cost_line_at(&line, node->bytes);
        is_good = is_good && fabs(seconds - node->seconds) <= NEAR * node->seconds;
        if (node->am_s >= 0)
            is_good =
                is_good && 4 * (latency_at(node, line.fixed_s) - latency_s) <= NEAR * node->am_s;
    }
    return is_good;
}

/* The last size of the longest line from the size `first`. */
static uint32_t line_end(const struct curve *curve, uint32_t first)
{
    uint32_t end = first + 1;
    while (end + 1 < curve->count && curve->nodes[end + 1].rule == curve->nodes[end].rule &&
           is_near(curve, first, end + 1))
        end++;
    return end;
}

/* A rendezvous takes so long for no bytes: 4 lat + 3 over. */
static void handshake_set(struct model_lane_range *range, double fixed_s, double over_s)
{
    double over = fmin(over_s, fixed_s / 3);
    range->latency_s = fmax(0, fixed_s - 3 * over) / 4;
    model_overhead_divide(over, &range->overhead_send_s, &range->overhead_receive_s);
}

/* A range for each line. With the registration that the way has. */
static void way_set(const struct curve *curve, enum model_way way, struct model_lane *lane)
{
    struct model_lane_cost *cost = &lane->cost[way];
    struct model_lane_range range = {.reg_cost_s = 0};
    double latency_s = 0, over_s = 0;
    if (curve->count < 2)
        return;
    if (cost->range_count)
        range = cost->ranges[cost->range_count - 1];
    cost->range_count = 0;
    for (uint32_t first = 0, last; first + 1 < curve->count; first = last) {
        last = line_end(curve, first);
        const struct node *end = &curve->nodes[last];
        struct cost_line line = line_through(&curve->nodes[first], end);
        const struct model_lane_range *send =
            model_lane_range_at(lane, MODEL_BY_SEND, (uint64_t) end->bytes);
        bool is_last = last + 1 == curve->count;
        /* The last line goes on: a flat one would make larger messages free. */
        if (end->rule == BY_AM_FOR_BOTH ||
            (is_last && line.growth_s_byte * end->bytes < NEAR * end->seconds))
            line = (struct cost_line){0, end->seconds / end->bytes};
        if (end->rule == BY_EAGER) {
            over_s = line.fixed_s;
            range.latency_s = latency_s = latency_of(curve, first, last, over_s, latency_s);
            model_overhead_divide(over_s, &range.overhead_send_s, &range.overhead_receive_s);
        } else {
            if (way != MODEL_BY_SEND)
                over_s =
                    (line.fixed_s - 4 * fmin(send ? send->latency_s : 0, line.fixed_s / 4)) / 3;
            handshake_set(&range, line.fixed_s, over_s);
        }
        range.largest_bytes = is_last ? UINT64_MAX : (uint64_t) end->bytes;
        range.bandwidth_bytes_s = fmin(BANDWIDTH_MOST, 1 / line.growth_s_byte);
        cost->ranges[cost->range_count++] = range;
    }
}

static double eager_at(const struct lane_times *times, const struct parts *parts, uint32_t bucket)
{
    double seconds = -1;
    for (size_t i = 0; i < sizeof(eager) / sizeof(eager[0]) && seconds < 0; i++)
        seconds = time_at(times, parts, eager[i], bucket);
    return seconds;
}

static void sends_set(const struct lane_times *times, const struct parts *parts,
                      struct model_lane *lane)
{
    struct curve curve = {.count = 0};
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++) {
        double eager_s = eager_at(times, parts, bucket);
        double am_s = time_at(times, parts, MODEL_RNDV_AM, bucket);
        if (am_s >= 0 && am_s <= QUICKER * eager_s) /* the model cannot say that */
            node_add(&curve, bucket, am_s, -1, BY_AM_FOR_BOTH);
        else if (eager_s >= 0)
            node_add(&curve, bucket, eager_s, am_s, BY_EAGER);
        else if (am_s >= 0)
            node_add(&curve, bucket, am_s, -1, BY_RNDV);
    }
    way_set(&curve, MODEL_BY_SEND, lane);
}

static void moves_set(const struct lane_times *times, const struct parts *parts, uint32_t protocol,
                      enum model_way way, struct model_lane *lane)
{
    struct curve curve = {.count = 0};
    for (uint32_t bucket = 0; bucket < LEARNED_BUCKETS; bucket++) {
        double seconds = time_at(times, parts, protocol, bucket);
        if (seconds >= 0)
            node_add(&curve, bucket, seconds, -1, BY_RNDV);
    }
    way_set(&curve, way, lane);
}

bool lane_of_times(const struct lane_times *times, const struct model_surroundings *around,
                   struct model_lane *lane, struct error_text *error)
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
