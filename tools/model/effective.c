/* SPDX-License-Identifier: BSD-3-Clause */
/* Fits a lane's attributes. The lines of protocol.c are turned round here: what is added up there
 * is taken apart. */
#include "tools/model/effective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/model/fit_pieces.h"

/* What a model can compute with. */
#define BANDWIDTH_MOST 1e30

/* Bends that are worth telling apart, a curve. Beyond a cache a byte costs more than it did before,
 * which no single line says: it would begin below zero. */
#define CURVE_RANGES 6

/* One range of sizes in which one protocol's time is a line. */
struct segment {
    uint32_t protocol;
    uint64_t first_bytes, largest_bytes;
    struct cost_line line;
};

#define SEGMENTS_MAX 16

_Static_assert(SEGMENTS_MAX + (MODEL_WAYS - 1) * CURVE_RANGES <= MODEL_LANE_RANGES_MAX,
               "a lane file holds the ranges of all ways");

/* As many ranges as one curve may have, and leave one to each curve that comes. */
static uint32_t ranges_most(uint32_t have, uint32_t curves_after)
{
    uint32_t left = SEGMENTS_MAX - have - curves_after;
    return left < CURVE_RANGES ? left : CURVE_RANGES;
}

static bool fit_curve(uint32_t protocol, const struct sample *samples, uint32_t count,
                      double most_residual, uint32_t curves_after, struct segment *segments,
                      uint32_t *segment_count, struct model_error *error)
{
    struct line_piece pieces[LINE_PIECES_MAX];
    struct model_error why;
    uint32_t most = ranges_most(*segment_count, curves_after);
    uint32_t found = line_fit_pieces(samples, count, most, most_residual, pieces, &why);
    if (!found)
        return model_fail(error, "%s %.250s", model_protocols[protocol]->name, why.text);
    for (uint32_t i = 0; i < found; i++)
        segments[(*segment_count)++] = (struct segment){protocol, pieces[i].first_bytes,
                                                        pieces[i].largest_bytes, pieces[i].line};
    return true;
}

/* Where one segment ends and the next begins: where their lines meet, if that is between the sizes
 * measured; else at the last size of the first. Two protocols change where the first one ends. */
static uint64_t segment_end(const struct segment *segment, const struct segment *next)
{
    double growth = segment->line.growth_s_byte - next->line.growth_s_byte;
    double meet = growth != 0 ? (next->line.fixed_s - segment->line.fixed_s) / growth : -1;
    if (segment->protocol == next->protocol && meet > (double) segment->largest_bytes &&
        meet < (double) next->first_bytes)
        return (uint64_t) meet;
    return segment->largest_bytes;
}

static double bandwidth_of(double growth_s_byte)
{
    return growth_s_byte > 1 / BANDWIDTH_MOST ? 1 / growth_s_byte : BANDWIDTH_MOST;
}

/* --- sends ------------------------------------------------------------------------------------ */

/* What a send over a lane that can copy or register paid for that, as it was planned by the lane's
 * present costs. */
static double paid_for_place(const struct model_lane *lane, const struct model_surroundings *around,
                             uint32_t protocol, uint64_t bytes)
{
    struct plan_input input;
    struct plan_entry entry;
    struct cost cost;
    double copied = (double) bytes * lane->copy_growth_s_byte;
    if (!model_lane_chooses(lane, around) || !lane->cost[MODEL_BY_SEND].range_count)
        return 0;
    if (protocol == MODEL_EAGER_SHORT || protocol == MODEL_EAGER_COPY)
        return copied;
    plan_input_init(&input);
    input.lanes = lane;
    input.lane_count = 1;
    input.around = *around;
    if ((protocol != MODEL_EAGER_ZCOPY && protocol != MODEL_RNDV_AM) ||
        !plan_best_of_protocol(&input, protocol, bytes, &entry, &cost))
        return 0;
    if (entry.copies) /* but for the first fragment beside the wire */
        return fmin(copied, (double) lane->copied_max_bytes * lane->copy_growth_s_byte);
    struct cost_line registration =
        model_registration(lane, model_lane_range_at(lane, MODEL_BY_SEND, bytes), around);
    return registration.fixed_s + (double) bytes * registration.growth_s_byte;
}

