/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages have taken, as an input of a plan: for each way of sending and each range of sizes
 * the factor between that and what the equation expects. A way that was not tried gets the factor
 * of the one in use, so that only what both have shown moves a border. */
#ifndef COMMON_MODEL_LEARNED_H
#define COMMON_MODEL_LEARNED_H

#include <stdbool.h>
#include <stdint.h>

/* Ranges of sizes: bucket k ends at 2^k bytes, the last one never. */
#define LEARNED_BUCKETS  36
#define LEARNED_WAYS_MAX 24

/* A protocol over some lanes. */
struct learned_key {
    uint32_t lanes; /* bit i: lane i of the plan's input */
    uint8_t protocol_index;
    bool copies; /* as in plan_entry */
};

struct learned_way {
    struct learned_key key;
    float factor[LEARNED_BUCKETS]; /* 0: too few messages went this way */
};

/* A way in use, for messages up to that size. */
struct learned_use {
    uint64_t largest_bytes;
    struct learned_key key;
};

#define LEARNED_USES_MAX 64

struct model_learned {
    uint32_t way_count;
    struct learned_way ways[LEARNED_WAYS_MAX];
    struct learned_key used[LEARNED_BUCKETS]; /* the ways in use; `lanes` 0: none */
    /* The same by size, as more than one may be in use in a bucket; of larger ones: `used`. */
    uint32_t use_count;
    struct learned_use uses[LEARNED_USES_MAX];
    float
        common[LEARNED_BUCKETS]; /* for what was not tried; 0: no message of about that size yet */
};

struct learned_key learned_key_of(uint32_t protocol_index, bool copies, const uint8_t *lanes,
                                  uint32_t lane_count);
bool learned_key_equals(struct learned_key a, struct learned_key b);

uint32_t learned_bucket(uint64_t bytes);
/* Its last size. */
uint64_t learned_bucket_end(uint32_t bucket);

/* Sets `common` from the factors of the ways in use; a bucket without takes its neighbour's, and
 * other ways' factors there do not count. */
void learned_settle(struct model_learned *learned);

/* Has it shown in this bucket what it takes? */
bool learned_is_known(const struct model_learned *learned, struct learned_key key, uint32_t bucket);

/* The way in use at that size, and up to which size in its bucket. */
struct learned_key learned_used_at(const struct model_learned *learned, uint64_t bytes,
                                   uint64_t *last_bytes);

/* What the equation's time for this way is multiplied by. */
double learned_factor(const struct model_learned *learned, struct learned_key key, uint32_t bucket);

#endif
