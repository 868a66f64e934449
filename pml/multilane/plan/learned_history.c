/* SPDX-License-Identifier: BSD-3-Clause */
/* What a class has learned goes to later jobs on the node, and comes from earlier ones. */
#include "plan/learning.h"

#include <stdio.h>
#include <string.h>

#include "base/multilane.h"
#include "base/parameters.h"
#include "plan/used_history.h"

/* "cache/shm:shm+tcp:eth0"; false: that is too long, or no word. */
static bool class_name(const struct peer_class *class, char name[HISTORY_CLASS_CHARS])
{
    int length =
        snprintf(name, HISTORY_CLASS_CHARS, "%s", profile_placement_name(class->placement));
    for (int i = 0; i < class->lane_count && length < HISTORY_CLASS_CHARS; i++)
        length += snprintf(name + length, HISTORY_CLASS_CHARS - (size_t) length, "%c%s",
                           i ? '+' : '/', class->lanes[i].name);
    return length < HISTORY_CLASS_CHARS && !strpbrk(name, " \t\n");
}

static struct plan_entry entry_of_key(struct learned_key key)
{
    struct plan_entry entry = {.protocol_index = key.protocol_index,
                               .protocol = model_protocols[key.protocol_index],
                               .copies = key.copies};
    for (uint8_t i = 0; i < MODEL_LANES_MAX; i++)
        if (key.lanes >> i & 1)
            entry.lanes[entry.lane_count++] = i;
    return entry;
}

/* What is known of the way, by the equation's time; 0: nothing. */
static double recalled(const struct history *history, const struct peer_class *class,
                       const char *name, enum class_buffer buffer, struct learned_key key,
                       uint32_t bucket)
{
    for (uint32_t i = 0; i < history->way_count; i++) {
        const struct history_way *way = &history->ways[i];
        if (way->bucket != bucket || way->buffer != (uint32_t) buffer ||
            !learned_key_equals(way->key, key) || strcmp(way->class, name) != 0)
            continue;
        const struct plan_entry entry = entry_of_key(key);
        double expected_s = learning_equation_s(class, buffer, &entry, UINT64_C(1) << bucket);
        return expected_s > 0 ? way->seconds / expected_s : 0;
    }
    return 0;
}

/* As the median of few messages, beside the way that the plan takes, where that is known as well.
 */
static void way_recall(const struct history *history, struct peer_class *class, const char *name,
                       const struct history_way *way)
{
    enum class_buffer buffer = (enum class_buffer) way->buffer;
    struct learned_key in_use = plan_key_at(class_planned(class, buffer)->plan, way->bucket);
    double used = recalled(history, class, name, buffer, in_use, way->bucket);
    double ratio = recalled(history, class, name, buffer, way->key, way->bucket);
    if (!(used > 0) || !(ratio > 0))
        return;
    OPAL_THREAD_LOCK(&learning_lock);
    struct learning *learning = learning_made(class, buffer);
    struct learning_way *mine = learning ? learning_way_made(learning, way->key) : NULL;
    if (mine) {
        struct learning_range *range = &mine->at[way->bucket];
        learning_range_set(range, learned_key_equals(way->key, in_use) ? ratio : ratio / used);
        range->bytes = UINT64_C(1) << way->bucket;
        range->recalled = LEARNING_LEAST;
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
}

static bool way_fits(const struct peer_class *class, const struct history_way *way)
{
    return way->buffer < CLASS_BUFFERS && class_planned(class, (enum class_buffer) way->buffer) &&
           way->key.lanes >> class_lanes_described(class) == 0;
}

/* What messages of the class took, as a later job or class may know it. */
static void ways_gather(const struct peer_class *class, const char *name, enum class_buffer buffer,
                        struct history *to)
{
    const struct learning *learning = learning_now(class, buffer);
    for (uint32_t i = 0; learning && i < learning->way_count; i++)
        for (uint32_t j = 0; j < LEARNED_BUCKETS; j++) {
            struct learned_key key = learning->ways[i]->key;
            const struct plan_entry entry = entry_of_key(key);
            struct history_way way = {.buffer = buffer, .key = key, .bucket = j};
            snprintf(way.class, sizeof(way.class), "%s", name);
            way.messages = learning->ways[i]->at[j].taken;
            way.seconds = learning_factor(class, buffer, key, j) *
                          learning_equation_s(class, buffer, &entry, UINT64_C(1) << j);
            if (way.seconds > 0)
                history_add_way(to, &way);
        }
}

static void class_gather(const struct peer_class *class, const char *name, struct history *to)
{
    OPAL_THREAD_LOCK(&learning_lock);
    for (int i = 0; i < CLASS_BUFFERS; i++)
        ways_gather(class, name, (enum class_buffer) i, to);
    OPAL_THREAD_UNLOCK(&learning_lock);
}

/* Of earlier jobs, and then of this one by the same lanes. */
static void known_gather(const char *name, const struct peer_class *before, struct history *to)
{
    const struct history *history = used_history();
    char own[HISTORY_CLASS_CHARS];
    for (uint32_t i = 0; i < history->way_count; i++)
        if (strcmp(history->ways[i].class, name) == 0)
            history_add_way(to, &history->ways[i]);
    if (before && class_name(before, own) && strcmp(own, name) == 0)
        class_gather(before, name, to);
}

void learning_recall(struct peer_class *class, const struct peer_class *before)
{
    struct history known = {0};
    char name[HISTORY_CLASS_CHARS];
    if (class->is_recalled)
        return;
    class->is_recalled = true;
    if (!parameters.learn || class->is_forced || !class_name(class, name))
        return;
    known_gather(name, before, &known);
    for (uint32_t i = 0; i < known.way_count; i++)
        if (way_fits(class, &known.ways[i]))
            way_recall(&known, class, name, &known.ways[i]);
    history_free(&known);
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        struct learning *learning = learning_now(class, (enum class_buffer) i);
        if (learning)
            learning_plan_as_known(class, (enum class_buffer) i, learning, 1);
    }
}

/* The oldest first: what its successors know of the same lanes is newer. */
static void classes_gather(const struct peer_class *class, struct history *to)
{
    char name[HISTORY_CLASS_CHARS];
    if (!class)
        return;
    classes_gather(class->next, to);
    if (!class->is_forced && class_name(class, name))
        class_gather(class, name, to);
}

void learning_save(void)
{
    if (parameters.learn && multilane.me.vpid == 0)
        classes_gather(classes_first(), used_history_added());
}