/* The curves less that. `memory` has room for all samples. */
static void take_place_off(const struct effective_curve curves[MODEL_PROTOCOLS],
                           const struct model_lane *lane, const struct model_surroundings *around,
                           struct sample *memory, struct effective_curve less[MODEL_PROTOCOLS])
{
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        less[i] = (struct effective_curve){memory, curves[i].count};
        for (uint32_t j = 0; j < curves[i].count; j++) {
            *memory = curves[i].samples[j];
            memory->seconds =
                fmax(memory->seconds / 10,
                     memory->seconds - paid_for_place(lane, around, i, memory->bytes));
            memory++;
        }
    }
}

/* The samples above `above` bytes. */
static uint32_t samples_above(const struct effective_curve *curve, uint64_t above, bool any,
                              struct sample *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < curve->count; i++)
        if (any || curve->samples[i].bytes > above)
            out[count++] = curve->samples[i];
    return count;
}

static uint64_t largest_size(const struct sample *samples, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (samples[i].bytes > largest)
            largest = samples[i].bytes;
    return largest;
}

/* A protocol that has only a few sizes left to itself tells no line of its own. */
static bool is_enough(const struct sample *samples, uint32_t count)
{
    for (uint32_t i = 1; i < count && count >= 3; i++)
        if (samples[i].bytes != samples[0].bytes)
            return true;
    return false;
}

/* The segments of the way by messages, each of the first protocol that carries its sizes. */
static bool send_segments(const struct effective_curve curves[MODEL_PROTOCOLS],
                          double most_residual, struct sample *room,
                          struct segment segments[SEGMENTS_MAX], uint32_t *count,
                          struct model_error *error)
{
    static const uint32_t order[] = {MODEL_EAGER_SHORT, MODEL_EAGER_COPY, MODEL_EAGER_ZCOPY,
                                     MODEL_RNDV_AM};
    const uint32_t protocols = sizeof order / sizeof order[0];
    uint64_t above = 0;
    *count = 0;
    for (uint32_t i = 0; i < protocols; i++) {
        uint32_t taken = samples_above(&curves[order[i]], above, *count == 0, room);
        if (!is_enough(room, taken))
            continue;
        if (!fit_curve(order[i], room, taken, most_residual, protocols - 1 - i, segments, count,
                       error))
            return false;
        above = largest_size(room, taken);
    }
    return true;
}

/* The latency with which rndv-am's 4 lat + 3 over + size / bw meets what it was measured to take
 * between these sizes, in the middle of the samples. */
static double handshake_latency(const struct effective_curve *am, uint64_t first, uint64_t last,
                                const struct cost_line *eager, double *room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < am->count; i++)
        if (am->samples[i].bytes >= first && am->samples[i].bytes <= last)
            room[count++] = (am->samples[i].seconds - 3 * eager->fixed_s -
                             (double) am->samples[i].bytes * eager->growth_s_byte) /
                            4;
    return count ? fmax(0, median_of(room, count)) : -1;
}

/* Divides a handshake's constant into latency and overhead: `over_s` as overhead if there is that
 * much, the rest latency. */
static void set_handshake(struct model_lane_range *range, double fixed_s, double over_s)
{
    double over = fmin(over_s, fixed_s / 3);
    range->latency_s = fmax(0, (fixed_s - 3 * over) / 4);
    model_overhead_divide(over, &range->overhead_send_s, &range->overhead_receive_s);
}

