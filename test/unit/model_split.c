/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares over lanes: by hand for a few, by their properties for many. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "common/model/split.h"

#define RANDOM_SPLITS 60000

static struct split_lane lane_of(double bandwidth, double start_s)
{
    return (struct split_lane){.bandwidth_bytes_s = bandwidth, .latency_s = start_s};
}

static void expect(const char *name, const struct split_lane *lanes, uint32_t count,
                   const struct model_group *group, uint32_t most, uint64_t bytes, double finish_s,
                   const uint64_t *expected)
{
    uint64_t shares[MODEL_LANES_MAX];
    struct split_result result;
    split_shares(lanes, count, group, group ? 1 : 0, most, bytes, shares, &result);
    for (uint32_t i = 0; i < count; i++)
        CHECK(shares[i] == expected[i], "%s: lane %u has %llu, not %llu", name, (unsigned) i,
              (unsigned long long) shares[i], (unsigned long long) expected[i]);
    CHECK(fabs(result.finish_s - finish_s) < 1e-9 * (1 + finish_s), "%s: T = %.12g, not %.12g",
          name, result.finish_s, finish_s);
}

static void shares_by_hand(void)
{
    const struct split_lane equal[] = {lane_of(10, 0), lane_of(30, 0)};
    expect("by bandwidth", equal, 2, NULL, 0, 400, 10, (uint64_t[]){100, 300});
    /* 10 T + 30 (T - 10) = 400 */
    const struct split_lane late[] = {lane_of(10, 0), lane_of(30, 10)};
    expect("a later start", late, 2, NULL, 0, 400, 17.5, (uint64_t[]){175, 225});
    expect("over before it starts", late, 2, NULL, 0, 100, 10, (uint64_t[]){100, 0});
    /* 10 T + 20 (T - 3) + 40 (T - 5) = 440: T = 10 */
    struct split_lane three[] = {lane_of(10, 0), lane_of(20, 1), lane_of(40, 2)};
    three[1].queued_s = 2;
    three[2].overhead_s = 3;
    expect("queue and overhead", three, 3, NULL, 0, 440, 10, (uint64_t[]){100, 140, 200});
    expect("the best one", three, 3, NULL, 1, 440, 16, (uint64_t[]){0, 0, 440});
    expect("the best two", three, 3, NULL, 2, 440, 700.0 / 60, (uint64_t[]){0, 173, 267});
}

static void groups_share_by_hand(void)
{
    struct split_lane lanes[] = {lane_of(10, 0), lane_of(30, 0), lane_of(20, 0)};
    const struct model_group group = {5, 20};
    lanes[0].group = lanes[1].group = 5;
    /* 20 of the group, 5 : 15, and 20 beside it */
    expect("a group", lanes, 3, &group, 0, 400, 10, (uint64_t[]){50, 150, 200});
    /* Unmeasured: 30, 7.5 : 22.5, and 20 */
    expect("an unmeasured group", lanes, 3, NULL, 0, 500, 10, (uint64_t[]){75, 225, 200});
    /* The second joins at 10: before 10 alone, after that 5 and 15; 10 * 10 + 20 * 5 */
    lanes[1].latency_s = 10;
    expect("a later member", lanes, 2, &group, 0, 200, 15, (uint64_t[]){125, 75});
}

static void small_and_aligned_by_hand(void)
{
    struct split_lane lanes[] = {lane_of(10, 0), lane_of(30, 0)};
    lanes[0].piece_min_bytes = 101;
    expect("too small a share", lanes, 2, NULL, 0, 400, 400.0 / 30, (uint64_t[]){0, 400});
    lanes[0].piece_min_bytes = 100;
    expect("just large enough", lanes, 2, NULL, 0, 400, 10, (uint64_t[]){100, 300});
    lanes[0].piece_min_bytes = 0;
    lanes[1].align_bytes = 64;
    expect("aligned", lanes, 2, NULL, 0, 400, 10, (uint64_t[]){128, 272});
    expect("nothing", lanes, 2, NULL, 0, 0, 0, (uint64_t[]){0, 0});
    expect("one byte", lanes, 2, NULL, 0, 1, 1.0 / 30, (uint64_t[]){0, 1});
}

static void useless_lanes_get_nothing(void)
{
    uint64_t shares[3];
    struct split_result result;
    struct split_lane lanes[] = {lane_of(0, 0), lane_of(NAN, 0), lane_of(7, INFINITY)};
    split_shares(lanes, 3, NULL, 0, 0, 99, shares, &result);
    CHECK(shares[0] == 99 && !shares[1] && !shares[2], "all useless: the first has all");
    lanes[1] = lane_of(5, 0);
    split_shares(lanes, 3, NULL, 0, 0, 99, shares, &result);
    CHECK(shares[1] == 99 && result.lanes_used == 1, "the useful one has all");
    lanes[0] = lane_of(INFINITY, 1);
    split_shares(lanes, 3, NULL, 0, 0, 99, shares, &result);
    CHECK(shares[0] + shares[1] == 99 && shares[1] == 5, "5 bytes before the infinite one starts");
}

