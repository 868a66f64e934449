/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers without rounding, as one long integer each. */
#include "tools/model/exact.h"

#include <math.h>
#include <string.h>

#define WORD_BITS 32

/* Words behind the point for each factor: no bit of a double is below 2^-1126. */
#define POINT_WORDS 36

void exact_set(struct exact *number, double value)
{
    int exponent;
    uint64_t mantissa = (uint64_t) ldexp(frexp(fabs(value), &exponent), 53);
    int lowest = WORD_BITS * POINT_WORDS + exponent - 53;
    *number = (struct exact){.factors = 1};
    for (int i = 0; i < 53; i++)
        number->word[(lowest + i) / WORD_BITS] |= (uint32_t) (mantissa >> i & 1)
                                                  << (lowest + i) % WORD_BITS;
    if (value < 0)
        exact_negate(number);
}

int exact_sign(const struct exact *number)
{
    if (number->word[EXACT_WORDS - 1] >> (WORD_BITS - 1))
        return -1;
    for (int i = 0; i < EXACT_WORDS; i++)
        if (number->word[i])
            return 1;
    return 0;
}

void exact_negate(struct exact *number)
{
    uint64_t carry = 1;
    for (int i = 0; i < EXACT_WORDS; i++) {
        carry += ~number->word[i];
        number->word[i] = (uint32_t) carry;
        carry >>= WORD_BITS;
    }
}

/* The same number, as one of so many factors. */
static void exact_raise(struct exact *number, int factors)
{
    size_t words = (size_t) (factors - number->factors) * POINT_WORDS;
    memmove(number->word + words, number->word, (EXACT_WORDS - words) * sizeof(number->word[0]));
    memset(number->word, 0, words * sizeof(number->word[0]));
    number->factors = factors;
}

void exact_add(struct exact *sum, const struct exact *term)
{
    struct exact other = *term;
    uint64_t carry = 0;
    if (sum->factors < other.factors)
        exact_raise(sum, other.factors);
    exact_raise(&other, sum->factors);
    for (int i = 0; i < EXACT_WORDS; i++) {
        carry += (uint64_t) sum->word[i] + other.word[i];
        sum->word[i] = (uint32_t) carry;
        carry >>= WORD_BITS;
    }
}

void exact_add_double(struct exact *sum, double term)
{
    struct exact number;
    exact_set(&number, term);
    exact_add(sum, &number);
}

void exact_multiply(struct exact *out, const struct exact *one, const struct exact *other)
{
    struct exact a = *one, b = *other;
    bool is_negative = exact_sign(&a) * exact_sign(&b) < 0;
    if (exact_sign(&a) < 0)
        exact_negate(&a);
    if (exact_sign(&b) < 0)
        exact_negate(&b);
    *out = (struct exact){.factors = a.factors + b.factors};
    for (int i = 0; i < EXACT_WORDS; i++) {
        uint64_t carry = 0;
        for (int j = 0; a.word[i] && i + j < EXACT_WORDS; j++) {
            carry += (uint64_t) a.word[i] * b.word[j] + out->word[i + j];
            out->word[i + j] = (uint32_t) carry;
            carry >>= WORD_BITS;
        }
    }
    if (is_negative)
        exact_negate(out);
}

int exact_sign_at(const struct exact *offset, const struct exact *slope, uint64_t size)
{
    struct exact value = {.word = {(uint32_t) size, (uint32_t) (size >> WORD_BITS)}};
    exact_multiply(&value, &value, slope);
    exact_add(&value, offset);
    return exact_sign(&value);
}
