/* SPDX-License-Identifier: BSD-3-Clause */
/* How a protocol writes down what it costs: term by term, so that the same few lines of code give
 * the rounded times that a plan is walked with and the exact ones that decide close calls. */
#ifndef COMMON_MODEL_COST_TERM_H
#define COMMON_MODEL_COST_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/exact.h"

/* scale * (fixed + bytes * (growth + 1 / bandwidth)), of all stages together */
struct cost_exact {
    uint64_t fingerprint;  /* equal for costs made of equal terms, in whatever order */
    bool only_fingerprint; /* set by the caller: the rest is not wanted */
    bool bounded;          /* there is a bandwidth and it is finite */
    double scale;
    struct exact fixed, growth, bandwidth;
};

/* Empties the cost; what is added is multiplied by `scale` in the end. Only cost->exact is kept:
 * the caller sets it, to null or to where the exact terms go. */
void cost_begin(struct cost *cost, double scale);

/* The same terms for cost->exact. */
void cost_exact_fixed(struct cost_exact *exact, int weight, double seconds);
void cost_exact_growth(struct cost_exact *exact, int weight, double seconds_byte);
void cost_exact_bandwidth(struct cost_exact *exact, double bytes_s);

/* Adds weight * value seconds, or seconds a byte, to one stage. Weights are small whole numbers. */
static inline void cost_add_fixed(struct cost *cost, enum cost_stage stage, int weight,
                                  double seconds)
{
    cost->stage[stage].fixed_s += weight * seconds;
    if (cost->exact)
        cost_exact_fixed(cost->exact, weight, seconds);
}

static inline void cost_add_growth(struct cost *cost, enum cost_stage stage, int weight,
                                   double seconds_byte)
{
    cost->stage[stage].growth_s_byte += weight * seconds_byte;
    if (cost->exact)
        cost_exact_growth(cost->exact, weight, seconds_byte);
}

/* Adds to the bandwidth of the wire. */
static inline void cost_add_bandwidth(struct cost *cost, double bytes_s)
{
    cost->bandwidth_bytes_s += bytes_s;
    if (cost->exact)
        cost_exact_bandwidth(cost->exact, bytes_s);
}

/* The lines do not hold above `last_bytes`. */
static inline void cost_bound(struct cost *cost, uint64_t last_bytes)
{
    if (last_bytes < cost->last_bytes)
        cost->last_bytes = last_bytes;
}

/* Turns the terms into the lines of the stages. */
void cost_end(struct cost *cost);

/* The line of the sum of the stages, rounded. */
struct cost_line cost_sum_line(const struct cost *cost);

/* offset + size * slope has the sign of cost(a) - cost(b) at that size. */
void cost_exact_difference(const struct cost_exact *a, const struct cost_exact *b,
                           struct exact *offset, struct exact *slope);

#endif
