/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in lane whose times follow known attributes to the digit: they are found again from its
 * samples, and noise moves no switch point farther than the fit says it may. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "tools/model/effective.h"

#define SAMPLES_MAX 1024

static struct sample samples[MODEL_PROTOCOLS][SAMPLES_MAX];
static struct effective_curve curves[MODEL_PROTOCOLS];

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

/* Its clock: the time that its attributes say, disturbed by up to `noise` either way, and now and
 * then by a pause, as clocks are. */
static void stand_in_measure(const struct model_lane *lane, const struct model_surroundings *around,
                             double noise, int rounds, uint64_t *chance)
{
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        uint32_t count = 0;
        for (int round = 0; round < rounds; round++)
            for (uint64_t size = 1; size <= UINT64_C(64) << 20; size *= 2)
                for (uint64_t bytes = size; bytes <= size + size / 2; bytes += (size + 1) / 2) {
                    double seconds = effective_predict(lane, around, i, bytes);
                    if (isnan(seconds))
                        continue;
                    seconds *= 1 + noise * (2 * chance_real(chance) - 1);
                    if (noise > 0 && !chance_below(chance, 40))
                        seconds *= 3;
                    if (count < SAMPLES_MAX)
                        samples[i][count++] = (struct sample){bytes, seconds};
                }
        curves[i] = (struct effective_curve){samples[i], count};
    }
}

/* An empty lane of the same abilities, with the fit in it. */
static bool fit(const struct model_lane *stand_in, struct model_lane *fitted)
{
    struct model_surroundings around = surroundings();
    struct model_error error = {""};
    *fitted = *stand_in;
    for (int way = 0; way < MODEL_WAYS; way++)
        fitted->cost[way].range_count = 0;
    bool good = effective_fit(curves, &around, EFFECTIVE_RESIDUAL_GOOD, fitted, &error);
    CHECK(good, "%s", error.text);
    return good;
}

static void attributes_are_found_again(void)
{
    struct model_lane lane, fitted;
    struct model_surroundings around = surroundings();
    uint64_t chance = 3;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, 1, &chance);
    if (!fit(&lane, &fitted))
        return;
    for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
        for (int way = 0; way < MODEL_WAYS; way++) {
            const struct model_lane_range *is =
                model_lane_range_at(&lane, (enum model_way) way, bytes);
            const struct model_lane_range *found =
                model_lane_range_at(&fitted, (enum model_way) way, bytes);
            double over_is = is->overhead_send_s + is->overhead_receive_s;
            double over_found = found->overhead_send_s + found->overhead_receive_s;
            CHECK(fabs(found->bandwidth_bytes_s / is->bandwidth_bytes_s - 1) < 0.05,
                  "%s, %llu bytes: bandwidth %g, found %g", model_way_name((enum model_way) way),
                  (unsigned long long) bytes, is->bandwidth_bytes_s, found->bandwidth_bytes_s);
            /* A handshake shows only 4 lat + 3 over; sends have each alone up to eager's end. */
            double hand_is = 4 * is->latency_s + 3 * over_is;
            double hand_found = 4 * found->latency_s + 3 * over_found;
            CHECK(fabs(hand_found / hand_is - 1) < 0.05, "%s, %llu bytes: handshake %g, found %g",
                  model_way_name((enum model_way) way), (unsigned long long) bytes, hand_is,
                  hand_found);
            if (way == MODEL_BY_SEND && bytes < 128 << 10) {
                CHECK(fabs(over_found / over_is - 1) < 0.05, "%llu bytes: overhead %g, found %g",
                      (unsigned long long) bytes, over_is, over_found);
                CHECK(fabs(found->latency_s / is->latency_s - 1) < 0.05,
                      "%llu bytes: latency %g, found %g", (unsigned long long) bytes, is->latency_s,
                      found->latency_s);
            }
        }
}

/* Trips that found their registrations in the cache are predicted as they were, and dearer by what
 * a new registration takes more where there is no cache; those that registered anew likewise. */
