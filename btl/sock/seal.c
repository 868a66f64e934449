/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4, after the paper of Aumasson and Bernstein, with the 128-bit result. */
#include "btl/sock/seal.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void rounds(struct state *s, int count)
{
    for (int i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v1 = rotated(s->v1, 13) ^ s->v0;
        s->v0 = rotated(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotated(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotated(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotated(s->v1, 17) ^ s->v2;
        s->v2 = rotated(s->v2, 32);
    }
}

static void word_add(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static uint64_t result(const struct state *s)
{
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

struct seal seal_make(const struct seal *key, const void *bytes, size_t length)
{
    uint64_t low = le64toh(key->words[0]), high = le64toh(key->words[1]);
    struct state s = {low ^ UINT64_C(0x736f6d6570736575),
                      high ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
                      low ^ UINT64_C(0x6c7967656e657261), high ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = bytes;
    uint64_t word = 0;
    struct seal made;

    for (; length - (size_t) (at - (const unsigned char *) bytes) >= sizeof(word);
         at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        word_add(&s, le64toh(word));
    }
    word = 0;
    memcpy(&word, at, length - (size_t) (at - (const unsigned char *) bytes));
    word_add(&s, le64toh(word) | (uint64_t) length << 56);
    s.v2 ^= 0xee;
    rounds(&s, 4);
    made.words[0] = htole64(result(&s));
    s.v1 ^= 0xdd;
    rounds(&s, 4);
    made.words[1] = htole64(result(&s));
    return made;
}

bool seals_equal(const struct seal *a, const struct seal *b)
{
    volatile uint64_t difference = (a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]);

    return difference == 0;
}
