/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs: adding terms, and comparing them without rounding. */
#include "common/model/cost_term.h"

#include <math.h>
#include <string.h>

void cost_begin(struct cost *cost, double scale)
{
    struct cost_exact *exact = cost->exact;
    *cost = (struct cost){.last_bytes = UINT64_MAX, .scale = scale, .exact = exact};
    if (exact) {
        exact->fingerprint = 0;
        exact->scale = scale;
        exact->bounded = false;
        exact_set(&exact->fixed, 0);
        exact_set(&exact->growth, 0);
        exact_set(&exact->bandwidth, 0);
    }
}

enum term_kind { TERM_FIXED = 1, TERM_GROWTH, TERM_BANDWIDTH, TERM_SCALE };

/* A number that equal terms share and different ones hardly ever do (splitmix64's mixing). */
static uint64_t term_fingerprint(enum term_kind kind, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += kind * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

/* Adding weighted fingerprints makes the sum independent of order and of the stages. */
static void fingerprint_add(struct cost_exact *exact, enum term_kind kind, int weight, double value)
{
    if (value != 0)
        exact->fingerprint += (uint64_t) weight * term_fingerprint(kind, value);
}

static void exact_add_weighted(struct exact *sum, int weight, double value)
{
    struct exact factor, number, product;
    exact_set(&factor, weight);
    exact_set(&number, value);
    exact_multiply(&product, &factor, &number);
    exact_add(sum, &product);
}

void cost_exact_fixed(struct cost_exact *exact, int weight, double seconds)
{
    fingerprint_add(exact, TERM_FIXED, weight, seconds);
    if (!exact->only_fingerprint)
        exact_add_weighted(&exact->fixed, weight, seconds);
}

void cost_exact_growth(struct cost_exact *exact, int weight, double seconds_byte)
{
    fingerprint_add(exact, TERM_GROWTH, weight, seconds_byte);
    if (!exact->only_fingerprint)
        exact_add_weighted(&exact->growth, weight, seconds_byte);
}

void cost_exact_bandwidth(struct cost_exact *exact, double bytes_s)
{
    fingerprint_add(exact, TERM_BANDWIDTH, 1, bytes_s);
    if (!exact->only_fingerprint && isfinite(bytes_s))
        exact_add_double(&exact->bandwidth, bytes_s);
}

void cost_end(struct cost *cost)
{
    if (cost->bandwidth_bytes_s > 0)
        cost->stage[COST_WIRE].growth_s_byte += 1 / cost->bandwidth_bytes_s;
    for (int stage = 0; stage < COST_STAGES; stage++) {
        cost->stage[stage].fixed_s *= cost->scale;
        cost->stage[stage].growth_s_byte *= cost->scale;
    }
    if (cost->exact) {
        fingerprint_add(cost->exact, TERM_SCALE, 1, cost->scale);
        cost->exact->bounded = cost->bandwidth_bytes_s > 0 && isfinite(cost->bandwidth_bytes_s);
    }
}

struct cost_line cost_sum_line(const struct cost *cost)
{
    struct cost_line sum = {0, 0};
    for (int stage = 0; stage < COST_STAGES; stage++) {
        sum.fixed_s += cost->stage[stage].fixed_s;
        sum.growth_s_byte += cost->stage[stage].growth_s_byte;
    }
    return sum;
}

/* The line times its own bandwidth and `other`'s, which both are above 0 and so keep its sign:
 * scale * fixed * B * other and scale * (growth * B + 1) * other, B being 1 where there is none. */
static void exact_clear_denominators(const struct cost_exact *cost, const struct cost_exact *other,
                                     struct exact *offset, struct exact *slope)
{
    struct exact scale;
    exact_set(&scale, cost->scale);
    *offset = cost->fixed;
    *slope = cost->growth;
    if (cost->bounded) {
        exact_multiply_by(offset, &cost->bandwidth);
        exact_multiply_by(slope, &cost->bandwidth);
        exact_add_double(slope, 1);
    }
    if (other->bounded) {
        exact_multiply_by(offset, &other->bandwidth);
        exact_multiply_by(slope, &other->bandwidth);
    }
    exact_multiply_by(offset, &scale);
    exact_multiply_by(slope, &scale);
}

void cost_exact_difference(const struct cost_exact *a, const struct cost_exact *b,
                           struct exact *offset, struct exact *slope)
{
    struct exact b_offset, b_slope;
    exact_clear_denominators(a, b, offset, slope);
    exact_clear_denominators(b, a, &b_offset, &b_slope);
    exact_negate(&b_offset);
    exact_negate(&b_slope);
    exact_add(offset, &b_offset);
    exact_add(slope, &b_slope);
}
