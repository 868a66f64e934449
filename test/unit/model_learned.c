/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages have taken, as an input of a plan: a border moves where both ways have shown
 * themselves, and nowhere else. */
#include <string.h>

#include "model_lanes.h"

/* One lane that sends with 1 GB/s and gets with 2, 1 us of overhead each. */
static void lane_set(struct model_lane *lane)
{
    fake_lane(lane, "one", MODEL_USE_BOTH, 1e-6, 1e9, 1e-6, 0, 0);
    lane->can |= MODEL_CAN_GET;
    struct model_lane_range gets = lane->cost[MODEL_BY_SEND].ranges[0];
    gets.bandwidth_bytes_s = 2e9;
    model_lane_set_cost(lane, MODEL_BY_GET, &gets);
}

static void input_set(struct plan_input *input, const struct model_lane *lane,
                      const struct model_learned *learned)
{
    plan_input_init(input);
    input->lanes = lane;
    input->lane_count = 1;
    input->learned = learned;
}

static uint32_t protocol_at(const struct plan_input *input, uint64_t bytes,
                            enum plan_decider *decider)
{
    struct error_text error = {""};
    struct plan *plan = plan_build(input, &error);
    CHECK(plan, "%s", error.text);
    const struct plan_entry *entry = plan_lookup(plan, bytes);
    uint32_t protocol = entry->protocol_index;
    if (decider)
        *decider = entry->decided_by;
    plan_free(plan);
    return protocol;
}

static struct learned_key key_of(uint32_t protocol)
{
    const uint8_t lane = 0;
    return learned_key_of(protocol, false, &lane, 1);
}

/* The way in use in one bucket took so many times what is expected, another one so many times. */
static void learned_set(struct model_learned *learned, uint32_t bucket, uint32_t used,
                        float used_factor, uint32_t other, float other_factor)
{
    memset(learned, 0, sizeof(*learned));
    learned->way_count = 2;
    learned->ways[0].key = key_of(used);
    learned->ways[0].factor[bucket] = used_factor;
    learned->ways[1].key = key_of(other);
    learned->ways[1].factor[bucket] = other_factor;
    for (uint32_t i = 0; i < LEARNED_BUCKETS; i++)
        learned->used[i] = key_of(used);
    learned_settle(learned);
}

