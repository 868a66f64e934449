/* SPDX-License-Identifier: BSD-3-Clause */
/* The matching tables against lists that are searched from the front, as MPI words its rules, and
 * what a search costs where 10,000 entries wait. */
#include "check.h"

#include <stdlib.h>

#include "match/match.h"

/* --- posted receives ---------------------------------------------------------------------------
 */

#define POSTED_MAX 3000

struct receive {
    struct match_node node;
    bool waits;
};

/* MPI's rule, in the order of posting: a wildcard tag takes only user tags, which are not negative.
 */
static bool receive_takes(const struct match_node *receive, int32_t source, int32_t tag)
{
    return (receive->source == MATCH_ANY || receive->source == source) &&
           (receive->tag == tag || (receive->tag == MATCH_ANY && tag >= 0));
}

static struct match_node *naive_posted(struct receive *receives, unsigned count, int32_t source,
                                       int32_t tag)
{
    for (unsigned i = 0; i < count; i++)
        if (receives[i].waits && receive_takes(&receives[i].node, source, tag))
            return &receives[i].node;
    return NULL;
}

/* Few sources and tags, so that keys meet; the tags of Open MPI itself are below -1. */
static int32_t chance_source(uint64_t *chance, unsigned spread)
{
    return (int32_t) chance_below(chance, spread);
}

static int32_t chance_tag(uint64_t *chance, unsigned spread)
{
    if (chance_below(chance, 8) == 0)
        return -2 - (int32_t) chance_below(chance, 4);
    return (int32_t) chance_below(chance, spread);
}

static int32_t maybe_any(uint64_t *chance, int32_t value, unsigned one_in)
{
    return chance_below(chance, one_in) == 0 ? MATCH_ANY : value;
}

/* How many entries it has. */
static unsigned check_chain(const struct match_node *head)
{
    const struct match_node *node = head;
    unsigned linked = 1;
    for (; node->next; node = node->next, linked++)
        CHECK(node->next->previous == node && node->next->source == head->source &&
                  node->next->tag == head->tag && node->stamp < node->next->stamp,
              "entry %u of %d/%d", linked, head->source, head->tag);
    CHECK(head->previous == node, "%d/%d: the last of %u", head->source, head->tag, linked);
    return linked;
}

static void check_counts(const struct match_table *table, unsigned count)
{
    unsigned linked = 0, wildcards = 0;
    for (uint32_t i = 0; i <= table->mask; i++) {
        for (const struct match_node *head = table->buckets[i]; head; head = head->next_head) {
            unsigned chain = check_chain(head);
            linked += chain;
            wildcards += match_kind(head->source, head->tag) != 0 ? chain : 0;
        }
    }
    CHECK(table->count == count && linked == count, "count %u, linked %u, entries %u", table->count,
          linked, count);
    CHECK(table->wildcards == wildcards, "%u wildcards, not %u", table->wildcards, wildcards);
}

static void posted_receives_match_in_order(uint64_t seed)
{
    static struct receive receives[POSTED_MAX];
    uint64_t chance = seed;
    struct match_table table;
    unsigned count = 0, waiting = 0;
    unsigned spread = 1 + (unsigned) chance_below(&chance, 40);
    unsigned any_one_in = 1 + (unsigned) chance_below(&chance, 6);
    unsigned posts_of_16 = 6 + (unsigned) chance_below(&chance, 8);

    match_table_init(&table);
    while (count < POSTED_MAX) {
        unsigned what = (unsigned) chance_below(&chance, 16);
        if (what < posts_of_16) {
            struct receive *receive = &receives[count];
            receive->waits = true;
            receive->node.stamp = count++;
            receive->node.source =
                maybe_any(&chance, chance_source(&chance, spread), any_one_in + 1);
            receive->node.tag = maybe_any(&chance, chance_tag(&chance, spread), any_one_in + 1);
            match_add(&table, &receive->node);
            waiting++;
        } else if (what < 15) {
            int32_t source = chance_source(&chance, spread), tag = chance_tag(&chance, spread);
            struct match_node *naive = naive_posted(receives, count, source, tag);
            struct match_node *found = match_take_posted(&table, source, tag);
            CHECK(found == naive, "seed %llu: message %d/%d takes receive %lld, not %lld",
                  (unsigned long long) seed, source, tag, found ? (long long) found->stamp : -1,
                  naive ? (long long) naive->stamp : -1);
            if (!naive)
                continue;
            ((struct receive *) naive)->waits = false;
            waiting--;
        } else if (waiting) { /* cancelled, wherever it stands */
            unsigned i = (unsigned) chance_below(&chance, count);
            while (!receives[i].waits)
                i = (i + 1) % count;
            match_remove(&table, &receives[i].node);
            receives[i].waits = false;
            waiting--;
        }
    }
    check_counts(&table, waiting);
    while (waiting) {
        unsigned i = (unsigned) chance_below(&chance, count);
        while (!receives[i].waits)
            i = (i + 1) % count;
        match_remove(&table, &receives[i].node);
        receives[i].waits = false;
        waiting--;
    }
    check_counts(&table, 0);
    match_table_fini(&table);
}

