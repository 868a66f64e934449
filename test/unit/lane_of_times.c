/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in lane whose times follow known attributes: from its times a lane is made that gives
 * them again, and whose plan has the borders of the truth. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "tools/lane/lane_of_times.h"

#define LARGEST 26 /* 64 MiB */

static struct lane_times times;

static struct model_surroundings surroundings(void)
{
    struct plan_input input;
    plan_input_init(&input);
    input.around.header_bytes = 64;
    input.around.eager_max_bytes = 128 << 10;
    return input.around;
}

/* Costs bend where its protocols change and once more in the middle of the large sizes. */
static void stand_in(struct model_lane *lane)
{
    const struct model_lane_range sends[] = {{1000, 0.3e-6, 4e9, 0.2e-6, 0.1e-6, 0, 0},
                                             {16320, 0.3e-6, 6e9, 0.4e-6, 0.2e-6, 0, 0},
                                             {128 << 10, 0.4e-6, 9e9, 1e-6, 0.6e-6, 0, 0},
                                             {UINT64_MAX, 1.2e-6, 7e9, 1e-6, 0.6e-6, 0, 0}};
    const struct model_lane_range gets[] = {{1 << 20, 0.4e-6, 14e9, 0.7e-6, 0.7e-6, 0, 0},
                                            {UINT64_MAX, 0.4e-6, 10e9, 0.7e-6, 0.7e-6, 0, 0}};
    const struct model_lane_range both = {UINT64_MAX, 0.4e-6, 21e9, 1.5e-6, 1.5e-6, 0, 0};
    model_lane_init(lane, "stand-in");
    lane->can = MODEL_CAN_SEND | MODEL_CAN_SHORT | MODEL_CAN_GET | MODEL_CAN_PUT |
                MODEL_CAN_CONTROL | MODEL_CAN_COPY;
    lane->short_max_bytes = 1064;
    lane->copied_max_bytes = 16384;
    lane->zcopied_max_bytes = UINT64_MAX;
    lane->cost[MODEL_BY_SEND].range_count = 4;
    memcpy(lane->cost[MODEL_BY_SEND].ranges, sends, sizeof(sends));
    lane->cost[MODEL_BY_GET].range_count = lane->cost[MODEL_BY_PUT].range_count = 2;
    memcpy(lane->cost[MODEL_BY_GET].ranges, gets, sizeof(gets));
    memcpy(lane->cost[MODEL_BY_PUT].ranges, gets, sizeof(gets));
    model_lane_set_cost(lane, MODEL_BY_BOTH, &both);
}

/* What its messages take, by up to `noise` more or less. */
static void stand_in_measure(const struct model_lane *lane, const struct model_surroundings *around,
                             double noise, uint64_t *chance)
{
    memset(&times, 0, sizeof(times));
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        for (uint32_t j = 0; j <= LARGEST; j++) {
            double seconds = lane_predict(lane, around, i, UINT64_C(1) << j);
            if (!isnan(seconds))
                times.at[i][j] = (struct multilane_times){
                    15, seconds * (1 + noise * (2 * chance_real(chance) - 1)), 0};
        }
}

/* A lane of the same abilities, without costs, with those that the times give. */
static void lane_make(const struct model_lane *stand_in, struct model_lane *made)
{
    struct model_surroundings around = surroundings();
    struct error_text error = {""};
    *made = *stand_in;
    for (int way = 0; way < MODEL_WAYS; way++)
        made->cost[way].range_count = 0;
    CHECK(lane_of_times(&times, &around, made, &error), "%s", error.text);
}

/* Nearly, and those between two that were measured less so where costs jump. */
static void times_are_given_again(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    uint64_t chance = 3;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, &chance);
    lane_make(&lane, &made);
    CHECK(made.cost[MODEL_BY_SEND].range_count <= 8 && made.cost[MODEL_BY_GET].range_count <= 3,
          "%u ranges of sends, %u of gets", made.cost[MODEL_BY_SEND].range_count,
          made.cost[MODEL_BY_GET].range_count);
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        for (uint32_t j = 0; j < LARGEST; j++)
            for (int between = 0; between < 2; between++) {
                uint64_t bytes = (UINT64_C(2) + (uint64_t) between) << j;
                double is = lane_predict(&lane, &around, i, bytes);
                double found = lane_predict(&made, &around, i, bytes);
                CHECK(isnan(is) || fabs(found / is - 1) < (between ? 0.5 : 0.11),
                      "%s of %llu bytes: %g, not %g", model_protocols[i]->name,
                      (unsigned long long) bytes, found, is);
            }
}

