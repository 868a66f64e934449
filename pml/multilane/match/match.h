/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues with a search by source and tag in constant time: posted receives, unexpected messages. */
#ifndef MULTILANE_MATCH_H
#define MULTILANE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Any source or any tag. No message carries it: Open MPI's own tags are -1 for "any" and below
 * -1 for itself. */
#define MATCH_ANY (-1)

/* One entry: a receive under its source and tag, or a message under one of the pairs that match
 * it. Entries of one key form a chain in order of insertion; a bucket lists the heads of its
 * chains. So the length of one chain does not slow a search for another key. */
struct match_node {
    struct match_node *next;      /* of the same key, null at the end */
    struct match_node *previous;  /* of the same key; of a head: the last of its chain */
    struct match_node *next_head; /* of a head: the head of the next chain in the bucket */
    uint64_t stamp;               /* order among entries of different keys */
    int32_t source;
    int32_t tag;
};

#define MATCH_INITIAL_SHIFT   61
#define MATCH_INITIAL_BUCKETS (1u << (64 - MATCH_INITIAL_SHIFT))

struct match_table {
    struct match_node **buckets; /* heads of chains */
    uint32_t mask;               /* number of buckets less one, a power of two less one */
    uint32_t shift;              /* 64 less the logarithm of that number */
    uint32_t count;              /* entries, */
    uint32_t wildcards;          /* and those of them whose key has a wildcard */
    struct match_node *initial[MATCH_INITIAL_BUCKETS];
};

/* The four kinds of key: bit 0 any tag, bit 1 any source. */
static inline unsigned match_kind(int32_t source, int32_t tag)
{
    return (unsigned) (source == MATCH_ANY) << 1 | (unsigned) (tag == MATCH_ANY);
}

/* Both as one number, for comparison and hash. */
static inline uint64_t match_key(int32_t source, int32_t tag)
{
    return (uint64_t) (uint32_t) tag << 32 | (uint32_t) source;
}

static inline uint64_t match_key_of(const struct match_node *node)
{
    return match_key(node->source, node->tag);
}

void match_table_init(struct match_table *table);
void match_table_fini(struct match_table *table);

/* Doubles the number of buckets. Without memory the table stays as it is, and slower. */
void match_table_grow(struct match_table *table);

/* Multiplicative hash: the upper bits of the product depend on all bits of the key. */
static inline struct match_node **match_bucket(struct match_table *table, uint64_t key)
{
    return &table->buckets[key * UINT64_C(0x9e3779b97f4a7c15) >> table->shift];
}

/* The link to the head of this key's chain; it is null where the chain is empty. */
static inline struct match_node **match_head(struct match_table *table, uint64_t key)
{
    struct match_node **at = match_bucket(table, key);
    while (*at && match_key_of(*at) != key)
        at = &(*at)->next_head;
    return at;
}

static inline bool match_is_wildcard(const struct match_node *node)
{
    return node->source == MATCH_ANY || node->tag == MATCH_ANY;
}

/* Should the table grow before the next entry? */
static inline bool match_is_full(const struct match_table *table)
{
    return table->count > table->mask * 2;
}

/* Appends an entry to its chain; the table is not full. The caller has set source, tag and
 * stamp. */
static inline void match_insert(struct match_table *table, struct match_node *node)
{
    struct match_node **at = match_head(table, match_key_of(node));
    struct match_node *head = *at;
    node->next = 0;
    if (head) {
        node->previous = head->previous;
        head->previous->next = node;
        head->previous = node;
    } else {
        node->previous = node;
        node->next_head = 0;
        *at = node;
    }
    table->count++;
    table->wildcards += match_is_wildcard(node);
}

/* The same for any table. */
static inline void match_add(struct match_table *table, struct match_node *node)
{
    if (__builtin_expect(match_is_full(table), 0))
        match_table_grow(table);
    match_insert(table, node);
}

/* Removes the oldest entry, without a wildcard, of the chain at `at`. */
static inline struct match_node *match_take_exact(struct match_table *table, struct match_node **at)
{
    struct match_node *head = *at, *next = head->next;
    if (next) {
        next->previous = head->previous;
        next->next_head = head->next_head;
        *at = next;
    } else {
        *at = head->next_head;
    }
    table->count--;
    return head;
}

static inline struct match_node *match_take_head(struct match_table *table, struct match_node **at)
{
    struct match_node *head = match_take_exact(table, at);
    table->wildcards -= match_is_wildcard(head);
    return head;
}

static inline void match_remove(struct match_table *table, struct match_node *node)
{
    struct match_node *next = node->next;
    if (!node->previous->next) { /* a head: its `previous` is the last of the chain */
        match_take_head(table, match_head(table, match_key_of(node)));
        return;
    }
    node->previous->next = next;
    if (next)
        next->previous = node->previous;
    else
        (*match_head(table, match_key_of(node)))->previous = node->previous;
    table->count--;
    table->wildcards -= match_is_wildcard(node);
}

/* The oldest entry of exactly this key, or null. */
static inline struct match_node *match_first(struct match_table *table, int32_t source, int32_t tag)
{
    return *match_head(table, match_key(source, tag));
}

/* The oldest posted receive that matches `source` and `tag`, or null. */
struct match_node *match_oldest_wildcard(struct match_table *posted, int32_t source, int32_t tag,
                                         struct match_node *oldest);

/* Removes and returns the receive that matches a message; null: none waits. */
static inline __attribute__((always_inline)) struct match_node *
match_take_posted(struct match_table *posted, int32_t source, int32_t tag)
{
    struct match_node **exact = match_head(posted, match_key(source, tag));
    if (__builtin_expect(posted->wildcards == 0, 1))
        return *exact ? match_take_exact(posted, exact) : 0;
    struct match_node *oldest = match_oldest_wildcard(posted, source, tag, *exact);
    if (oldest)
        match_remove(posted, oldest);
    return oldest;
}

/* The keys that match a message. A wildcard tag matches only the user's tags, which are not
 * negative; so Open MPI's own messages have half as many. */
static inline unsigned match_key_step(int32_t tag)
{
    return tag < 0 ? 2 : 1;
}

#endif