/* --- unexpected messages ------------------------------------------------------------------------
 */

#define MESSAGES_MAX 2000

struct message {
    struct match_node keys[4];
    int32_t source;
    int32_t tag;
    bool waits;
};

static void message_add(struct match_table *table, struct message *message, uint64_t stamp)
{
    message->waits = true;
    for (unsigned kind = 0; kind < 4; kind += match_key_step(message->tag)) {
        message->keys[kind] = (struct match_node){.stamp = stamp,
                                                  .source = kind & 2 ? MATCH_ANY : message->source,
                                                  .tag = kind & 1 ? MATCH_ANY : message->tag};
        match_add(table, &message->keys[kind]);
    }
}

static void message_remove(struct match_table *table, struct message *message)
{
    for (unsigned kind = 0; kind < 4; kind += match_key_step(message->tag))
        match_remove(table, &message->keys[kind]);
    message->waits = false;
}

static unsigned keys_of(int32_t tag)
{
    return tag < 0 ? 2 : 4;
}

static struct message *message_of_node(struct match_node *node)
{
    return (struct message *) (node - match_kind(node->source, node->tag));
}

static struct message *naive_unexpected(struct message *messages, unsigned count, int32_t source,
                                        int32_t tag)
{
    for (unsigned i = 0; i < count; i++) {
        const struct match_node asked = {.source = source, .tag = tag};
        if (messages[i].waits && receive_takes(&asked, messages[i].source, messages[i].tag))
            return &messages[i];
    }
    return NULL;
}

static void unexpected_messages_are_found_in_order(uint64_t seed)
{
    static struct message messages[MESSAGES_MAX];
    uint64_t chance = seed;
    struct match_table table;
    unsigned count = 0, entries = 0;
    unsigned spread = 1 + (unsigned) chance_below(&chance, 40);
    unsigned adds_of_16 = 5 + (unsigned) chance_below(&chance, 9);

    match_table_init(&table);
    while (count < MESSAGES_MAX) {
        if (chance_below(&chance, 16) < adds_of_16) {
            struct message *message = &messages[count];
            message->source = chance_source(&chance, spread);
            message->tag = chance_tag(&chance, spread);
            message_add(&table, message, count++);
            entries += keys_of(message->tag);
            continue;
        }
        int32_t source = maybe_any(&chance, chance_source(&chance, spread), 4);
        int32_t tag = maybe_any(&chance, chance_tag(&chance, spread), 4);
        struct message *naive = naive_unexpected(messages, count, source, tag);
        struct match_node *node = match_first(&table, source, tag);
        struct message *found = node ? message_of_node(node) : NULL;
        CHECK(found == naive, "seed %llu: a receive of %d/%d takes message %ld, not %ld",
              (unsigned long long) seed, source, tag, found ? (long) (found - messages) : -1,
              naive ? (long) (naive - messages) : -1);
        if (!naive)
            continue;
        entries -= keys_of(naive->tag);
        message_remove(&table, naive);
    }
    check_counts(&table, entries);
    match_table_fini(&table);
}

/* --- what it costs ------------------------------------------------------------------------------
 */

#define MANY 10000

/* How many nodes a search for this key looks at. */
static unsigned visits(struct match_table *table, int32_t source, int32_t tag)
{
    unsigned seen = 0;
    uint64_t key = match_key(source, tag);
    for (struct match_node *node = *match_bucket(table, key); node; node = node->next_head) {
        seen++;
        if (match_key_of(node) == key)
            break;
    }
    return seen;
}

