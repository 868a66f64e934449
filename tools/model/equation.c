/* SPDX-License-Identifier: BSD-3-Clause */
/* The threshold equation, as printed in equation.h's terms and decided without rounding. */
#include "tools/model/equation.h"

#include <math.h>
#include <string.h>

#include "common/model/group.h"
#include "tools/model/exact.h"

/* One side of the equation, scale * (fixed + size * (growth + 1 / bandwidth)) without rounding, and
 * rounded sums for people. */
struct equation_side {
    struct exact scale, fixed, growth, bandwidth;
    bool is_bounded; /* its bandwidth is finite */
    double cost_s, growth_s_byte, bandwidth_bytes_s, overhead_s;
    double latency_s; /* the largest */
    uint32_t lane_count;
};

/* How often each term counts, on every lane. */
struct equation_weights {
    int registration, overhead, latency;
};

/* rtime - etime = offset + size * slope, but for a factor above 0 */
struct equation_exact {
    struct exact offset, slope;
};

const char *equation_variant_name(enum equation_variant variant)
{
    return variant == EQUATION_RNDV_AM ? "rndv-am" : "rndv-get";
}

#define TERM(member) offsetof(struct equation_terms, member)

const struct equation_term equation_term_rows[EQUATION_TERMS] = {
    {"d", "d", "", TERM(bias)},
    {"rrc", "rrc", "", TERM(rrc)},
    {"ecost_s", "ecost", " s, registration", TERM(ecost_s)},
    {"egro_s_byte", "egro", " s/B, registration", TERM(egro_s_byte)},
    {"ebw_bytes_s", "ebw", " B/s, bandwidth", TERM(ebw_bytes_s)},
    {"eover_s", "eover", " s, overhead", TERM(eover_s)},
    {"elat_s", "elat", " s, latency (does not enter)", TERM(elat_s)},
    {"rcost_s", "rcost", " s, registration", TERM(rcost_s)},
    {"rgro_s_byte", "rgro", " s/B, registration", TERM(rgro_s_byte)},
    {"rbw_bytes_s", "rbw", " B/s, bandwidth", TERM(rbw_bytes_s)},
    {"rover_s", "rover", " s, overhead", TERM(rover_s)},
    {"rlat_s", "rlat", " s, latency", TERM(rlat_s)},
    {"num_s", "num = d*((1+rrc)*rcost + 4*rlat + 3*rover) - ecost - eover =", " s", TERM(num_s)},
    {"den_s_byte", "den = egro + 1/ebw - d*((1+rrc)*rgro + 1/rbw) =", " s/B", TERM(den_s_byte)},
};

static void add_times(struct exact *sum, int times, double value)
{
    for (int i = 0; i < times; i++)
        exact_add_double(sum, value);
}

static void side_add(struct equation_side *side, const struct equation_weights *weights,
                     const struct model_lane_range *range)
{
    add_times(&side->fixed, weights->registration, range->reg_cost_s);
    add_times(&side->growth, weights->registration, range->reg_growth_s_byte);
    add_times(&side->fixed, weights->overhead, range->overhead_send_s);
    add_times(&side->fixed, weights->overhead, range->overhead_receive_s);
    side->cost_s += range->reg_cost_s;
    side->growth_s_byte += range->reg_growth_s_byte;
    side->overhead_s += range->overhead_send_s + range->overhead_receive_s;
    side->latency_s = fmax(side->latency_s, range->latency_s);
}

/* Lanes of the right use and ability, at the range of attributes that holds for `at_bytes`. */
static void side_sum(const struct plan_input *input, enum model_use use, enum model_way way,
                     uint64_t at_bytes, double scale, struct equation_weights weights,
                     struct equation_side *side)
{
    uint32_t ability = way == MODEL_BY_GET ? MODEL_CAN_GET : MODEL_CAN_SEND;
    struct group_member members[MODEL_LANES_MAX];
    double parts[MODEL_LANES_MAX];
    memset(side, 0, sizeof *side);
    exact_set(&side->scale, scale);
    for (uint32_t i = 0; i < input->lane_count; i++) {
        const struct model_lane *lane = &input->lanes[i];
        const struct model_lane_range *range = model_lane_range_at(lane, way, at_bytes);
        if (!(lane->use & (uint32_t) use) || !(lane->can & ability) || !range)
            continue;
        members[side->lane_count].group = lane->group;
        members[side->lane_count++].bandwidth_bytes_s = range->bandwidth_bytes_s;
        side_add(side, &weights, range);
    }
    add_times(&side->fixed, weights.latency, side->latency_s);
    uint32_t count = group_bandwidths(members, side->lane_count, &input->around.groups, parts);
    for (uint32_t i = 0; i < count; i++) {
        side->bandwidth_bytes_s += parts[i];
        if (isfinite(parts[i]))
            exact_add_double(&side->bandwidth, parts[i]);
    }
    side->is_bounded = side->bandwidth_bytes_s > 0 && isfinite(side->bandwidth_bytes_s);
}