static void registration_is_counted_as_it_was_paid(void)
{
    uint64_t chance = 3;
    for (int cached = 0; cached < 2; cached++) {
        struct model_lane lane, fitted;
        struct model_surroundings around = surroundings(), other = surroundings();
        struct model_error error = {""};
        const struct model_lane_range move = {UINT64_MAX, 0.4e-6, 10e9,  0.7e-6,
                                              0.7e-6,     25e-6,  60e-12};
        stand_in(&lane);
        lane.reg_cached_s = 0.3e-6;
        model_lane_set_cost(&lane, MODEL_BY_GET, &move);
        model_lane_set_cost(&lane, MODEL_BY_PUT, &move);
        fitted = lane;
        around.registration_cached = cached;
        other.registration_cached = !cached;
        stand_in_measure(&lane, &around, 0, 1, &chance);
        CHECK(effective_fit(curves, &around, EFFECTIVE_RESIDUAL_GOOD, &fitted, &error), "%s",
              error.text);
        for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
            for (uint32_t i = MODEL_RNDV_GET; i <= MODEL_RNDV_PUT; i++) {
                double is = effective_predict(&lane, &around, i, bytes);
                double found = effective_predict(&fitted, &around, i, bytes);
                double is_other = effective_predict(&lane, &other, i, bytes);
                double found_other = effective_predict(&fitted, &other, i, bytes);
                CHECK(fabs(found / is - 1) < 0.05 && fabs(found_other / is_other - 1) < 0.05,
                      "%s, cached %d, %llu bytes: %g and %g, not %g and %g",
                      model_protocols[i]->name, cached, (unsigned long long) bytes, found,
                      found_other, is, is_other);
            }
    }
}

/* The same of sends that a lane copies, or registers, whichever is cheaper. */
static void a_copy_and_a_registration_are_told_apart(void)
{
    uint64_t chance = 3;
    for (int cached = 0; cached < 2; cached++) {
        struct model_lane lane, fitted;
        struct model_surroundings around = surroundings();
        struct model_error error = {""};
        const struct model_lane_range sends = {UINT64_MAX, 0.5e-6, 8e9, 0.3e-6, 0.3e-6, 20e-6, 0};
        stand_in(&lane);
        lane.reg_cached_s = 0.3e-6;
        lane.copy_growth_s_byte = 0.1e-9;
        model_lane_set_cost(&lane, MODEL_BY_SEND, &sends);
        fitted = lane;
        around.registration_cached = cached;
        stand_in_measure(&lane, &around, 0, 1, &chance);
        CHECK(effective_fit(curves, &around, EFFECTIVE_RESIDUAL_GOOD, &fitted, &error), "%s",
              error.text);
        CHECK(fitted.copy_growth_s_byte == lane.copy_growth_s_byte, "what was measured by itself");
        for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
            for (uint32_t i = MODEL_EAGER_SHORT; i <= MODEL_RNDV_AM; i++) {
                double is = effective_predict(&lane, &around, i, bytes);
                double found = effective_predict(&fitted, &around, i, bytes);
                CHECK(isnan(is) || fabs(found / is - 1) < 0.05,
                      "%s, cached %d, %llu bytes: %g, not %g", model_protocols[i]->name, cached,
                      (unsigned long long) bytes, found, is);
            }
    }
}

static struct plan *plan_of(const struct model_lane *lane, const struct model_surroundings *around)
{
    struct plan_input input;
    struct model_error error = {""};
    plan_input_init(&input);
    input.lanes = lane;
    input.lane_count = 1;
    input.around = *around;
    struct plan *plan = plan_build(&input, &error);
    CHECK(plan, "%s", error.text);
    return plan;
}

/* The entry of the plan after which only rendezvous comes. */
static uint32_t rendezvous_entry(const struct plan *plan)
{
    uint32_t i = plan->entry_count;
    while (i > 1 && plan->entries[i - 1].protocol->kind == MODEL_RNDV)
        i--;
    return i;
}

