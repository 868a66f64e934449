/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of plans that must hold for any lanes: the engine gives the equation's sizes, but
 * where times are equal as far as doubles tell, a plan covers every size once, and no protocol is
 * quicker than the plan. */
#include "model_lanes.h"

#include <math.h>
#include <string.h>

#include "tools/model/equation.h"

#define EQUATION_SETS 30000
#define PLAN_SETS     12000

static bool same_threshold(const struct plan *plan, const struct equation_result *result)
{
    bool starts_rndv = plan->entry_count > 1 && plan->entries[1].protocol->kind == MODEL_RNDV;
    uint64_t meets = plan->entry_count > 1 + (uint32_t) (result->kind == EQUATION_BELOW)
                         ? plan->entries[1 + (result->kind == EQUATION_BELOW)].first_bytes
                         : 0;
    switch (result->kind) {
    case EQUATION_ALWAYS:
        return plan->entry_count == 2 && starts_rndv;
    case EQUATION_NEVER:
        return plan->entry_count == 1 || (result->beyond && meets > EQUATION_BYTES_MAX);
    case EQUATION_AT:
        return plan->entry_count == 2 && meets == result->bytes;
    case EQUATION_BELOW:
        if (result->beyond)
            return starts_rndv && (plan->entry_count == 2 || meets > EQUATION_BYTES_MAX);
        return plan->entry_count == 3 && starts_rndv && meets == result->bytes + 1;
    }
    return false;
}

static bool rndv_by_equation(const struct equation_result *result, uint64_t bytes)
{
    switch (result->kind) {
    case EQUATION_ALWAYS:
        return true;
    case EQUATION_AT:
        return bytes >= result->bytes;
    case EQUATION_BELOW:
        return bytes <= result->bytes;
    default:
        return false;
    }
}

/* Where plan and equation differ at this size, the two times must be equal but for rounding. */
static bool same_choice(const struct plan *plan, const struct equation_result *result,
                        uint64_t bytes)
{
    double eager_s = equation_eager_time(&result->terms, bytes);
    double rndv_s = equation_rndv_time(&result->terms, bytes);
    bool is_rndv = plan_lookup(plan, bytes)->protocol->kind == MODEL_RNDV;
    return is_rndv == rndv_by_equation(result, bytes) ||
           fabs(eager_s - rndv_s) <= 0x1p-41 * (eager_s + rndv_s);
}

/* At both sides of every switch of either, and at both ends. */
static bool same_choices(const struct plan *plan, const struct equation_result *result)
{
    bool is_same = same_choice(plan, result, 1) && same_choice(plan, result, EQUATION_BYTES_MAX);
    if (result->kind == EQUATION_AT || result->kind == EQUATION_BELOW)
        for (uint64_t beside = 0; beside <= 2; beside++)
            is_same = is_same && (result->bytes + beside < 2 ||
                                  same_choice(plan, result, result->bytes + beside - 1));
    for (uint32_t i = 1; i < plan->entry_count; i++) {
        uint64_t first = plan->entries[i].first_bytes;
        if (first > 1 && first <= EQUATION_BYTES_MAX)
            is_same =
                is_same && same_choice(plan, result, first) && same_choice(plan, result, first - 1);
    }
    return is_same;
}