static double reciprocal(double bandwidth)
{
    return isfinite(bandwidth) ? 1 / bandwidth : 0;
}

static void fill_terms(const struct equation_side *eager, const struct equation_side *rndv,
                       double bias, int rrc, struct equation_terms *terms)
{
    *terms = (struct equation_terms){.ecost_s = eager->cost_s,
                                     .egro_s_byte = eager->growth_s_byte,
                                     .ebw_bytes_s = eager->bandwidth_bytes_s,
                                     .eover_s = eager->overhead_s,
                                     .elat_s = eager->latency_s,
                                     .rcost_s = rndv->cost_s,
                                     .rgro_s_byte = rndv->growth_s_byte,
                                     .rbw_bytes_s = rndv->bandwidth_bytes_s,
                                     .rover_s = rndv->overhead_s,
                                     .rlat_s = rndv->latency_s,
                                     .bias = bias,
                                     .rrc = rrc};
    terms->num_s = equation_rndv_time(terms, 0) - equation_eager_time(terms, 0);
    terms->den_s_byte = terms->egro_s_byte + reciprocal(terms->ebw_bytes_s) -
                        bias * ((1 + rrc) * terms->rgro_s_byte + reciprocal(terms->rbw_bytes_s));
}

/* The side times its own bandwidth and `other`'s, which both are above 0 and so keep its sign:
 * scale * fixed * B * other and scale * (growth * B + 1) * other, B being 1 where there is none. */
static void clear_denominators(const struct equation_side *side, const struct equation_side *other,
                               struct equation_exact *out)
{
    out->offset = side->fixed;
    out->slope = side->growth;
    if (side->is_bounded) {
        exact_multiply(&out->offset, &out->offset, &side->bandwidth);
        exact_multiply(&out->slope, &out->slope, &side->bandwidth);
        exact_add_double(&out->slope, 1);
    }
    if (other->is_bounded) {
        exact_multiply(&out->offset, &out->offset, &other->bandwidth);
        exact_multiply(&out->slope, &out->slope, &other->bandwidth);
    }
    exact_multiply(&out->offset, &out->offset, &side->scale);
    exact_multiply(&out->slope, &out->slope, &side->scale);
}

/* rndv - eager, but for a factor above 0 */
static void difference(const struct equation_side *rndv, const struct equation_side *eager,
                       struct equation_exact *out)
{
    struct equation_exact less;
    clear_denominators(rndv, eager, out);
    clear_denominators(eager, rndv, &less);
    exact_negate(&less.offset);
    exact_negate(&less.slope);
    exact_add(&out->offset, &less.offset);
    exact_add(&out->slope, &less.slope);
}

/* Is rendezvous chosen? A tie is. */
static bool rndv_wins(const struct equation_exact *exact, uint64_t size)
{
    return exact_sign_at(&exact->offset, &exact->slope, size) <= 0;
}

/* The largest size from `low` to `high` at which rndv_wins is what it is at `low`; at `high` it is
 * not. */