/* Programs' ways to choose sources and tags for 10,000 messages. */
static const struct pattern {
    const char *name;
    uint32_t source_step, source_count; /* 0: the tag moves on */
    uint32_t tag_step, tag_count;
} patterns[] = {
    {"one source, tags from 0", 0, 1, 1, MANY},    {"one tag, sources from 0", 1, MANY, 0, 1},
    {"100 sources, 100 tags", 1, 100, 1, 100},     {"sources and tags together", 1, MANY, 1, MANY},
    {"tags in steps of 64", 0, 1, 64, MANY},       {"tags in steps of 4096", 0, 1, 4096, MANY},
    {"tags in steps of 65536", 0, 1, 65536, MANY}, {"sources in steps of 128", 128, MANY, 0, 1},
    {"tags in steps of 1003", 0, 1, 1003, MANY},
};

static void pattern_key(const struct pattern *pattern, uint32_t i, int32_t *source, int32_t *tag)
{
    *source = (int32_t) (i % pattern->source_count * pattern->source_step);
    uint32_t at =
        pattern->source_count == 1 || pattern->tag_count == MANY ? i : i / pattern->source_count;
    *tag = (int32_t) (at % pattern->tag_count * pattern->tag_step & INT32_MAX);
}

static void posted_search_looks_at_few(const struct pattern *pattern)
{
    static struct match_node nodes[MANY];
    struct match_table table;
    uint64_t sum = 0;
    unsigned most = 0;

    match_table_init(&table);
    for (uint32_t i = 0; i < MANY; i++) {
        pattern_key(pattern, i, &nodes[i].source, &nodes[i].tag);
        nodes[i].stamp = i;
        match_add(&table, &nodes[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        unsigned seen = visits(&table, nodes[i].source, nodes[i].tag);
        sum += seen;
        most = seen > most ? seen : most;
    }
    CHECK(sum <= 4 * MANY && most <= 64, "%s: %llu visits for %d searches, at most %u",
          pattern->name, (unsigned long long) sum, MANY, most);
    match_table_fini(&table);
}

static void unexpected_search_looks_at_few(const struct pattern *pattern)
{
    static struct message messages[MANY];
    struct match_table table;
    uint64_t sum = 0;

    match_table_init(&table);
    for (uint32_t i = 0; i < MANY; i++) {
        pattern_key(pattern, i, &messages[i].source, &messages[i].tag);
        message_add(&table, &messages[i], i);
    }
    for (uint32_t i = 0; i < MANY; i++)
        sum += visits(&table, messages[i].source, messages[i].tag);
    CHECK(sum <= 8 * MANY, "%s: %llu visits for %d searches", pattern->name,
          (unsigned long long) sum, MANY);
    CHECK(visits(&table, MATCH_ANY, MATCH_ANY) <= 64, "%s: any source, any tag: %u visits",
          pattern->name, visits(&table, MATCH_ANY, MATCH_ANY));
    CHECK(visits(&table, MATCH_ANY, messages[MANY / 2].tag) <= 64, "%s: any source: %u visits",
          pattern->name, visits(&table, MATCH_ANY, messages[MANY / 2].tag));
    match_table_fini(&table);
}

/* A queue of one key hides no other key: whatever pair waits behind 10,000 messages of another pair
 * is found at once. */
static void long_queue_of_one_key_hides_no_other(void)
{
    static struct message messages[MANY];
    struct message other;
    struct match_table table;
    unsigned most = 0, worst = 0;

    match_table_init(&table);
    for (uint32_t i = 0; i < MANY; i++) {
        messages[i] = (struct message){.source = 3, .tag = 7};
        message_add(&table, &messages[i], i);
    }
    for (uint32_t i = 0; i < 200000; i++) {
        other = (struct message){.source = 1 + (int32_t) (i % 4), .tag = 10 + (int32_t) (i / 4)};
        message_add(&table, &other, MANY + i);
        unsigned seen = visits(&table, other.source, other.tag);
        if (seen > most)
            most = seen, worst = i;
        message_remove(&table, &other);
    }
    CHECK(most <= 64, "a search for source %u, tag %u looks at %u nodes", 1 + worst % 4,
          10 + worst / 4, most);
    match_table_fini(&table);
}

int main(void)
{
    unsigned seeds = check_is_long() ? 4000 : 150;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        posted_receives_match_in_order(seed * UINT64_C(0x9e3779b97f4a7c15));
        unexpected_messages_are_found_in_order(seed * UINT64_C(0xd1342543de82ef95));
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        posted_search_looks_at_few(&patterns[i]);
        unexpected_search_looks_at_few(&patterns[i]);
    }
    long_queue_of_one_key_hides_no_other();
    return check_end();
}