/* Times that found their registrations in the cache are predicted as they were, and dearer by what
 * a new registration takes more where there is no cache; those that registered anew likewise. */
static void registration_is_counted_as_it_was_paid(void)
{
    uint64_t chance = 3;
    for (int cached = 0; cached < 2; cached++) {
        struct model_lane lane, made;
        struct model_surroundings around = surroundings(), other = surroundings();
        struct error_text error = {""};
        const struct model_lane_range move = {UINT64_MAX, 0.4e-6, 10e9,  0.7e-6,
                                              0.7e-6,     25e-6,  60e-12};
        stand_in(&lane);
        lane.reg_cached_s = 0.3e-6;
        model_lane_set_cost(&lane, MODEL_BY_GET, &move);
        model_lane_set_cost(&lane, MODEL_BY_PUT, &move);
        made = lane;
        around.registration_cached = cached;
        other.registration_cached = !cached;
        stand_in_measure(&lane, &around, 0, &chance);
        CHECK(lane_of_times(&times, &around, &made, &error), "%s", error.text);
        for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
            for (uint32_t i = MODEL_RNDV_GET; i <= MODEL_RNDV_PUT; i++) {
                double is = lane_predict(&lane, &around, i, bytes);
                double found = lane_predict(&made, &around, i, bytes);
                double is_other = lane_predict(&lane, &other, i, bytes);
                double found_other = lane_predict(&made, &other, i, bytes);
                CHECK(fabs(found / is - 1) < 0.01 && fabs(found_other / is_other - 1) < 0.01,
                      "%s, cached %d, %llu bytes: %g and %g, not %g and %g",
                      model_protocols[i]->name, cached, (unsigned long long) bytes, found,
                      found_other, is, is_other);
            }
    }
}

/* The same of sends that a lane copies, or registers, whichever is cheaper. */
static void a_copy_and_a_registration_are_distinguished(void)
{
    uint64_t chance = 3;
    for (int cached = 0; cached < 2; cached++) {
        struct model_lane lane, made;
        struct model_surroundings around = surroundings();
        struct error_text error = {""};
        const struct model_lane_range sends = {UINT64_MAX, 0.5e-6, 8e9, 0.3e-6, 0.3e-6, 20e-6, 0};
        stand_in(&lane);
        lane.reg_cached_s = 0.3e-6;
        lane.copy_growth_s_byte = 0.1e-9;
        model_lane_set_cost(&lane, MODEL_BY_SEND, &sends);
        made = lane;
        around.registration_cached = cached;
        stand_in_measure(&lane, &around, 0, &chance);
        CHECK(lane_of_times(&times, &around, &made, &error), "%s", error.text);
        CHECK(made.copy_growth_s_byte == lane.copy_growth_s_byte, "what was measured by itself");
        for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
            for (uint32_t i = MODEL_EAGER_SHORT; i <= MODEL_RNDV_AM; i++) {
                double is = lane_predict(&lane, &around, i, bytes);
                double found = lane_predict(&made, &around, i, bytes);
                CHECK(isnan(is) || fabs(found / is - 1) < 0.05,
                      "%s, cached %d, %llu bytes: %g, not %g", model_protocols[i]->name, cached,
                      (unsigned long long) bytes, found, is);
            }
    }
}

static struct plan *plan_of(const struct model_lane *lane, const struct model_surroundings *around)
{
    struct plan_input input;
    struct error_text error = {""};
    plan_input_init(&input);
    input.lanes = lane;
    input.lane_count = 1;
    input.around = *around;
    struct plan *plan = plan_build(&input, &error);
    CHECK(plan, "%s", error.text);
    return plan;
}

/* The first size from which on only rendezvous comes. */
static uint64_t rendezvous_from(const struct plan *plan)
{
    uint32_t i = plan->entry_count;
    while (i > 1 && plan->entries[i - 1].protocol->kind == MODEL_RNDV)
        i--;
    return plan->entries[i].first_bytes;
}

/* By the truth: what the plan's protocol takes of such messages, by what the best one does. */
static double slower_by(const struct model_lane *truth, const struct model_surroundings *around,
                        const struct plan *plan, uint64_t bytes)
{
    double best_s = INFINITY;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        double seconds = lane_predict(truth, around, i, bytes);
        best_s = seconds < best_s ? seconds : best_s;
    }
    return lane_predict(truth, around, plan_lookup(plan, bytes)->protocol_index, bytes) / best_s;
}

#define NOISE 0.06

