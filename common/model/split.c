/* SPDX-License-Identifier: BSD-3-Clause */
/* Equal finish: what each lane carries so that none waits for another.
 *
 * Lane i can begin to deliver at start_i = overhead + queued + latency and then delivers
 * bandwidth_i. Going through the starts in order, the rate of all lanes together is constant
 * between two of them, so the time T at which the message is through is found by adding up, without
 * iteration. Lanes of one group share its capacity from when they have started, in proportion to
 * their bandwidths. */
#include "common/model/split.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/model/group.h"

/* An infinite bandwidth is reckoned with as this. */
#define BANDWIDTH_MAX 1e30

struct split {
    const struct split_lane *lanes;
    uint32_t count;
    const struct model_group *groups;
    uint32_t group_count;
    double bytes;
    bool takes_part[MODEL_LANES_MAX];
    double start_s[MODEL_LANES_MAX];
    struct group_member member[MODEL_LANES_MAX];
    double share[MODEL_LANES_MAX];
    double finish_s;
};

static bool usable(const struct split_lane *lane)
{
    return lane->bandwidth_bytes_s > 0 && lane->overhead_s >= 0 && lane->latency_s >= 0 &&
           lane->queued_s >= 0 && isfinite(lane->overhead_s + lane->latency_s + lane->queued_s);
}

static uint32_t split_begin(struct split *split)
{
    uint32_t usable_count = 0;
    for (uint32_t i = 0; i < split->count; i++) {
        const struct split_lane *lane = &split->lanes[i];
        split->takes_part[i] = usable(lane);
        split->start_s[i] = lane->overhead_s + lane->queued_s + lane->latency_s;
        split->member[i].group = lane->group;
        split->member[i].bandwidth_bytes_s =
            split->takes_part[i] ? fmin(lane->bandwidth_bytes_s, BANDWIDTH_MAX) : 0;
        usable_count += split->takes_part[i];
    }
    return usable_count;
}

/* Bandwidth of the lanes of i's group that have started at `now`. */
static double started_in_group(const struct split *split, uint32_t i, double now)
{
    double sum = 0;
    for (uint32_t j = 0; j < split->count; j++)
        if (split->takes_part[j] && split->start_s[j] <= now &&
            split->member[j].group == split->member[i].group)
            sum += split->member[j].bandwidth_bytes_s;
    return sum;
}

/* Bytes a second that lane i delivers just after `now`. */
static double rate_at(const struct split *split, uint32_t i, double now)
{
    double alone = split->member[i].bandwidth_bytes_s;
    if (!split->takes_part[i] || split->start_s[i] > now)
        return 0;
    if (!split->member[i].group)
        return alone;
    double started = started_in_group(split, i, now);
    double capacity = group_capacity(split->member[i].group, split->member, split->count,
                                     split->groups, split->group_count);
    return started > capacity ? alone * (capacity / started) : alone;
}

/* The earliest start after `now`; infinite: all have started. */
static double next_start(const struct split *split, double now)
{
    double next = INFINITY;
    for (uint32_t i = 0; i < split->count; i++)
        if (split->takes_part[i] && split->start_s[i] > now && split->start_s[i] < next)
            next = split->start_s[i];
    return next;
}

/* Everybody goes on at its rate for a while; returns the bytes that were delivered. */
static double split_advance(struct split *split, const double *rates, double seconds)
{
    double delivered = 0;
    for (uint32_t i = 0; i < split->count; i++) {
        split->share[i] += rates[i] * seconds;
        delivered += rates[i] * seconds;
    }
    return delivered;
}

/* Finds finish_s and the shares, as reals. */
static void split_solve(struct split *split)
{
    double rates[MODEL_LANES_MAX], left = split->bytes, now = next_start(split, -1);
    for (uint32_t i = 0; i < split->count; i++)
        split->share[i] = 0;
    for (;;) {
        double rate = 0, until = next_start(split, now);
        for (uint32_t i = 0; i < split->count; i++)
            rate += rates[i] = rate_at(split, i, now);
        if (left / rate <= until - now)
            break;
        left = fmax(0, left - split_advance(split, rates, until - now));
        now = until;
    }
    double rate = 0;
    for (uint32_t i = 0; i < split->count; i++)
        rate += rates[i];
    split_advance(split, rates, left / rate);
    split->finish_s = now + left / rate;
}

/* The same, for no more than finding out when it would be over without lane i. */
static double finish_without(const struct split *split, uint32_t i)
{
    struct split other = *split;
    other.takes_part[i] = false;
    split_solve(&other);
    return other.finish_s;
}

