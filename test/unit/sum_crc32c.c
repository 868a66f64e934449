/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C: the vectors of RFC 3720, and all ways equal at each length and place, in one go and in
 * two; a wrong bit is found wherever it is. */
#include "check.h"

#include <string.h>

#include "common/sum/crc32c.c" /* for the ways that this processor does not need */

#define BYTES 20000u

static unsigned char bytes[BYTES + 8];

struct way {
    const char *name;
    uint32_t (*sum)(uint32_t crc, const void *bytes, size_t length);
};

static struct way ways[4] = {{"by table", crc32c_by_table}};
static unsigned way_count = 1;

static uint32_t copy_as_chosen(uint32_t crc, void *to, const void *from, size_t length)
{
    return crc32c_copy(crc, to, from, length);
}

static void ways_find(void)
{
    ways[way_count++] = (struct way){"as chosen", crc32c};
#ifdef BY_INSTRUCTION
    if (has_instruction())
        ways[way_count++] = (struct way){"by instruction", by_instruction};
#endif
}

static void vector(const char *name, uint32_t expected, size_t length)
{
    for (unsigned i = 0; i < way_count; i++)
        CHECK(ways[i].sum(0, bytes, length) == expected, "%s %s", name, ways[i].name);
}

static void vectors(void)
{
    memcpy(bytes, "123456789", 9);
    vector("digits", 0xe3069283, 9);
    memset(bytes, 0, 32);
    vector("zeros", 0x8a9136aa, 32);
    memset(bytes, 0xff, 32);
    vector("ones", 0x62a8ab43, 32);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char) i;
    vector("rising", 0x46dd794e, 32);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char) (31 - i);
    vector("falling", 0x113fdb5c, 32);
    vector("nothing", 0, 0);
}

static void ways_agree(void)
{
    uint64_t random = 1;
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        bytes[i] = (unsigned char) (random >> 56);
    }
    for (size_t length = 0; length <= BYTES; length += length < 200 ? 1 : 251) {
        const unsigned char *at = bytes + length % 8;
        uint32_t sum = crc32c_by_table(0, at, length);
        size_t first = length * 2 / 3;
        for (unsigned i = 1; i < way_count; i++) {
            CHECK(ways[i].sum(0, at, length) == sum, "%zu bytes %s", length, ways[i].name);
            CHECK(ways[i].sum(ways[i].sum(0, at, first), at + first, length - first) == sum,
                  "%zu in two parts %s", length, ways[i].name);
        }
    }
}

static const struct {
    const char *name;
    uint32_t (*sum)(uint32_t crc, void *to, const void *from, size_t length);
} copies[] = {{"in pieces", copy_in_pieces}, {"as chosen", copy_as_chosen}};

/* Each length and place; what is copied is what is summed, and nothing beside it is written. */
static void copies_agree(void)
{
    static unsigned char to[BYTES + 16];
    for (size_t length = 0; length <= BYTES; length += length < 1200 ? 1 : 251) {
        const unsigned char *at = bytes + length % 8;
        unsigned char *place = to + 1 + length % 7;
        uint32_t sum = crc32c_by_table(7, at, length);
        for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
            memset(to, 0x5a, sizeof(to));
            CHECK(copies[i].sum(7, place, at, length) == sum, "%zu bytes %s", length,
                  copies[i].name);
            CHECK(memcmp(place, at, length) == 0 && place[-1] == 0x5a && place[length] == 0x5a,
                  "%zu bytes %s: the copy", length, copies[i].name);
        }
    }
}

static void wrong_bits_are_found(void)
{
    uint32_t right = crc32c(0, bytes, BYTES);
    for (size_t bit = 0; bit < BYTES * 8; bit += 97) {
        bytes[bit / 8] ^= (unsigned char) (1u << bit % 8);
        CHECK(crc32c(0, bytes, BYTES) != right, "bit %zu", bit);
        bytes[bit / 8] ^= (unsigned char) (1u << bit % 8);
    }
}

int main(void)
{
    crc32c_begin();
    ways_find();
    vectors();
    ways_agree();
    copies_agree();
    wrong_bits_are_found();
    return check_end();
}