/* One eager and one rendezvous protocol over the equation's sets of lanes. */
static void check_engine_is_equation(uint64_t *chance, unsigned *to_the_byte)
{
    struct model_lane lanes[MODEL_LANES_MAX];
    struct plan_input input;
    struct error_text error = {""};
    struct equation_result result;
    uint32_t eager = 1 + (uint32_t) chance_below(chance, 4);
    uint32_t rndv = 1 + (uint32_t) chance_below(chance, 4);
    enum equation_variant variant = (enum equation_variant) chance_below(chance, 2);
    int protocol = variant == EQUATION_RNDV_AM ? MODEL_RNDV_AM : MODEL_RNDV_GET;

    for (uint32_t i = 0; i < eager + rndv; i++)
        chance_lane(chance, &lanes[i], i < eager ? MODEL_USE_EAGER : MODEL_USE_RNDV);
    if (!chance_below(chance, 4)) /* the same lanes for both: only d tells them apart */
        for (uint32_t i = 0; i < eager + rndv; i++)
            lanes[i].use = MODEL_USE_BOTH;
    plan_input_init(&input);
    input.lanes = lanes;
    input.lane_count = eager + rndv;
    input.every_lane = true;
    input.around.handshake_on_all = true;
    input.without = ~(1u << MODEL_EAGER_ZCOPY | 1u << protocol);
    input.around.bias = chance_below(chance, 3) ? 0.99 : 0.5 + chance_real(chance);

    bool solved = equation_solve(&input, variant, 1, &result, &error);
    struct plan *plan = plan_build(&input, &error);
    CHECK(solved && plan, "%s", error.text);
    if (solved && plan) {
        *to_the_byte += same_threshold(plan, &result);
        CHECK(same_threshold(plan, &result) || same_choices(plan, &result),
              "%s: the equation says %s, the plan has %u entries, %llu",
              equation_variant_name(variant), equation_print(&result).text,
              (unsigned) plan->entry_count,
              (unsigned long long) plan->entries[plan->entry_count - 1].first_bytes);
    }
    plan_free(plan);
}

/* --- whole plans ------------------------------------------------------------------------------ */

static void chance_ranges(uint64_t *chance, struct model_lane *lane)
{
    if (chance_below(chance, 2))
        lane->cost[MODEL_BY_BOTH] = lane->cost[MODEL_BY_GET];
    for (int way = 0; way < MODEL_WAYS; way++) {
        struct model_lane_cost *cost = &lane->cost[way];
        if (!cost->range_count)
            continue;
        struct model_lane other;
        uint32_t more = (uint32_t) chance_below(chance, 3);
        uint64_t end = 1 + chance_below(chance, 100000);
        for (uint32_t i = 0; i < more; i++, end += 1 + chance_below(chance, 1 << 24)) {
            cost->ranges[cost->range_count] = cost->ranges[cost->range_count - 1];
            cost->ranges[cost->range_count - 1].largest_bytes = end;
            cost->range_count++;
            chance_lane(chance, &other, MODEL_USE_BOTH);
            cost->ranges[cost->range_count - 1] = other.cost[0].ranges[0];
        }
    }
}

static void chance_full_lane(uint64_t *chance, struct model_lane *lane)
{
    chance_lane(chance, lane, (enum model_use)(1 + chance_below(chance, 3)));
    lane->can = (uint32_t) chance_below(chance, 1 << MODEL_ABILITIES) | MODEL_CAN_SEND;
    lane->reach = 1 + (uint32_t) chance_below(chance, 7);
    lane->short_max_bytes = chance_below(chance, 2) ? chance_below(chance, 256) : 0;
    lane->copied_max_bytes = chance_below(chance, 4) ? 64 + chance_below(chance, 65536) : 0;
    lane->zcopied_max_bytes = chance_below(chance, 2) ? UINT64_MAX : 0;
    lane->copy_growth_s_byte = chance_below(chance, 2) ? chance_value(chance, 1e-10) : 0;
    lane->group = (uint32_t) chance_below(chance, 4);
    if (chance_below(chance, 2))
        chance_ranges(chance, lane);
}

static void chance_copy(uint64_t *chance, struct cost_line *copy)
{
    copy->fixed_s = chance_value(chance, 1e-6);
    copy->growth_s_byte = chance_value(chance, 1e-10);
}

static void chance_input(uint64_t *chance, struct plan_input *input, struct model_lane *lanes,
                         struct model_group *group)
{
    plan_input_init(input);
    input->lane_count = 1 + (uint32_t) chance_below(chance, 6);
    for (uint32_t i = 0; i < input->lane_count; i++)
        chance_full_lane(chance, &lanes[i]);
    *group = (struct model_group){1, chance_bandwidth(chance)};
    input->lanes = lanes;
    input->view = chance_below(chance, 3) ? COST_OF_MESSAGE : COST_OF_STREAM;
    input->every_lane = !chance_below(chance, 4);
    input->most_eager_lanes = (uint32_t) chance_below(chance, 4);
    input->most_rndv_lanes = (uint32_t) chance_below(chance, 4);
    input->around.groups = (struct model_groups){group, (uint32_t) chance_below(chance, 2)};
    input->around.buffer.memory = (enum model_memory)(1 << chance_below(chance, MODEL_MEMORIES));
    input->around.buffer.pieces = (uint32_t) chance_below(chance, 2);
    input->around.operation = (enum model_operation) chance_below(chance, 2);
    input->around.header_bytes = (uint32_t) chance_below(chance, 64);
    input->around.registration_cached = chance_below(chance, 2);
    for (int i = 0; i < MODEL_MEMORIES; i++)
        if (chance_below(chance, 3))
            chance_copy(chance, &input->around.copy[i]);
}

