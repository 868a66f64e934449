/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of bytes against a map of every byte. */
#include "check.h"

#include <string.h>

#include "base/spans.h"

#define BYTES 400

static void every_byte_counts_once(uint64_t seed)
{
    unsigned char map[BYTES] = {0};
    struct spans spans = {0};
    uint64_t chance = seed;
    size_t longest = 1 + chance_below(&chance, 40), sum = 0, total = 0;
    for (int i = 0; i < 200; i++) {
        size_t from = chance_below(&chance, BYTES);
        size_t end = from + 1 + chance_below(&chance, longest), fresh, wanted = 0;
        end = end < BYTES ? end : BYTES;
        for (size_t at = from; at < end; at++) {
            wanted += !map[at];
            map[at] = 1;
        }
        CHECK(spans_add(&spans, from, end, &fresh), "[%zu, %zu)", from, end);
        CHECK(fresh == wanted, "[%zu, %zu): %zu bytes are new, not %zu", from, end, wanted, fresh);
        sum += fresh;
    }
    const struct span *items = spans.room ? spans.items : spans.own;
    for (uint32_t i = 0; i < spans.count; i++) {
        CHECK(items[i].from < items[i].end, "span %u is empty", i);
        CHECK(i == 0 || items[i - 1].end < items[i].from, "spans %u and %u touch", i - 1, i);
        for (size_t at = items[i].from; at < items[i].end; at++)
            CHECK(map[at], "byte %zu", at);
        total += items[i].end - items[i].from;
    }
    CHECK(total == sum, "%zu bytes in spans, %zu counted", total, sum);
    spans_clear(&spans);
    CHECK(spans.count == 0, "cleared");
}

static void the_largest_offsets_are_right(void)
{
    struct spans spans = {0};
    size_t fresh;
    CHECK(spans_add(&spans, SIZE_MAX - 10, SIZE_MAX, &fresh) && fresh == 10, "%zu", fresh);
    CHECK(spans_add(&spans, 0, SIZE_MAX, &fresh) && fresh == SIZE_MAX - 10, "%zu", fresh);
    CHECK(spans_add(&spans, 5, SIZE_MAX, &fresh) && fresh == 0, "%zu", fresh);
    CHECK(spans.count == 1, "%u spans", spans.count);
    spans_clear(&spans);
}

static void gaps_are_bounded(void)
{
    struct spans spans = {0};
    size_t fresh, at = 0;
    while (at < 10 * SPANS_MAX && spans_add(&spans, 2 * at, 2 * at + 1, &fresh))
        at++;
    CHECK(at == SPANS_MAX, "%zu spans were taken", at);
    CHECK(spans_add(&spans, 1, 2, &fresh) && fresh == 1 && spans.count == SPANS_MAX - 1,
          "one that fills a gap is still taken");
    CHECK(spans_add(&spans, 0, 2 * at, &fresh) && spans.count == 1, "the whole");
    spans_clear(&spans);
}

int main(void)
{
    unsigned seeds = check_is_long() ? 500000 : 5000;
    for (unsigned seed = 1; seed <= seeds; seed++)
        every_byte_counts_once(seed * UINT64_C(0x9e3779b97f4a7c15));
    the_largest_offsets_are_right();
    gaps_are_bounded();
    return check_end();
}