static void split_drop(struct split *split, uint32_t i)
{
    split->takes_part[i] = false;
    split_solve(split);
}

/* Lanes that begin only when all is over take no part. Returns how many do. */
static uint32_t split_used(const struct split *split)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < split->count; i++)
        used += split->share[i] > 0;
    return used;
}

/* Of the lanes in question the one without which it takes least longer; `count`: none is. */
static uint32_t least_missed(const struct split *split, const bool *in_question)
{
    uint32_t least = split->count;
    double earliest = INFINITY;
    for (uint32_t i = 0; i < split->count; i++) {
        double finish = in_question[i] ? finish_without(split, i) : INFINITY;
        if (finish < earliest) {
            earliest = finish;
            least = i;
        }
    }
    return least;
}

/* Leaves lanes out, one at a time, until no more than `most` take part. */
static void split_limit(struct split *split, uint32_t most)
{
    bool used[MODEL_LANES_MAX];
    while (split_used(split) > most) {
        for (uint32_t i = 0; i < split->count; i++)
            used[i] = split->share[i] > 0;
        split_drop(split, least_missed(split, used));
    }
}

/* The largest alignment of the lanes that take part: every cut lies between two of them. */
static double cut_alignment(const struct split *split)
{
    uint64_t largest = 1;
    for (uint32_t i = 0; i < split->count; i++)
        if (split->share[i] > 0 && split->lanes[i].align_bytes > largest)
            largest = split->lanes[i].align_bytes;
    return (double) largest;
}

/* Cuts the message where the shares end, at the nearest boundary. */
static void split_round(const struct split *split, uint64_t bytes, uint64_t *shares)
{
    double align = cut_alignment(split), end = 0;
    uint64_t cut = 0;
    uint32_t last = split->count - 1;
    while (last && split->share[last] <= 0)
        last--;
    for (uint32_t i = 0; i < split->count; i++) {
        uint64_t at = cut;
        end += split->share[i];
        if (i == last)
            at = bytes;
        else if (i < last && split->share[i] > 0)
            at = end >= split->bytes ? bytes : (uint64_t) (floor(end / align + 0.5) * align);
        at = at < cut ? cut : at > bytes ? bytes : at;
        shares[i] = at - cut;
        cut = at;
    }
}

/* Leaves out one lane whose share is not worth its overhead; false: all are. */
static bool split_drop_too_small(struct split *split, const uint64_t *shares)
{
    bool too_small[MODEL_LANES_MAX], any = false;
    for (uint32_t i = 0; i < split->count; i++) {
        uint64_t least = split->lanes[i].piece_min_bytes;
        too_small[i] = split->share[i] > 0 && shares[i] < (least ? least : 1);
        any = any || too_small[i];
    }
    if (!any || split_used(split) == 1)
        return false;
    split_drop(split, least_missed(split, too_small));
    return true;
}

void split_shares(const struct split_lane *lanes, uint32_t count, const struct model_group *groups,
                  uint32_t group_count, uint32_t most, uint64_t bytes, uint64_t *shares,
                  struct split_result *result)
{
    struct split split = {.lanes = lanes,
                          .count = count,
                          .groups = groups,
                          .group_count = group_count,
                          .bytes = (double) bytes};
    memset(shares, 0, count * sizeof *shares);
    *result = (struct split_result){0, 0};
    if (!bytes)
        return;
    if (!split_begin(&split)) {
        shares[0] = bytes;
        *result = (struct split_result){INFINITY, 1};
        return;
    }
    split_solve(&split);
    do {
        if (most) /* lanes that began too late may now begin in time */
            split_limit(&split, most);
        split_round(&split, bytes, shares);
    } while (split_drop_too_small(&split, shares));
    result->finish_s = split.finish_s;
    for (uint32_t i = 0; i < count; i++)
        result->lanes_used += shares[i] > 0;
}

void split_lane_from(const struct model_lane *lane, enum model_way way, uint64_t bytes,
                     uint64_t queued_bytes, struct split_lane *out)
{
    const struct model_lane_range *range = model_lane_range_at(lane, way, bytes);
    memset(out, 0, sizeof *out);
    if (!range)
        return;
    out->bandwidth_bytes_s = range->bandwidth_bytes_s;
    out->overhead_s = range->overhead_send_s + range->overhead_receive_s;
    out->latency_s = range->latency_s;
    out->queued_s = (double) queued_bytes / range->bandwidth_bytes_s;
    out->piece_min_bytes = lane->piece_min_bytes;
    out->align_bytes = lane->align_bytes;
    out->group = lane->group;
}