/* --- properties ------------------------------------------------------------------------------- */

struct chance_split {
    struct split_lane lanes[MODEL_LANES_MAX];
    uint32_t count, most;
    struct model_group groups[2];
    uint32_t group_count;
    uint64_t bytes;
};

/* One draw a statement, so that every compiler draws in the same order. */
static void chance_split_lane(uint64_t *chance, struct split_lane *lane)
{
    double spread = chance_below(chance, 2) ? 1 : 50;
    lane->bandwidth_bytes_s = 1e9 * (0.01 + spread * chance_real(chance));
    lane->overhead_s = 1e-6 * chance_real(chance);
    lane->latency_s = 1e-5 * chance_real(chance);
    lane->queued_s = chance_below(chance, 3) ? 0 : 1e-3 * chance_real(chance);
    lane->piece_min_bytes = chance_below(chance, 2) ? 0 : chance_below(chance, 65536);
    lane->align_bytes = UINT64_C(1) << chance_below(chance, 13);
    lane->group = (uint32_t) chance_below(chance, 4);
}

static void chance_make(uint64_t *chance, struct chance_split *made)
{
    made->count = 1 + (uint32_t) chance_below(chance, MODEL_LANES_MAX);
    made->most = (uint32_t) chance_below(chance, 5);
    made->group_count = (uint32_t) chance_below(chance, 3);
    made->bytes = chance_next(chance);
    made->bytes >>= 10 + chance_below(chance, 54);
    for (uint32_t i = 0; i < made->count; i++)
        chance_split_lane(chance, &made->lanes[i]);
    for (uint32_t i = 0; i < 2; i++)
        made->groups[i] = (struct model_group){i + 1, 1e9 * (0.1 + 30 * chance_real(chance))};
}

static double start_of(const struct split_lane *lane)
{
    return lane->overhead_s + lane->latency_s + lane->queued_s;
}

static uint64_t largest_align(const struct chance_split *made, const uint64_t *shares)
{
    uint64_t align = 1;
    for (uint32_t i = 0; i < made->count; i++)
        if (shares[i] && made->lanes[i].align_bytes > align)
            align = made->lanes[i].align_bytes;
    return align;
}

/* What a group carries, as the splitter was told. */
static double capacity_of(const struct chance_split *made, uint32_t group)
{
    double fastest = 0;
    for (uint32_t i = 0; i < made->group_count; i++)
        if (made->groups[i].id == group)
            return made->groups[i].bandwidth_bytes_s;
    for (uint32_t i = 0; i < made->count; i++)
        if (made->lanes[i].group == group)
            fastest = fmax(fastest, made->lanes[i].bandwidth_bytes_s);
    return fastest;
}

/* Bytes that a group with these lanes delivers by `finish_s`, step by step from start to start. */
static double group_delivers(const struct chance_split *made, const uint64_t *shares,
                             uint32_t group, double finish_s)
{
    double starts[MODEL_LANES_MAX + 1], delivered = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < made->count; i++)
        if (shares[i] && made->lanes[i].group == group)
            starts[count++] = fmin(start_of(&made->lanes[i]), finish_s);
    for (uint32_t i = 0; i < count; i++) {
        double until = finish_s, rate = 0;
        for (uint32_t j = 0; j < count; j++)
            if (starts[j] > starts[i])
                until = fmin(until, starts[j]);
        for (uint32_t j = 0; j < i; j++)
            if (starts[j] == starts[i])
                until = starts[i]; /* counted already */
        for (uint32_t j = 0; j < made->count; j++)
            if (shares[j] && made->lanes[j].group == group &&
                start_of(&made->lanes[j]) <= starts[i])
                rate += made->lanes[j].bandwidth_bytes_s;
        delivered += fmin(rate, capacity_of(made, group)) * (until - starts[i]);
    }
    return delivered;
}