static void set_sends(const struct effective_curve *am, const struct segment *segments,
                      uint32_t count, const struct model_lane_range *registration, double *room,
                      struct model_lane_cost *cost)
{
    double over_s = 0, latency_s = 0;
    cost->range_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = &segments[i];
        struct model_lane_range *range = &cost->ranges[i];
        *range = (struct model_lane_range){
            .largest_bytes = i + 1 < count ? segment_end(segment, &segments[i + 1]) : UINT64_MAX,
            .bandwidth_bytes_s = bandwidth_of(segment->line.growth_s_byte),
            .reg_cost_s = registration->reg_cost_s,
            .reg_growth_s_byte = registration->reg_growth_s_byte};
        if (segment->protocol == MODEL_RNDV_AM) {
            set_handshake(range, segment->line.fixed_s, over_s);
            continue;
        }
        over_s = segment->line.fixed_s;
        double seen = handshake_latency(am, segment->first_bytes, segment->largest_bytes,
                                        &segment->line, room);
        latency_s = seen >= 0 ? seen : latency_s;
        range->latency_s = latency_s;
        model_overhead_divide(over_s, &range->overhead_send_s, &range->overhead_receive_s);
    }
}

/* --- gets, puts, both ------------------------------------------------------------------------- */

/* What one end paid for its registration, twice in the line, comes off it; what is left is
 * handshake and wire. */
static void set_move(const struct model_lane *lane, const struct segment *segments, uint32_t count,
                     const struct model_lane_range *registration, struct cost_line paid,
                     struct model_lane_cost *cost)
{
    cost->range_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = &segments[i];
        const struct model_lane_range *send =
            model_lane_range_at(lane, MODEL_BY_SEND, segment->first_bytes);
        double fixed_s = fmax(0, segment->line.fixed_s - 2 * paid.fixed_s);
        double growth = segment->line.growth_s_byte - 2 * paid.growth_s_byte;
        double latency_s = send ? fmin(send->latency_s, fixed_s / 4) : 0;
        struct model_lane_range *range = &cost->ranges[i];
        *range = (struct model_lane_range){
            .largest_bytes = i + 1 < count ? segment_end(segment, &segments[i + 1]) : UINT64_MAX,
            .bandwidth_bytes_s = bandwidth_of(growth),
            .reg_cost_s = registration->reg_cost_s,
            .reg_growth_s_byte = registration->reg_growth_s_byte};
        set_handshake(range, fixed_s, (fixed_s - 4 * latency_s) / 3);
    }
}

