/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers without rounding, in 32-bit words. */
#include "tools/model/exact.h"

#include <math.h>
#include <string.h>

#define WORD_BITS 32

static void exact_set_zero(struct exact *number)
{
    number->sign = 0;
    number->low = 0;
    number->count = 0;
}

/* Drops zero words at both ends, so that equal numbers look equal and stay short. */
static void exact_trim(struct exact *number)
{
    int zeros = 0;
    while (number->count && number->word[number->count - 1] == 0)
        number->count--;
    while (zeros < number->count && number->word[zeros] == 0)
        zeros++;
    if (number->count == zeros) {
        exact_set_zero(number);
        return;
    }
    if (zeros) {
        number->count -= zeros;
        number->low += zeros;
        memmove(number->word, number->word + zeros,
                (size_t) number->count * sizeof number->word[0]);
    }
}

/* sign * mantissa * 2^exponent */
static void exact_set_scaled(struct exact *number, int sign, uint64_t mantissa, int exponent)
{
    /* floor division, so that the shift within a word is 0 to 31 */
    int low = exponent >= 0 ? exponent / WORD_BITS : -((WORD_BITS - 1 - exponent) / WORD_BITS);
    int shift = exponent - low * WORD_BITS;
    uint64_t bottom = mantissa << shift;
    uint64_t top = shift ? mantissa >> (64 - shift) : 0;
    number->sign = sign;
    number->low = low;
    number->count = 3;
    number->word[0] = (uint32_t) bottom;
    number->word[1] = (uint32_t) (bottom >> WORD_BITS);
    number->word[2] = (uint32_t) top;
    exact_trim(number);
}

void exact_set(struct exact *number, double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    exact_set_scaled(number, value < 0 ? -1 : 1, (uint64_t) ldexp(fraction, 53), exponent - 53);
}

static void exact_set_integer(struct exact *number, uint64_t value)
{
    exact_set_scaled(number, 1, value, 0);
}

void exact_negate(struct exact *number)
{
    number->sign = -number->sign;
}

/* The word with weight 2^(32 * place). */
static uint32_t exact_word(const struct exact *number, int place)
{
    int i = place - number->low;
    return i >= 0 && i < number->count ? number->word[i] : 0;
}

static int exact_top(const struct exact *number)
{
    return number->low + number->count;
}

/* The sign of |a| - |b|. */
static int exact_compare_magnitude(const struct exact *a, const struct exact *b)
{
    int low = a->low < b->low ? a->low : b->low;
    int top = exact_top(a) > exact_top(b) ? exact_top(a) : exact_top(b);
    for (int place = top - 1; place >= low; place--) {
        uint32_t in_a = exact_word(a, place), in_b = exact_word(b, place);
        if (in_a != in_b)
            return in_a < in_b ? -1 : 1;
    }
    return 0;
}

/* |large| + |small|, or |large| - |small| with `subtract`, which must not be negative. */
static void exact_combine(struct exact *out, const struct exact *large, const struct exact *small,
                          int subtract)
{
    int low = large->low < small->low ? large->low : small->low;
    int top = exact_top(large) > exact_top(small) ? exact_top(large) : exact_top(small);
    uint64_t carry = 0; /* what is carried, or borrowed */
    out->low = low;
    out->count = 0;
    for (int place = low; place <= top; place++) {
        uint64_t a = exact_word(large, place), b = exact_word(small, place) + carry;
        uint64_t digit = subtract ? a - b : a + b;
        carry = digit >> WORD_BITS & 1;
        out->word[out->count++] = (uint32_t) digit;
    }
    exact_trim(out);
}

void exact_add(struct exact *sum, const struct exact *term)
{
    struct exact out;
    if (!term->sign)
        return;
    if (!sum->sign) {
        *sum = *term;
        return;
    }
    int order = sum->sign == term->sign ? 1 : exact_compare_magnitude(sum, term);
    const struct exact *large = order >= 0 ? sum : term;
    out.sign = large->sign;
    exact_combine(&out, large, order >= 0 ? term : sum, sum->sign != term->sign);
    sum->sign = out.count ? out.sign : 0;
    sum->low = out.low;
    sum->count = out.count;
    memcpy(sum->word, out.word, (size_t) out.count * sizeof out.word[0]);
}

void exact_add_double(struct exact *sum, double term)
{
    struct exact number;
    exact_set(&number, term);
    exact_add(sum, &number);
}

void exact_multiply(struct exact *out, const struct exact *a, const struct exact *b)
{
    if (!a->sign || !b->sign) {
        exact_set_zero(out);
        return;
    }
    out->sign = a->sign * b->sign;
    out->low = a->low + b->low;
    out->count = a->count + b->count;
    memset(out->word, 0, (size_t) out->count * sizeof out->word[0]);
    for (int i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->count; j++) {
            uint64_t digit = (uint64_t) a->word[i] * b->word[j] + out->word[i + j] + carry;
            out->word[i + j] = (uint32_t) digit;
            carry = digit >> WORD_BITS;
        }
        out->word[i + b->count] = (uint32_t) carry;
    }
    exact_trim(out);
}

void exact_multiply_by(struct exact *number, const struct exact *factor)
{
    struct exact out;
    exact_multiply(&out, number, factor);
    number->sign = out.sign;
    number->low = out.low;
    number->count = out.count;
    memcpy(number->word, out.word, (size_t) out.count * sizeof out.word[0]);
}

int exact_sign_at(const struct exact *offset, const struct exact *slope, uint64_t size)
{
    struct exact at, value;
    exact_set_integer(&at, size);
    exact_multiply(&value, slope, &at);
    exact_add(&value, offset);
    return value.sign;
}