static void check_covers_once(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        uint32_t weight = 0;
        CHECK(entry->first_bytes == (i ? plan->largest[i - 1] + 1 : 0), "entry %u", i);
        CHECK(entry->first_bytes <= entry->largest_bytes, "entry %u", i);
        CHECK(plan->largest[i] == entry->largest_bytes, "entry %u", i);
        CHECK(plan_lookup(plan, entry->first_bytes) == entry, "entry %u", i);
        CHECK(plan_lookup(plan, entry->largest_bytes) == entry, "entry %u", i);
        for (uint32_t j = 0; j < entry->lane_count; j++)
            weight += entry->weights[j];
        CHECK(entry->lane_count && weight == PLAN_WEIGHT_ONE, "entry %u: weights of %u", i, weight);
        if (i)
            CHECK(entry->protocol_index != entry[-1].protocol_index ||
                      entry->copies != entry[-1].copies ||
                      entry->lane_count != entry[-1].lane_count ||
                      memcmp(entry->lanes, entry[-1].lanes, entry->lane_count),
                  "entries %u and %u are the same choice", i - 1, i);
    }
    CHECK(plan->largest[plan->entry_count - 1] == UINT64_MAX, "the last size");
    CHECK(plan->entries[0].protocol->kind == MODEL_EAGER, "size 0");
}

/* No protocol over the best of its sets of lanes is quicker than what the plan chose. */
static void check_never_slower(const struct plan_input *input, const struct plan *plan,
                               uint64_t bytes)
{
    struct cost chosen, other;
    const struct plan_entry *entry = plan_lookup(plan, bytes);
    bool predicted = plan_predict(input, entry, bytes, &chosen);
    CHECK(predicted, "%s at %llu", entry->protocol->name, (unsigned long long) bytes);
    if (!predicted)
        return;
    double time = cost_of(&chosen, input->view, bytes);
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        struct plan_entry best;
        if (!plan_best_of_protocol(input, i, bytes, &best, &other))
            continue;
        double other_time = cost_of(&other, input->view, bytes);
        CHECK(time <= other_time * (1 + 1e-9), "at %llu %s takes %g, %s %g",
              (unsigned long long) bytes, entry->protocol->name, time, best.protocol->name,
              other_time);
    }
}

static void check_plan(uint64_t *chance, unsigned *built)
{
    struct model_lane lanes[MODEL_LANES_MAX];
    struct model_group group;
    struct plan_input input;
    struct error_text error = {""};
    chance_input(chance, &input, lanes, &group);
    struct plan *plan = plan_build(&input, &error);
    if (!plan) { /* no lane for this buffer: said in words */
        CHECK(strstr(error.text, "no protocol can carry"), "%s", error.text);
        return;
    }
    ++*built;
    check_covers_once(plan);
    check_never_slower(&input, plan, 0);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        check_never_slower(&input, plan, plan->entries[i].first_bytes);
        check_never_slower(&input, plan, plan->entries[i].largest_bytes);
    }
    for (int i = 0; i < 8; i++) {
        uint64_t bytes = chance_next(chance);
        bytes >>= chance_below(chance, 63);
        check_never_slower(&input, plan, bytes);
    }
    plan_free(plan);
}

int main(void)
{
    uint64_t chance = UINT64_C(0x9e3779b97f4a7c15);
    unsigned built = 0, to_the_byte = 0;
    for (int i = 0; i < EQUATION_SETS; i++)
        check_engine_is_equation(&chance, &to_the_byte);
    CHECK(to_the_byte > EQUATION_SETS * 0.998, "%u of %d to the byte", to_the_byte, EQUATION_SETS);
    for (int i = 0; i < PLAN_SETS; i++)
        check_plan(&chance, &built);
    CHECK(built > PLAN_SETS / 4, "only %u plans were possible", built);
    return check_end();
}