static void check_finish(const struct chance_split *made, const uint64_t *shares,
                         const struct split_result *result)
{
    double slack_bytes = (double) largest_align(made, shares) + 1 + 1e-9 * (double) made->bytes;
    for (uint32_t i = 0; i < made->count; i++) {
        const struct split_lane *lane = &made->lanes[i];
        if (!shares[i] || lane->group)
            continue;
        double exact = lane->bandwidth_bytes_s * (result->finish_s - start_of(lane));
        CHECK(fabs((double) shares[i] - exact) <= slack_bytes,
              "lane %u of %u: %llu bytes, %.3f would finish with the others", (unsigned) i,
              (unsigned) made->count, (unsigned long long) shares[i], exact);
    }
    for (uint32_t group = 1; group < 4; group++) {
        double sum = 0;
        uint32_t members = 0;
        for (uint32_t i = 0; i < made->count; i++)
            if (shares[i] && made->lanes[i].group == group) {
                sum += (double) shares[i];
                members++;
            }
        double exact = group_delivers(made, shares, group, result->finish_s);
        CHECK(fabs(sum - exact) <= slack_bytes * members + 1e-6 * exact,
              "group %u: %.0f bytes, it delivers %.3f", (unsigned) group, sum, exact);
    }
}

static void check_split(uint64_t *chance)
{
    struct chance_split made;
    struct split_result result;
    uint64_t shares[MODEL_LANES_MAX], sum = 0, offset = 0;
    uint32_t used = 0;
    chance_make(chance, &made);
    split_shares(made.lanes, made.count, made.groups, made.group_count, made.most, made.bytes,
                 shares, &result);
    uint64_t align = largest_align(&made, shares);
    for (uint32_t i = 0; i < made.count; i++) {
        sum += shares[i];
        used += shares[i] > 0;
    }
    CHECK(sum == made.bytes, "shares of %llu add up to %llu", (unsigned long long) made.bytes,
          (unsigned long long) sum);
    CHECK(used == result.lanes_used && (!made.most || used <= made.most), "%u lanes of %u",
          (unsigned) used, (unsigned) made.most);
    for (uint32_t i = 0; i < made.count; i++) {
        offset += shares[i];
        if (used > 1 && shares[i]) {
            CHECK(shares[i] >= made.lanes[i].piece_min_bytes, "lane %u has too little",
                  (unsigned) i);
            CHECK(offset == made.bytes || offset % align == 0, "a cut at %llu, alignment %llu",
                  (unsigned long long) offset, (unsigned long long) align);
        }
    }
    if (made.bytes)
        check_finish(&made, shares, &result);
}

/* With every lane free to take part, T is never later than that of any lane alone. (Of a few bytes
 * none can be divided, and what cannot be is left out lane by lane, which need not be the best.) */
static void check_no_lane_alone_is_quicker(uint64_t *chance)
{
    struct chance_split made;
    struct split_result result, alone;
    uint64_t shares[MODEL_LANES_MAX];
    chance_make(chance, &made);
    made.bytes += 65536;
    for (uint32_t i = 0; i < made.count; i++)
        made.lanes[i].piece_min_bytes = 0, made.lanes[i].align_bytes = 0;
    split_shares(made.lanes, made.count, made.groups, made.group_count, 0, made.bytes, shares,
                 &result);
    for (uint32_t i = 0; i < made.count; i++) {
        split_shares(&made.lanes[i], 1, made.groups, made.group_count, 0, made.bytes, shares,
                     &alone);
        CHECK(result.finish_s <= alone.finish_s * (1 + 1e-6) + 1e-9, "lane %u alone: %g, all: %g",
              (unsigned) i, alone.finish_s, result.finish_s);
    }
}

static void a_model_lane_becomes_a_split_lane(void)
{
    struct model_lane lane;
    struct split_lane split;
    const struct model_lane_range range = {
        .latency_s = 1, .bandwidth_bytes_s = 10, .overhead_send_s = 2, .overhead_receive_s = 3};
    model_lane_init(&lane, "x");
    model_lane_set_cost(&lane, MODEL_BY_GET, &range);
    lane.group = 4;
    lane.align_bytes = 64;
    split_lane_from(&lane, MODEL_BY_GET, 100, 50, &split);
    CHECK(split.bandwidth_bytes_s == 10 && split.overhead_s == 5 && split.latency_s == 1 &&
              split.queued_s == 5 && split.group == 4 && split.align_bytes == 64,
          "its values");
    split_lane_from(&lane, MODEL_BY_PUT, 100, 50, &split);
    CHECK(split.bandwidth_bytes_s == 0, "a way that it has not");
}

int main(void)
{
    uint64_t chance = 21;
    shares_by_hand();
    groups_share_by_hand();
    small_and_aligned_by_hand();
    useless_lanes_get_nothing();
    a_model_lane_becomes_a_split_lane();
    for (int i = 0; i < RANDOM_SPLITS; i++) {
        check_split(&chance);
        check_no_lane_alone_is_quicker(&chance);
    }
    return check_end();
}