static void noise_moves_no_border_to_where_it_costs(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    stand_in(&lane);
    struct plan *truth = plan_of(&lane, &around);
    uint64_t chance = 5;
    for (int round = 0; truth && round < 100; round++) {
        stand_in_measure(&lane, &around, round ? NOISE : 0, &chance);
        lane_make(&lane, &made);
        struct plan *plan = plan_of(&made, &around);
        if (!plan)
            break;
        double moved = log2((double) rendezvous_from(plan) / (double) rendezvous_from(truth));
        CHECK(fabs(moved) < (round ? 2 : 1), "round %d: rendezvous from %llu, found %llu", round,
              (unsigned long long) rendezvous_from(truth),
              (unsigned long long) rendezvous_from(plan));
        for (uint32_t j = 0; j < 2 * LARGEST; j++) {
            uint64_t bytes = (UINT64_C(2) + j % 2) << j / 2;
            double slower = slower_by(&lane, &around, plan, bytes);
            CHECK(slower < 1 + (round ? 2.5 * NOISE : 0.05), "round %d, %llu bytes: %g times",
                  round, (unsigned long long) bytes, slower);
        }
        plan_free(plan);
    }
    plan_free(truth);
}

/* As where the lane's fragments are dear and what follows the handshake goes by itself. */
static void a_rendezvous_that_is_quicker_is_taken(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    uint64_t chance = 3;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, &chance);
    for (uint32_t j = 13; j <= LARGEST; j++)
        times.at[MODEL_RNDV_AM][j].seconds =
            0.2 * times.at[j < 14 ? MODEL_EAGER_COPY : MODEL_EAGER_ZCOPY][j < 17 ? j : 17].seconds *
            exp2(j < 17 ? 0 : j - 17);
    lane_make(&lane, &made);
    struct plan *plan = plan_of(&made, &around);
    for (uint32_t j = 0; plan && j <= LARGEST; j++)
        CHECK((plan_lookup(plan, UINT64_C(1) << j)->protocol_index == MODEL_RNDV_AM) == (j >= 13),
              "2^%u bytes by %s", j, plan_lookup(plan, UINT64_C(1) << j)->protocol->name);
    plan_free(plan);
}

static void what_was_not_measured_stays(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    struct error_text error = {""};
    uint64_t chance = 3;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, &chance);
    memset(times.at[MODEL_RNDV_PUT], 0, sizeof(times.at[0]));
    for (uint32_t j = 0; j <= LARGEST; j++)
        if (j != 12) /* one size tells no line */
            times.at[MODEL_RNDV_GET][j].messages = 0;
    made = lane;
    CHECK(lane_of_times(&times, &around, &made, &error), "%s", error.text);
    for (int way = MODEL_BY_GET; way <= MODEL_BY_PUT; way++)
        CHECK(memcmp(&made.cost[way], &lane.cost[way], sizeof(lane.cost[way])) == 0, "%s",
              model_way_name((enum model_way) way));
}

/* A clock that ticks, or noise: then larger messages are not free. */
static void a_flat_end_does_not_go_on_for_ever(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    uint64_t chance = 3;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, &chance);
    for (int i = 0; i < MODEL_PROTOCOLS; i++)
        times.at[i][LARGEST].seconds = times.at[i][LARGEST - 1].seconds;
    lane_make(&lane, &made);
    for (uint32_t i = MODEL_RNDV_AM; i <= MODEL_RNDV_BOTH; i++) {
        double grows = lane_predict(&made, &around, i, UINT64_C(4) << LARGEST) /
                       lane_predict(&made, &around, i, UINT64_C(1) << LARGEST);
        CHECK(grows > 3.9, "%s: of four times the size %g times", model_protocols[i]->name, grows);
    }
}

static void nonsense_is_refused(void)
{
    struct model_lane lane, made;
    struct model_surroundings around = surroundings();
    struct error_text error = {""};
    uint64_t chance = 9;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, &chance);
    times.at[MODEL_RNDV_GET][LARGEST].seconds = 1e300;
    made = lane;
    CHECK(!lane_of_times(&times, &around, &made, &error) && strstr(error.text, "stand-in"), "%s",
          error.text);
    CHECK(memcmp(&made, &lane, sizeof(lane)) == 0, "the lane is untouched");
}

int main(void)
{
    times_are_given_again();
    registration_is_counted_as_it_was_paid();
    a_copy_and_a_registration_are_distinguished();
    noise_moves_no_border_to_where_it_costs();
    a_rendezvous_that_is_quicker_is_taken();
    what_was_not_measured_stays();
    a_flat_end_does_not_go_on_for_ever();
    nonsense_is_refused();
    return check_end();
}