static void noise_moves_no_switch_point_beyond_its_range(void)
{
    struct model_lane lane, fitted;
    struct model_surroundings around = surroundings();
    stand_in(&lane);
    struct plan *truth = plan_of(&lane, &around);
    uint64_t chance = 5;
    for (int round = 0; truth && round < 30; round++) {
        struct effective_quality below, above;
        uint64_t least, most;
        stand_in_measure(&lane, &around, 0.06, 5, &chance);
        if (!fit(&lane, &fitted))
            break;
        struct plan *plan = plan_of(&fitted, &around);
        uint32_t i = rendezvous_entry(plan), true_entry = rendezvous_entry(truth);
        uint64_t found = plan->entries[i].first_bytes;
        uint64_t is = truth->entries[true_entry].first_bytes;
        uint32_t a = plan->entries[i - 1].protocol_index, b = plan->entries[i].protocol_index;
        effective_judge(&fitted, &around, a, &curves[a], &below);
        effective_judge(&fitted, &around, b, &curves[b], &above);
        effective_confidence(&fitted, &around, a, b, found, below.median + above.median, &least,
                             &most);
        CHECK(least <= is && is <= most && least <= found && found <= most,
              "round %d: %s from %llu, found %llu, said to lie from %llu to %llu", round,
              plan->entries[i].protocol->name, (unsigned long long) is, (unsigned long long) found,
              (unsigned long long) least, (unsigned long long) most);
        CHECK(most < 4 * is && least > is / 4, "the range means something: %llu to %llu of %llu",
              (unsigned long long) least, (unsigned long long) most, (unsigned long long) is);
        CHECK(below.median < 0.06 && above.median < 0.06, "off by %g and %g", below.median,
              above.median);
        plan_free(plan);
    }
    plan_free(truth);
}

/* Half of the rounds run while something makes everything four times as slow. */
static void a_disturbed_half_is_left_out(void)
{
    struct model_lane lane, fitted;
    struct model_surroundings around = surroundings();
    uint64_t chance = 5;
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, 1, &chance);
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        uint32_t clean = curves[i].count;
        for (uint32_t j = 0; j < clean && curves[i].count < SAMPLES_MAX; j++)
            samples[i][curves[i].count++] =
                (struct sample){samples[i][j].bytes, samples[i][j].seconds * 4};
        CHECK(samples_steady(samples[i], curves[i].count) == clean, "%u of %u samples left", clean,
              curves[i].count);
        curves[i].count = clean;
    }
    if (!fit(&lane, &fitted))
        return;
    for (uint64_t bytes = 4; bytes <= UINT64_C(64) << 20; bytes *= 2)
        for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
            double is = effective_predict(&lane, &around, i, bytes);
            double found = effective_predict(&fitted, &around, i, bytes);
            CHECK(isnan(is) || fabs(found / is - 1) < 0.05, "%s of %llu bytes: %g, not %g",
                  model_protocols[i]->name, (unsigned long long) bytes, found, is);
        }
}

static void samples_without_a_line_are_refused_by_name(void)
{
    struct model_lane lane, fitted;
    struct model_error error = {""};
    uint64_t chance = 9;
    struct model_surroundings around = surroundings();
    stand_in(&lane);
    stand_in_measure(&lane, &around, 0, 1, &chance);
    for (uint32_t i = 0; i < curves[MODEL_RNDV_GET].count; i++)
        samples[MODEL_RNDV_GET][i].seconds = 1e-6 * exp(6 * chance_real(&chance));
    fitted = lane;
    CHECK(!effective_fit(curves, &around, EFFECTIVE_RESIDUAL_GOOD, &fitted, &error),
          "nonsense was fitted");
    CHECK(strstr(error.text, "rndv-get from "), "%s", error.text);
    CHECK(memcmp(&fitted, &lane, sizeof(lane)) == 0, "the lane is untouched");
    curves[MODEL_RNDV_GET].count = 0;
    samples[MODEL_EAGER_COPY][0].seconds = -1;
    samples[MODEL_EAGER_COPY][curves[MODEL_EAGER_COPY].count - 1].seconds = NAN;
    CHECK(!effective_fit(curves, &around, EFFECTIVE_RESIDUAL_GOOD, &fitted, &error) &&
              strstr(error.text, "eager-copy"),
          "%s", error.text);
}

int main(void)
{
    attributes_are_found_again();
    registration_is_counted_as_it_was_paid();
    a_copy_and_a_registration_are_told_apart();
    noise_moves_no_switch_point_beyond_its_range();
    a_disturbed_half_is_left_out();
    samples_without_a_line_are_refused_by_name();
    return check_end();
}
