/* SPDX-License-Identifier: BSD-3-Clause */
/* From what messages took to factors for the model, and to another plan. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/learning.h"
#include "base/clock.h"
#include "base/parameters.h"
#include "base/multilane.h"
#include "plan/costs.h"

/* The way in use counts as so much of its time: another one must be 5 % shorter. */
#define STAY 0.95
/* Making a plan takes at most this part of the time. */
#define PLANS_PART 0.01
#define MOVES_MOST 256

/* What the model is given of a way that is not in use: so much more as its median may be off. */
static double factor_beside(const struct learning_range *range)
{
    double median = learning_median(range);
    return median > 0 ? median + learning_spread(range) / sqrt((double) learning_kept(range) + 1)
                      : 0;
}

/* The medians as factors for the model, beside the ways that the plan in use takes. With the lock
 * held. */
static void model_set(struct learning *learning, const struct plan *plan)
{
    struct model_learned *model = &learning->model;
    memset(model, 0, sizeof(*model));
    model->way_count = learning->way_count;
    for (uint32_t i = 0; i < learning->way_count; i++)
        model->ways[i].key = learning->ways[i]->key;
    for (uint32_t i = 0; i < plan->entry_count && i < LEARNED_USES_MAX; i++)
        model->uses[model->use_count++] =
            (struct learned_use){plan->largest[i], plan_entry_key(&plan->entries[i])};
    for (uint32_t j = 0; j < LEARNED_BUCKETS; j++) {
        struct learned_key in_use = learning_key_at(learning, plan, j);
        double used = learning_factor_in_use(learning, in_use, j);
        model->used[j] = in_use;
        for (uint32_t i = 0; i < learning->way_count; i++) {
            struct learning_range *range = &learning->ways[i]->at[j];
            bool is_used = learned_key_equals(learning->ways[i]->key, in_use);
            range->planned = (float) learning_median(range);
            model->ways[i].factor[j] = (float) (is_used ? used : used * factor_beside(range));
        }
    }
    learned_settle(model);
    learning->has_news = false;
}

static bool goes_alike(const struct plan *one, const struct plan *other, uint64_t bytes)
{
    return learned_key_equals(plan_entry_key(plan_lookup(one, bytes)),
                              plan_entry_key(plan_lookup(other, bytes)));
}

#define NO_SIZE UINT64_MAX