static uint64_t last_alike(const struct equation_exact *exact, uint64_t low, uint64_t high)
{
    bool at_low = rndv_wins(exact, low);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (rndv_wins(exact, middle) == at_low)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* num and den are both above 0, or both below: there is one size at which it changes. */
static void solve_meeting(const struct equation_exact *exact, bool is_at,
                          struct equation_result *result)
{
    uint64_t last = is_at ? EQUATION_BYTES_MAX : EQUATION_BYTES_MAX + 1;
    bool first_wins = rndv_wins(exact, 1);
    result->kind = is_at ? EQUATION_AT : EQUATION_BELOW;
    if (first_wins == is_at) { /* before any size */
        result->kind = is_at ? EQUATION_AT : EQUATION_NEVER;
        result->bytes = is_at;
    } else if (rndv_wins(exact, last) == first_wins) {
        result->kind = is_at ? EQUATION_NEVER : EQUATION_BELOW;
        result->bytes = is_at ? 0 : EQUATION_BYTES_MAX;
        result->beyond = true;
    } else {
        result->bytes = last_alike(exact, 1, last) + is_at;
    }
}

static void solve(const struct equation_exact *exact, struct equation_result *result)
{
    int num = exact_sign(&exact->offset), den = -exact_sign(&exact->slope);
    if (num * den > 0)
        solve_meeting(exact, num > 0, result);
    else
        result->kind = num <= 0 && den >= 0 ? EQUATION_ALWAYS : EQUATION_NEVER;
}

static bool check_use(const struct plan_input *input, enum model_use use, struct error_text *error)
{
    for (uint32_t i = 0; i < input->lane_count; i++)
        if (input->lanes[i].use & (uint32_t) use)
            return true;
    return fail_with(error, "no lane is for %s, and the equation compares both",
                     use == MODEL_USE_EAGER ? "eager" : "rndv");
}

static bool check_input(const struct plan_input *input, struct error_text *error)
{
    struct plan_input alone = *input;
    alone.override_count = 0; /* plans are forced, not the equation */
    return plan_input_check(&alone, error) && check_use(input, MODEL_USE_EAGER, error) &&
           check_use(input, MODEL_USE_RNDV, error);
}

bool equation_solve(const struct plan_input *input, enum equation_variant variant,
                    uint64_t at_bytes, struct equation_result *result, struct error_text *error)
{
    struct equation_side eager, rndv;
    struct equation_exact exact;
    enum model_way way = variant == EQUATION_RNDV_AM ? MODEL_BY_SEND : MODEL_BY_GET;
    int rrc = variant == EQUATION_RNDV_GET;
    double bias = input->around.bias;

    if (!check_input(input, error))
        return false;
    side_sum(input, MODEL_USE_EAGER, MODEL_BY_SEND, at_bytes, 1,
             (struct equation_weights){.registration = 1, .overhead = 1}, &eager);
    side_sum(input, MODEL_USE_RNDV, way, at_bytes, bias,
             (struct equation_weights){.registration = 1 + rrc, .overhead = 3, .latency = 4},
             &rndv);
    memset(result, 0, sizeof *result);
    if (!eager.lane_count)
        return fail_with(error, "no eager lane can send");
    if (!rndv.lane_count) {
        result->kind = EQUATION_NEVER;
        result->no_lane = true;
        return true;
    }
    difference(&rndv, &eager, &exact);
    fill_terms(&eager, &rndv, bias, rrc, &result->terms);
    solve(&exact, result);
    return true;
}

double equation_eager_time(const struct equation_terms *terms, uint64_t bytes)
{
    double size = (double) bytes;
    return terms->ecost_s + size * terms->egro_s_byte + size * reciprocal(terms->ebw_bytes_s) +
           terms->eover_s;
}

double equation_rndv_time(const struct equation_terms *terms, uint64_t bytes)
{
    double size = (double) bytes;
    return terms->bias *
           ((1 + terms->rrc) * (terms->rcost_s + size * terms->rgro_s_byte) + 4 * terms->rlat_s +
            3 * terms->rover_s + size * reciprocal(terms->rbw_bytes_s));
}

const char *equation_kind_name(enum equation_kind kind)
{
    static const char *const words[] = {[EQUATION_AT] = "at",
                                        [EQUATION_ALWAYS] = "always",
                                        [EQUATION_NEVER] = "never",
                                        [EQUATION_BELOW] = "below"};
    return words[kind];
}

struct words equation_print(const struct equation_result *result)
{
    struct words words = words_of("%s", equation_kind_name(result->kind));
    if (result->kind == EQUATION_AT || result->kind == EQUATION_BELOW)
        words_more(&words, " %llu", (unsigned long long) result->bytes);
    if (result->beyond || result->no_lane)
        words_more(&words, "%s",
                   result->beyond ? " (the times meet only above 2^52 bytes)"
                                  : " (no lane can do it)");
    return words;
}