static bool fit_move(const struct effective_curve *curve, uint32_t protocol, enum model_way way,
                     const struct model_surroundings *around, double most_residual,
                     struct model_lane *lane, struct model_error *error)
{
    struct segment segments[SEGMENTS_MAX];
    struct model_lane_range registration = {0};
    struct model_lane_cost *cost = &lane->cost[way];
    uint32_t count = 0;
    if (!is_enough(curve->samples, curve->count))
        return true;
    if (!fit_curve(protocol, curve->samples, curve->count, most_residual, 0, segments, &count,
                   error))
        return false;
    if (cost->range_count)
        registration = cost->ranges[cost->range_count - 1];
    set_move(lane, segments, count, &registration, model_registration(lane, &registration, around),
             cost);
    return true;
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool fit_lane(const struct effective_curve curves[MODEL_PROTOCOLS],
                     const struct model_surroundings *around, double most_residual,
                     struct sample *samples, double *reals, struct model_lane *lane,
                     struct model_error *error)
{
    struct segment segments[SEGMENTS_MAX];
    struct model_lane_range registration = {0};
    struct model_lane_cost *sends = &lane->cost[MODEL_BY_SEND];
    uint32_t count;
    if (model_lane_chooses(lane, around) && sends->range_count)
        registration = sends->ranges[sends->range_count - 1];
    if (!send_segments(curves, most_residual, samples, segments, &count, error))
        return false;
    if (count)
        set_sends(&curves[MODEL_RNDV_AM], segments, count, &registration, reals, sends);
    return fit_move(&curves[MODEL_RNDV_GET], MODEL_RNDV_GET, MODEL_BY_GET, around, most_residual,
                    lane, error) &&
           fit_move(&curves[MODEL_RNDV_PUT], MODEL_RNDV_PUT, MODEL_BY_PUT, around, most_residual,
                    lane, error) &&
           fit_move(&curves[MODEL_RNDV_BOTH], MODEL_RNDV_BOTH, MODEL_BY_BOTH, around, most_residual,
                    lane, error);
}

bool effective_fit(const struct effective_curve curves[MODEL_PROTOCOLS],
                   const struct model_surroundings *around, double most_residual,
                   struct model_lane *lane, struct model_error *error)
{
    struct effective_curve less[MODEL_PROTOCOLS];
    uint32_t all = 1;
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        all += curves[i].count;
    struct model_lane fitted = *lane;
    struct sample *samples = malloc(all * sizeof *samples);
    struct sample *memory = malloc(all * sizeof *memory);
    double *reals = malloc(all * sizeof *reals);
    bool good = samples && memory && reals;
    if (good) {
        take_place_off(curves, lane, around, memory, less);
        good = fit_lane(less, around, most_residual, samples, reals, &fitted, error);
    } else {
        model_fail(error, "no memory for a fit");
    }
    free(samples);
    free(memory);
    free(reals);
    good = good && model_lane_check(&fitted, error);
    if (good)
        *lane = fitted;
    return good;
}

/* --- judging it ------------------------------------------------------------------------------- */

double effective_predict(const struct model_lane *lane, const struct model_surroundings *around,
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
    if (!plan_best_of_protocol(&input, protocol, bytes, &entry, &cost))
        return NAN;
    return cost_of(&cost, COST_OF_MESSAGE, bytes);
}

void effective_judge(const struct model_lane *lane, const struct model_surroundings *around,
                     uint32_t protocol, const struct effective_curve *curve,
                     struct effective_quality *quality)
{
    struct sample *sizes = malloc((curve->count + 1) * sizeof *sizes);
    double *off = malloc((curve->count + 1) * sizeof *off);
    *quality = (struct effective_quality){0};
    uint32_t count = sizes && off ? sample_medians(curve->samples, curve->count, sizes) : 0;
    for (uint32_t i = 0; i < count; i++) {
        double predicted = effective_predict(lane, around, protocol, sizes[i].bytes);
        if (isnan(predicted))
            continue;
        double deviation = fabs(predicted / sizes[i].seconds - 1);
        off[quality->sizes++] = deviation;
        if (deviation > quality->worst) {
            quality->worst = deviation;
            quality->worst_bytes = sizes[i].bytes;
        }
    }
    if (quality->sizes)
        quality->median = median_of(off, quality->sizes);
    free(sizes);
    free(off);
}

/* Do the two protocols differ by more than they are known to? Where one of them cannot carry the
 * size there is nothing to choose. */
static bool is_decided(const struct model_lane *lane, const struct model_surroundings *around,
                       uint32_t a, uint32_t b, uint64_t bytes, double relative_error)
{
    double first = effective_predict(lane, around, a, bytes) *
                   (model_protocols[a]->kind == MODEL_RNDV ? around->bias : 1);
    double second = effective_predict(lane, around, b, bytes) *
                    (model_protocols[b]->kind == MODEL_RNDV ? around->bias : 1);
    return !(fabs(first - second) <= relative_error * (first + second));
}

#define STEP 1.01 /* sizes are looked at so far apart */

void effective_confidence(const struct model_lane *lane, const struct model_surroundings *around,
                          uint32_t protocol_below, uint32_t protocol_above, uint64_t bytes,
                          double relative_error, uint64_t *least, uint64_t *most)
{
    double low = (double) bytes, high = (double) bytes;
    while (low > 1 && !is_decided(lane, around, protocol_below, protocol_above, (uint64_t) low,
                                  relative_error))
        low = floor(low / STEP);
    while (high < 1e15 && !is_decided(lane, around, protocol_below, protocol_above, (uint64_t) high,
                                      relative_error))
        high = ceil(high * STEP) + 1;
    *least = (uint64_t) low;
    *most = (uint64_t) high;
}
