/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers without rounding: sums and products of doubles, as long as they need to be.
 *
 * A threshold must be right to the byte for the doubles that were read, also where the two sides of
 * the equation all but cancel. Expansions of doubles would do it as long as no product of their
 * small ends underflows and the compiler neither contracts nor reorders; whole numbers have neither
 * condition, so the digits here are 32-bit words and the result cannot depend on compiler or flags.
 */
#ifndef TOOLS_MODEL_EXACT_H
#define TOOLS_MODEL_EXACT_H

#include <stdint.h>

/* A sum of doubles has at most 67 words, between 2^-1074 and well above 2^1024. The longest product
 * here has four such factors and a size. */
#define EXACT_WORDS 288

/* sign * (word[0] + word[1] * 2^32 + ...) * 2^(32 * low) */
struct exact {
    int sign; /* -1, 0, 1 */
    int low;
    int count; /* words used; the first and the last of them are not 0 */
    uint32_t word[EXACT_WORDS];
};

void exact_set(struct exact *number, double value); /* value is finite */
void exact_negate(struct exact *number);
void exact_add(struct exact *sum, const struct exact *term);
void exact_add_double(struct exact *sum, double term);

/* out may not be one of the factors */
void exact_multiply(struct exact *out, const struct exact *a, const struct exact *b);
void exact_multiply_by(struct exact *number, const struct exact *factor);

/* The sign of offset + size * slope. */
int exact_sign_at(const struct exact *offset, const struct exact *slope, uint64_t size);

#endif
