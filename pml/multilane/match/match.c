/* SPDX-License-Identifier: BSD-3-Clause */
/* The slower parts of the matching tables. */
#include "match/match.h"

#include <stdlib.h>
#include <string.h>

void match_table_init(struct match_table *table)
{
    memset(table, 0, sizeof(*table));
    table->buckets = table->initial;
    table->mask = MATCH_INITIAL_BUCKETS - 1;
    table->shift = MATCH_INITIAL_SHIFT;
}

void match_table_fini(struct match_table *table)
{
    if (table->buckets != table->initial)
        free(table->buckets);
    table->buckets = table->initial;
}

void match_table_grow(struct match_table *table)
{
    uint32_t old_size = table->mask + 1;
    if (old_size >= 1u << 24)
        return;
    struct match_node **buckets = calloc((size_t) old_size * 2, sizeof(*buckets));
    if (!buckets)
        return;
    struct match_node **old = table->buckets;
    table->mask = old_size * 2 - 1;
    table->shift--;
    table->buckets = buckets;
    /* A chain moves as a whole. */
    for (uint32_t i = 0; i < old_size; i++) {
        for (struct match_node *head = old[i], *next; head; head = next) {
            next = head->next_head;
            struct match_node **at = match_bucket(table, match_key_of(head));
            head->next_head = *at;
            *at = head;
        }
    }
    if (old != table->initial)
        free(old);
}

struct match_node *match_oldest_wildcard(struct match_table *posted, int32_t source, int32_t tag,
                                         struct match_node *oldest)
{
    for (unsigned kind = match_key_step(tag); kind < 4; kind += match_key_step(tag)) {
        struct match_node *node =
            match_first(posted, kind & 2 ? MATCH_ANY : source, kind & 1 ? MATCH_ANY : tag);
        if (node && (!oldest || node->stamp < oldest->stamp))
            oldest = node;
    }
    return oldest;
}
