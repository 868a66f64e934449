/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers without rounding: sums and products of doubles.
 *
 * A threshold must be right to the byte for the doubles that were read, also where the two sides of
 * the equation all but cancel. Expansions of doubles would do it as long as no product of their
 * small ends underflows and the compiler neither contracts nor reorders; whole numbers have neither
 * condition, so the digits here are 32-bit words and the result cannot depend on compiler or flags.
 */
#ifndef TOOLS_MODEL_EXACT_H
#define TOOLS_MODEL_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* A double has its bits in at most 69 words, of which 36 are behind the point. The longest product
 * here has four such factors and a size. */
#define EXACT_WORDS 288

/* A whole number, the lowest word first, negative ones as their complement; by 2^1152 too large for
 * each factor. All bits zero: 0. */
struct exact {
    int factors;
    uint32_t word[EXACT_WORDS];
};

void exact_set(struct exact *number, double value); /* value is finite */
int exact_sign(const struct exact *number);         /* -1, 0, 1 */
void exact_negate(struct exact *number);
void exact_add(struct exact *sum, const struct exact *term);
void exact_add_double(struct exact *sum, double term);

/* `out` may be one of the factors. */
void exact_multiply(struct exact *out, const struct exact *one, const struct exact *other);

/* The sign of offset + size * slope. */
int exact_sign_at(const struct exact *offset, const struct exact *slope, uint64_t size);

#endif