static void buckets_are_powers_of_two(void)
{
    static const struct {
        uint64_t bytes;
        uint32_t bucket;
    } cases[] = {{0, 0},
                 {1, 0},
                 {2, 1},
                 {3, 2},
                 {4, 2},
                 {5, 3},
                 {65536, 16},
                 {65537, 17},
                 {UINT64_C(1) << 40, LEARNED_BUCKETS - 1},
                 {UINT64_MAX, LEARNED_BUCKETS - 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(learned_bucket(cases[i].bytes) == cases[i].bucket, "%llu is in %u",
              (unsigned long long) cases[i].bytes, learned_bucket(cases[i].bytes));
    for (uint32_t i = 0; i < LEARNED_BUCKETS; i++)
        CHECK(learned_bucket(learned_bucket_end(i)) == i, "the end of %u", i);
}

static void a_border_moves_where_both_have_shown_it(void)
{
    struct model_lane lane;
    struct model_learned learned;
    struct plan_input plain, input;
    enum plan_decider decider;
    lane_set(&lane);
    input_set(&plain, &lane, NULL);
    input_set(&input, &lane, &learned);
    CHECK(protocol_at(&plain, 1 << 20, NULL) == MODEL_RNDV_GET, "by the equation");
    /* Gets take twice what is expected, sends a quarter. */
    learned_set(&learned, 20, MODEL_RNDV_GET, 2, MODEL_RNDV_AM, 0.25f);
    CHECK(protocol_at(&input, 1 << 20, &decider) == MODEL_RNDV_AM, "by what they took");
    CHECK(decider == PLAN_BY_RANGE, "the border is a range's: %s", plan_decider_name(decider));
    CHECK(protocol_at(&input, (1 << 20) + 1, NULL) == MODEL_RNDV_GET &&
              protocol_at(&input, 1 << 19, NULL) == MODEL_RNDV_GET,
          "other sizes were not tried");
    /* Only one of them has shown anything. */
    learned_set(&learned, 20, MODEL_RNDV_GET, 2, MODEL_RNDV_AM, 0);
    CHECK(protocol_at(&input, 1 << 20, NULL) == MODEL_RNDV_GET, "the slow one alone is known");
    learned_set(&learned, 20, MODEL_RNDV_GET, 0, MODEL_RNDV_AM, 0.1f);
    CHECK(protocol_at(&input, 1 << 20, NULL) == MODEL_RNDV_GET, "the fast one alone is known");
    /* The equation was wrong by far of the one in use, and so may it be of others. */
    input.stay = 1;
    learned_set(&learned, 20, MODEL_RNDV_AM, 0.01f, MODEL_RNDV_GET, 0);
    CHECK(protocol_at(&input, 1 << 20, NULL) == MODEL_RNDV_AM,
          "what was not tried takes its place");
    learned_set(&learned, 20, MODEL_RNDV_AM, 0.01f, MODEL_RNDV_GET, 0.01f);
    CHECK(protocol_at(&input, 1 << 20, NULL) == MODEL_RNDV_GET, "it was tried");
}

static void what_is_in_use_stays_for_a_small_gain(void)
{
    struct model_lane lane;
    struct model_learned learned;
    struct plan_input input;
    lane_set(&lane);
    input_set(&input, &lane, &learned);
    /* By a margin: what a get and a message of 1 MiB are expected to take is 528 and 1,050 us. */
    for (int percent = -10; percent <= 10; percent++) {
        float factor = 0.5f * (1 + (float) percent / 100);
        learned_set(&learned, 20, MODEL_RNDV_GET, 1, MODEL_RNDV_AM, factor);
        input.stay = 0.95;
        bool moves = protocol_at(&input, 1 << 20, NULL) == MODEL_RNDV_AM;
        CHECK(percent <= -6   ? moves
              : percent >= -3 ? !moves
                              : true,
              "%d %%: moves %d", percent, moves);
    }
}

static void predictions_are_what_messages_took(void)
{
    struct model_lane lane;
    struct model_learned learned;
    struct plan_input plain, input;
    struct error_text error;
    struct cost before, after;
    lane_set(&lane);
    input_set(&plain, &lane, NULL);
    input_set(&input, &lane, &learned);
    learned_set(&learned, 20, MODEL_RNDV_GET, 3, MODEL_RNDV_AM, 0);
    struct plan *plan = plan_build(&plain, &error);
    const struct plan_entry *entry = plan_lookup(plan, 1 << 20);
    input.stay = 0.95; /* which is no time */
    CHECK(plan_predict(&plain, entry, 1 << 20, &before) &&
              plan_predict(&input, entry, 1 << 20, &after),
          "they can be predicted");
    double ratio =
        cost_of(&after, COST_OF_MESSAGE, 1 << 20) / cost_of(&before, COST_OF_MESSAGE, 1 << 20);
    CHECK(ratio > 2.999 && ratio < 3.001, "by %g", ratio);
    CHECK(plan_predict(&input, entry, 1 << 25, &after) &&
              plan_predict(&plain, entry, 1 << 25, &before),
          "they can be predicted");
    ratio = cost_of(&after, COST_OF_MESSAGE, 1 << 25) / cost_of(&before, COST_OF_MESSAGE, 1 << 25);
    CHECK(ratio > 2.999 && ratio < 3.001, "the nearest range's: %g", ratio);
    plan_free(plan);
}

/* Of what an earlier job has seen: the lane may have lost an ability since. */
static void a_way_that_is_gone_has_no_time(void)
{
    struct model_lane lane;
    struct plan_input input;
    struct cost cost;
    lane_set(&lane);
    input_set(&input, &lane, NULL);
    const struct plan_entry entry = {.protocol_index = MODEL_RNDV_GET, .lane_count = 1};
    CHECK(plan_predict(&input, &entry, 1 << 20, &cost), "it is there");
    lane.cost[MODEL_BY_GET].range_count = 0;
    CHECK(!plan_predict(&input, &entry, 1 << 20, &cost), "no cost is known of it");
    lane_set(&lane);
    lane.can &= ~(uint32_t) MODEL_CAN_GET;
    CHECK(!plan_predict(&input, &entry, 1 << 20, &cost), "it cannot get");
}

int main(void)
{
    buckets_are_powers_of_two();
    a_border_moves_where_both_have_shown_it();
    what_is_in_use_stays_for_a_small_gain();
    predictions_are_what_messages_took();
    a_way_that_is_gone_has_no_time();
    return check_end();
}
