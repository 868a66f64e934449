/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors between measured and expected times. */
#include "common/model/learned.h"

#include <stddef.h>

uint32_t learned_bucket(uint64_t bytes)
{
    uint32_t bucket = bytes > 1 ? 64 - (uint32_t) __builtin_clzll(bytes - 1) : 0;
    return bucket < LEARNED_BUCKETS ? bucket : LEARNED_BUCKETS - 1;
}

uint64_t learned_bucket_end(uint32_t bucket)
{
    return bucket + 1 < LEARNED_BUCKETS ? UINT64_C(1) << bucket : UINT64_MAX;
}

struct learned_key learned_key_of(uint32_t protocol_index, bool copies, const uint8_t *lanes,
                                  uint32_t lane_count)
{
    struct learned_key key = {.protocol_index = (uint8_t) protocol_index, .copies = copies};
    for (uint32_t i = 0; i < lane_count; i++)
        key.lanes |= UINT32_C(1) << lanes[i];
    return key;
}

bool learned_key_equals(struct learned_key a, struct learned_key b)
{
    return a.protocol_index == b.protocol_index && a.lanes == b.lanes && a.copies == b.copies;
}

/* The way's part of what was seen; null: it was not tried at any size. */
static const struct learned_way *way_find(const struct model_learned *learned,
                                          struct learned_key key)
{
    for (uint32_t i = 0; i < learned->way_count; i++)
        if (learned_key_equals(learned->ways[i].key, key))
            return &learned->ways[i];
    return NULL;
}

static float factor_in_use(const struct model_learned *learned, uint32_t bucket)
{
    const struct learned_way *way =
        learned->used[bucket].lanes ? way_find(learned, learned->used[bucket]) : NULL;
    return way ? way->factor[bucket] : 0;
}

void learned_settle(struct model_learned *learned)
{
    for (uint32_t i = 0; i < LEARNED_BUCKETS; i++) {
        learned->common[i] = factor_in_use(learned, i);
        for (uint32_t j = 0; j < learned->way_count && !(learned->common[i] > 0); j++)
            learned->ways[j].factor[i] = 0; /* there is nothing to compare it with */
    }
    for (uint32_t i = 1; i < LEARNED_BUCKETS; i++)
        if (!(learned->common[i] > 0))
            learned->common[i] = learned->common[i - 1];
    for (uint32_t i = LEARNED_BUCKETS - 1; i-- > 0;)
        if (!(learned->common[i] > 0))
            learned->common[i] = learned->common[i + 1];
}

bool learned_is_known(const struct model_learned *learned, struct learned_key key, uint32_t bucket)
{
    const struct learned_way *way = way_find(learned, key);
    return way && way->factor[bucket] > 0;
}

struct learned_key learned_used_at(const struct model_learned *learned, uint64_t bytes,
                                   uint64_t *last_bytes)
{
    uint32_t i = 0, bucket = learned_bucket(bytes);

    *last_bytes = learned_bucket_end(bucket);
    while (i < learned->use_count && bytes > learned->uses[i].largest_bytes)
        i++;
    if (i == learned->use_count)
        return learned->used[bucket];
    if (*last_bytes > learned->uses[i].largest_bytes)
        *last_bytes = learned->uses[i].largest_bytes;
    return learned->uses[i].key;
}

double learned_factor(const struct model_learned *learned, struct learned_key key, uint32_t bucket)
{
    const struct learned_way *way = way_find(learned, key);
    if (way && way->factor[bucket] > 0)
        return (double) way->factor[bucket];
    return learned->common[bucket] > 0 ? (double) learned->common[bucket] : 1;
}