/* The first size of messages that another plan sends another way; NO_SIZE: none. */
static uint64_t first_change(const struct learning *learning, const struct plan *from,
                             const struct plan *to)
{
    uint64_t size = NO_SIZE;
    OPAL_THREAD_LOCK(&learning_lock);
    for (uint32_t i = 0; i < LEARNED_BUCKETS && size == NO_SIZE; i++) {
        uint64_t other = learning ? learning->other[i] : 0;
        if (!goes_alike(from, to, learning_size(learning, i)))
            size = learning_size(learning, i);
        else if (other && !goes_alike(from, to, other))
            size = other;
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
    return size;
}

/* What messages of the entry take at that size, and how many of its range were timed. */
static void move_show(const struct peer_class *class, enum class_buffer buffer,
                      const struct plan_entry *entry, uint64_t bytes, double *seconds,
                      uint32_t *messages)
{
    struct learned_key key = plan_entry_key(entry);
    uint32_t bucket = learned_bucket(bytes);
    const struct learning_range *range = learning_range_of(class, buffer, key, bucket);
    OPAL_THREAD_LOCK(&learning_lock);
    *messages = range ? range->taken : 0;
    *seconds = learning_factor(class, buffer, key, bucket) *
               learning_equation_s(class, buffer, entry, bytes);
    OPAL_THREAD_UNLOCK(&learning_lock);
}

static void move_add(struct peer_class *class, enum class_buffer buffer, const struct plan *from,
                     const struct plan *to, uint64_t bytes)
{
    struct plan_move *move = calloc(1, sizeof(*move));
    class->move_count++;
    if (!move)
        return;
    move->at_s = 1e-9 * (double) (clock_now_ns() - learning_begun_ns());
    move->buffer = buffer;
    move->bucket = learned_bucket(bytes);
    move->from = plan_lookup(from, bytes);
    move->to = plan_lookup(to, bytes);
    move_show(class, buffer, move->from, bytes, &move->from_s, &move->from_messages);
    move_show(class, buffer, move->to, bytes, &move->to_s, &move->to_messages);
    move->next = class->moves;
    class->moves = move;
}

/* Messages that went by equal ways stay counted. */
static void counts_move(struct planned *from, struct planned *to)
{
    for (uint32_t i = 0; i < from->plan->entry_count; i++)
        for (uint32_t j = 0; j < to->plan->entry_count; j++) {
            struct route *before = &from->routes[i], *after = &to->routes[j];
            if (!learned_key_equals(plan_entry_key(before->entry), plan_entry_key(after->entry)))
                continue;
            counter_add(&after->messages, counter_read(&before->messages));
            counter_add(&after->bytes, counter_read(&before->bytes));
            atomic_store_explicit(&before->messages, 0, memory_order_relaxed);
            atomic_store_explicit(&before->bytes, 0, memory_order_relaxed);
            break;
        }
}

/* The next message of what has changed is timed, for the promise. */
static void learning_rebase(struct peer_class *class, enum class_buffer buffer,
                            struct learning *learning, const struct plan *from,
                            const struct plan *to, bool is_promise)
{
    OPAL_THREAD_LOCK(&learning_lock);
    for (uint32_t i = 0; i < LEARNED_BUCKETS; i++) {
        struct learned_key before = learning_key_at(learning, from, i),
                           after = learning_key_at(learning, to, i);
        if (learned_key_equals(before, after))
            continue;
        learning_bucket_rebase(learning, i, before, after, is_promise);
        atomic_store_explicit(&class->tally[buffer][i].timed_at, 0, memory_order_relaxed);
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
}

/* `timed`: of the kind of buffer whose messages are timed for such ones. `stay`: as in the plan's
 * input; 1: the plan was never used, and its change is no move, nor a promise: a job's first
 * messages go to new memory. False: the plan is the same. */
static bool plan_again(struct peer_class *class, enum class_buffer buffer,
                       const struct learning *timed, double stay)
{
    struct planned *before = class_planned(class, buffer);
    struct planned *after = before ? class_plan(class, buffer, stay) : NULL;
    struct learning *learning = learning_now(class, buffer);
    uint64_t change = after ? first_change(timed, before->plan, after->plan) : NO_SIZE;
    if (change == NO_SIZE) {
        planned_free(after);
        return false;
    }
    if (stay < 1)
        move_add(class, buffer, before->plan, after->plan, change);
    if (learning)
        learning_rebase(class, buffer, learning, before->plan, after->plan, stay < 1);
    counts_move(before, after);
    after->before = before;
    class_set_plan(class, buffer, after);
    return true;
}

/* Other kinds of messages that follow the same times. */
static void followers_plan(struct peer_class *class, enum class_buffer buffer,
                           const struct learning *timed)
{
    if (buffer == CLASS_CONTIGUOUS) {
        (void) plan_again(class, CLASS_SYNC, timed, 1);
        (void) plan_again(class, CLASS_LEAVING, timed, 1);
    } else if (buffer == CLASS_PACKED) {
        (void) plan_again(class, CLASS_SYNC_PACKED, timed, 1);
    }
}

/* Plans anew by what is known, with the component's lock held; `stay`: as in the plan's input, 1:
 * the plan was never used, and its change is no move. Takes learning_lock. */
static void plan_as_known(struct peer_class *class, enum class_buffer buffer,
                          struct learning *learning, double stay)
{
    OPAL_THREAD_LOCK(&learning_lock);
    model_set(learning, class_planned(class, buffer)->plan);
    memset(learning->is_looked, 0, sizeof(learning->is_looked));
    OPAL_THREAD_UNLOCK(&learning_lock);
    atomic_store_explicit(&class->learned[buffer], &learning->model, memory_order_release);
    bool changes = plan_again(class, buffer, learning, stay);
    /* Else not: their own plans know no `stay`, and would change with each small difference. */
    if (changes || stay == 1)
        followers_plan(class, buffer, learning);
}

bool learning_is_due(const struct peer_class *class, enum class_buffer buffer)
{
    const struct learning *learning = learning_now(class, buffer);
    bool due = false;
    if (!learning || !class_learns(class))
        return false;
    OPAL_THREAD_LOCK(&learning_lock);
    due = learning->has_news && clock_now_ns() >= learning->plan_after_ns;
    OPAL_THREAD_UNLOCK(&learning_lock);
    return due;
}

void learning_plan(struct peer_class *class, enum class_buffer buffer)
{
    struct learning *learning = learning_now(class, buffer);
    uint64_t begin_ns = clock_now_ns();
    bool may_move = class->move_count < MOVES_MOST;
    if (!learning)
        return;
    if (may_move)
        plan_as_known(class, buffer, learning, STAY);
    uint64_t end_ns = clock_now_ns();
    OPAL_THREAD_LOCK(&learning_lock);
    learning->plan_after_ns =
        may_move ? end_ns + (uint64_t) ((double) (end_ns - begin_ns) / PLANS_PART) : UINT64_MAX;
    OPAL_THREAD_UNLOCK(&learning_lock);
}

/* --- earlier and later jobs ------------------------------------------------------------------- */

/* What a class has learned goes to later jobs on the node, and comes from earlier ones. */

/* "cache/shm:shm+tcp:eth0"; false: that is too long, or no word. Messages with sums take longer,
 * each way by another factor. */
static bool class_name(const struct peer_class *class, char name[HISTORY_CLASS_CHARS])
{
    int length = snprintf(name, HISTORY_CLASS_CHARS, "%s%s", parameters.verify ? "verified-" : "",
                          profile_placement_name(class->placement));
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
    const struct plan *plan = class_planned(class, buffer)->plan;
    struct learned_key in_use = learning_key_at(learning_now(class, buffer), plan, way->bucket);
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

/* Has this job timed the way in use? */
static bool in_use_is_timed(const struct peer_class *class, enum class_buffer buffer,
                            const struct learning *learning, uint32_t bucket)
{
    const struct plan *plan = class_planned(class, buffer)->plan;
    const struct learning_way *way =
        learning_way_of(learning, learning_key_at(learning, plan, bucket));
    return way && way->at[bucket].taken > way->at[bucket].recalled;
}

/* What messages of the class took, as a later job or class may know it. What is only recalled
 * counts by the way in use: it is left again where that was timed, or else the next job would
 * compare what one took in a slow job with what the other took in a fast one. */
static void ways_gather(const struct peer_class *class, const char *name, enum class_buffer buffer,
                        struct history *to)
{
    const struct learning *learning = learning_now(class, buffer);
    for (uint32_t i = 0; learning && i < learning->way_count; i++)
        for (uint32_t j = 0; j < LEARNED_BUCKETS; j++) {
            const struct learning_range *range = &learning->ways[i]->at[j];
            struct learned_key key = learning->ways[i]->key;
            const struct plan_entry entry = entry_of_key(key);
            struct history_way way = {.buffer = buffer, .key = key, .bucket = j};
            snprintf(way.class, sizeof(way.class), "%s", name);
            way.messages = range->taken;
            way.seconds = learning_factor(class, buffer, key, j) *
                          learning_equation_s(class, buffer, &entry, UINT64_C(1) << j);
            if (way.seconds > 0 && in_use_is_timed(class, buffer, learning, j))
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
    if (!class_learns(class) || !class_name(class, name))
        return;
    known_gather(name, before, &known);
    for (uint32_t i = 0; i < known.way_count; i++)
        if (way_fits(class, &known.ways[i]))
            way_recall(&known, class, name, &known.ways[i]);
    history_free(&known);
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        struct learning *learning = learning_now(class, (enum class_buffer) i);
        if (learning)
            plan_as_known(class, (enum class_buffer) i, learning, 1);
    }
}

static bool has_changed(const struct peer_class *class)
{
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        const struct learning *learning = learning_now(class, (enum class_buffer) i);
        if (learning && learning->changes)
            return true;
    }
    return false;
}

/* The oldest first: what its successors know of the same lanes is newer. Times with processors that
 * are not as far from each other as when the job began are none of the next one's. */
static void classes_gather(const struct peer_class *class, struct history *to)
{
    char name[HISTORY_CLASS_CHARS];
    if (!class)
        return;
    classes_gather(class->next, to);
    if (class_learns(class) && !(has_changed(class) && node_costs_have_moved()) &&
        class_name(class, name))
        class_gather(class, name, to);
}

void learning_save(void)
{
    if (parameters.learn && multilane.me.vpid == 0)
        classes_gather(classes_first(), used_history_added());
}
