/* SPDX-License-Identifier: BSD-3-Clause */
/* From times of messages to plans.
 *
 *   a message is timed (request/timer.c)      learning_route: its own way, or one that is tried
 *   its time is known                         learning_add: by way and range of sizes
 *   the medians say something new             learning_plan: other factors, perhaps another plan
 *
 * Ways are tried with a bounded part of the time of all messages. A plan changes where another way
 * has shown itself shorter by a part that the noise of the medians does not reach; then it has made
 * a promise, which the next messages confirm or take back. */
#include "peer/learning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "peer/used_history.h"

/* Shorter messages have one way that is worth anything. */
#define TRIED_FROM_BYTES 4096
/* What trials may cost, as a part of what all messages take. */
#define TRIED_PART 0.005
/* A way that would take so many times what the one in use takes is tried until it is known, */
#define TRY_UNKNOWN 4
/* and one that is known now and then, as machines change: one in so many messages that are timed,
 * of one that is near or far from the one in use. */
#define TRY_KNOWN   1.3
#define KNOWN_SHARE 8
#define SLOW_SHARE  64
/* An unknown way is expected to cost at least this part of a message more. */
#define UNKNOWN_PART 0.25
/* The way in use counts as so much of its time: another one must be 5 % shorter. */
#define STAY 0.95
/* A median that has moved by this part is news. */
#define NEWS_PART 0.1
/* Making a plan takes at most this part of the time. */
#define PLANS_PART 0.01
#define MOVES_MOST 64

/* Guards every struct learning, but for what plans read of it under the component's lock; a leaf.
 */
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static uint64_t begun_ns;

void learning_begin(void)
{
    begun_ns = clock_now_ns();
}

/* --- medians ---------------------------------------------------------------------------------- */

static uint32_t kept(const struct learning_range *range)
{
    return range->taken < LEARNING_TIMES ? range->taken : LEARNING_TIMES;
}

static int by_value(const void *one, const void *other)
{
    float a = *(const float *) one, b = *(const float *) other;
    return (a > b) - (a < b);
}

static uint32_t sorted(const struct learning_range *range, float ratios[LEARNING_TIMES])
{
    uint32_t count = kept(range);
    memcpy(ratios, range->ratio, count * sizeof(ratios[0]));
    qsort(ratios, count, sizeof(ratios[0]), by_value);
    return count;
}

double learning_median(const struct learning_range *range)
{
    float ratios[LEARNING_TIMES];
    uint32_t count = sorted(range, ratios);
    return count < LEARNING_LEAST ? 0 : (double) ratios[(count - 1) / 2];
}

double learning_spread(const struct learning_range *range)
{
    float ratios[LEARNING_TIMES];
    uint32_t count = sorted(range, ratios);
    return count < LEARNING_LEAST ? 0 : (double) (ratios[3 * count / 4] - ratios[count / 4]);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static struct learning_way *way_of(const struct learning *learning, struct learned_key key)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        if (learned_key_equals(learning->ways[i]->key, key))
            return learning->ways[i];
    return NULL;
}

/* Null: no memory, or too many ways. */
static struct learning_way *way_made(struct learning *learning, struct learned_key key)
{
    struct learning_way *way = way_of(learning, key);
    if (way || learning->way_count == LEARNED_WAYS_MAX)
        return way;
    way = calloc(1, sizeof(*way));
    if (way) {
        way->key = key;
        learning->ways[learning->way_count++] = way;
    }
    return way;
}

static struct learning *learning_now(const struct peer_class *class, enum class_buffer buffer)
{
    /* Acquire, against learning_made: it is whole. */
    return atomic_load_explicit(&class->learning[buffer], memory_order_acquire);
}

/* With the lock held. */
static struct learning *learning_made(struct peer_class *class, enum class_buffer buffer)
{
    struct learning *learning = learning_now(class, buffer);
    if (learning)
        return learning;
    learning = calloc(1, sizeof(*learning));
    atomic_store_explicit(&class->learning[buffer], learning, memory_order_release);
    return learning;
}

const struct learning_range *learning_range_of(const struct peer_class *class,
                                               enum class_buffer buffer, struct learned_key key,
                                               uint32_t bucket)
{
    const struct learning *learning = learning_now(class, buffer);
    const struct learning_way *way = learning ? way_of(learning, key) : NULL;
    return way ? &way->at[bucket] : NULL;
}

/* By the equation alone; 0: it cannot say. */
static double equation_s(const struct peer_class *class, enum class_buffer buffer,
                         const struct plan_entry *entry, uint64_t bytes)
{
    struct plan_input input;
    struct cost cost;
    class_plan_input(class, buffer, &input);
    input.learned = NULL;
    return plan_predict(&input, entry, bytes, &cost) ? cost_of(&cost, input.view, bytes) : 0;
}

/* Is the median something that the plan should know? */
static bool is_news(const struct learning_range *range)
{
    double median = learning_median(range), planned = (double) range->planned;
    return median > 0 && !(fabs(median - planned) <= NEWS_PART * planned);
}

static void range_add(struct learning_range *range, double ratio, uint64_t bytes)
{
    range->ratio[range->taken++ % LEARNING_TIMES] = (float) ratio;
    range->bytes = bytes;
}

static bool is_in_use(const struct peer_class *class, enum class_buffer buffer,
                      struct learned_key key, uint32_t bucket)
{
    const struct plan *plan = class_planned(class, buffer)->plan;
    return learned_key_equals(key, plan_entry_key(plan_lookup(plan, UINT64_C(1) << bucket)));
}

static void range_set(struct learning_range *range, double ratio)
{
    range->recalled = 0;
    range->taken = ratio > 0 ? LEARNING_LEAST : 0;
    for (int i = 0; i < LEARNING_LEAST; i++)
        range->ratio[i] = (float) ratio;
}

/* With the lock held. The promise ends when it is known whether it was kept: what messages really
 * took replaces it, and the way before is compared with that. */
static void promise_add(struct learning *learning, struct learning_way *way, uint32_t bucket,
                        double ratio)
{
    struct promise *promise = &learning->promise[bucket];
    struct learning_way *before = way_of(learning, promise->before);
    struct learning_range *range = &way->at[bucket];
    promise->ratio[promise->count++] = (float) ratio;
    if (promise->count < LEARNING_LEAST)
        return;
    memcpy(range->ratio, promise->ratio, sizeof(promise->ratio));
    range->taken = LEARNING_LEAST;
    range->recalled = 0;
    if (before)
        range_set(&before->at[bucket], (double) promise->before_ratio / learning_median(range));
    promise->before.lanes = 0;
    learning->has_news = true;
}

/* With the lock held. */
static void way_add(struct learning *learning, struct learning_way *way, uint32_t bucket,
                    bool is_used, double ratio, uint64_t bytes)
{
    struct learning_range *range = &way->at[bucket];
    if (is_used) {
        learning->in_use[bucket] = (float) ratio;
        learning->is_fresh[bucket] = true;
        if (learning->promise[bucket].before.lanes) {
            promise_add(learning, way, bucket, ratio);
            return;
        }
    } else if (learning->in_use[bucket] > 0) {
        ratio /= (double) learning->in_use[bucket];
    } else {
        return; /* there is none to compare it with */
    }
    range_add(range, ratio, bytes);
    learning->has_news = learning->has_news || is_news(range);
}

void learning_add(struct peer_class *class, const struct route *route, uint64_t bytes,
                  double seconds)
{
    enum class_buffer buffer = (enum class_buffer) route->buffer;
    struct learned_key key = plan_entry_key(route->entry);
    uint32_t bucket = learned_bucket(bytes);
    double expected_s = equation_s(class, buffer, route->entry, bytes);
    if (!(expected_s > 0) || !(seconds > 0))
        return;
    OPAL_THREAD_LOCK(&lock);
    struct learning *learning = learning_made(class, buffer);
    struct learning_way *way = learning ? way_made(learning, key) : NULL;
    if (way)
        way_add(learning, way, bucket, is_in_use(class, buffer, key, bucket), seconds / expected_s,
                bytes);
    OPAL_THREAD_UNLOCK(&lock);
}

static double factor_in_use(const struct learning *learning, struct learned_key in_use,
                            uint32_t bucket)
{
    const struct learning_way *way = way_of(learning, in_use);
    return way ? learning_median(&way->at[bucket]) : 0;
}

double learning_factor(const struct peer_class *class, enum class_buffer buffer,
                       struct learned_key key, uint32_t bucket)
{
    const struct learning *learning = learning_now(class, buffer);
    const struct learning_way *way = learning ? way_of(learning, key) : NULL;
    const struct plan *plan = class_planned(class, buffer)->plan;
    struct learned_key in_use = plan_entry_key(plan_lookup(plan, UINT64_C(1) << bucket));
    if (!way)
        return 0;
    return learning_median(&way->at[bucket]) *
           (learned_key_equals(key, in_use) ? 1 : factor_in_use(learning, in_use, bucket));
}

/* --- trials ----------------------------------------------------------------------------------- */

/* A route by that entry, made at the first time. Null: no memory. */
static struct route *tried_route(struct peer_class *class, enum class_buffer buffer,
                                 const struct plan_entry *entry)
{
    struct route *first = atomic_load_explicit(&class->tried[buffer], memory_order_relaxed);
    struct route *route = first;
    while (route && !learned_key_equals(plan_entry_key(route->entry), plan_entry_key(entry)))
        route = route->next;
    if (route)
        return route;
    route = route_of_entry(class, entry, buffer);
    if (route) {
        route->next = first;
        /* Release, against class_routes_visit. */
        atomic_store_explicit(&class->tried[buffer], route, memory_order_release);
    }
    return route;
}

static void challenger_add(struct learning *learning, struct peer_class *class,
                           enum class_buffer buffer, uint32_t bucket, struct plan_input *input,
                           uint32_t protocol)
{
    struct plan_entry entry;
    struct cost cost;
    uint64_t bytes = UINT64_C(1) << bucket;
    uint8_t *count = &learning->challenger_count[bucket];
    const struct plan_entry *in_use = plan_lookup(class_planned(class, buffer)->plan, bytes);
    if (*count == LEARNING_CHALLENGERS ||
        !plan_best_of_protocol(input, protocol, bytes, &entry, &cost) ||
        learned_key_equals(plan_entry_key(&entry), plan_entry_key(in_use)))
        return;
    struct route *route = tried_route(class, buffer, &entry);
    for (uint8_t i = 0; i < *count && route; i++)
        if (learning->challengers[bucket][i].route == route)
            return;
    if (route)
        learning->challengers[bucket][(*count)++] =
            (struct challenger){route, cost_of(&cost, input->view, bytes)};
}

/* Of each protocol the best lanes by the equation, and the best single one. */
static void challengers_find(struct learning *learning, struct peer_class *class,
                             enum class_buffer buffer, uint32_t bucket)
{
    struct plan_input input;
    class_plan_input(class, buffer, &input);
    input.learned = NULL;
    learning->is_looked[bucket] = true;
    learning->challenger_count[bucket] = 0;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++) {
        struct plan_input single = input;
        if (input.without >> i & 1)
            continue;
        single.most_eager_lanes = single.most_rndv_lanes = 1;
        challenger_add(learning, class, buffer, bucket, &input, i);
        if (class->lane_count > 1)
            challenger_add(learning, class, buffer, bucket, &single, i);
    }
}

/* The way's factor in the nearest range of sizes where it is known; 0: in none. */
static double factor_near(const struct peer_class *class, enum class_buffer buffer,
                          struct learned_key key, uint32_t bucket)
{
    for (uint32_t distance = 1; distance < LEARNED_BUCKETS; distance++)
        for (int side = -1; side <= 1; side += 2) {
            uint32_t other = bucket + (uint32_t) (side * (int) distance); /* below 0: very large */
            double factor =
                other < LEARNED_BUCKETS ? learning_factor(class, buffer, key, other) : 0;
            if (factor > 0)
                return factor;
        }
    return 0;
}

/* What a message of the challenger would cost more than one of the way in use, as a part of it;
 * below 0: it is not tried. `by_equation`: its time by that of the way in use; `near`: its factor
 * to that at about this size, 0: it is not known. */
static double extra_of(const struct learning_way *way, uint32_t bucket, double by_equation,
                       double near, double in_use_factor, uint32_t in_use_taken)
{
    double median = way ? learning_median(&way->at[bucket]) : 0;
    if (median > 0) {
        double known = median * by_equation;
        uint32_t share = known > TRY_KNOWN ? SLOW_SHARE : KNOWN_SHARE;
        return way->at[bucket].taken > in_use_taken / share ? -1 : fmax(known - 1, 0);
    }
    double expected = by_equation * (near > 0 ? near : fmin(1, 1 / in_use_factor));
    return expected > TRY_UNKNOWN ? -1 : fmax(expected - 1, UNKNOWN_PART);
}

/* The challenger that costs least and may be tried with so many messages; null: none. */
static struct route *trial_choose(const struct peer_class *class, enum class_buffer buffer,
                                  struct learning *learning, struct learned_key in_use,
                                  uint32_t bucket, double in_use_equation_s, uint64_t messages,
                                  uint32_t tried)
{
    const struct learning_way *way = way_of(learning, in_use);
    double factor = way ? learning_median(&way->at[bucket]) : 0, least = INFINITY;
    double in_use_s = factor * in_use_equation_s;
    struct route *best = NULL;
    if (!(factor > 0)) /* the way in use is to be known first */
        return NULL;
    learning->spent_s += in_use_s * (double) messages;
    if (!learning->is_fresh[bucket]) /* and timed shortly before, in the same circumstances */
        return NULL;
    for (uint8_t i = 0; i < learning->challenger_count[bucket]; i++) {
        const struct challenger *challenger = &learning->challengers[bucket][i];
        struct learned_key key = plan_entry_key(challenger->route->entry);
        double extra = extra_of(
            way_of(learning, key), bucket, challenger->expected_s / in_use_equation_s,
            factor_near(class, buffer, key, bucket) / factor, factor, way->at[bucket].taken);
        if (extra < 0 || extra >= least)
            continue;
        best = challenger->route;
        least = extra;
    }
    double extra_s = tried * least * in_use_s;
    if (!best || learning->tried_s + extra_s > TRIED_PART * learning->spent_s)
        return NULL;
    learning->is_fresh[bucket] = false;
    learning->tried_s += extra_s;
    return best;
}

static bool may_try(const struct peer_class *class, enum class_buffer buffer, uint64_t bytes)
{
    return parameters.learn && !class->is_forced && !parameters.override_count &&
           bytes >= TRIED_FROM_BYTES &&
           (buffer == CLASS_CONTIGUOUS || buffer == CLASS_PACKED || class_is_stream(buffer));
}

struct route *learning_route(struct peer_class *class, struct route *route, uint64_t bytes,
                             uint64_t messages, uint32_t tried)
{
    enum class_buffer buffer = (enum class_buffer) route->buffer;
    uint32_t bucket = learned_bucket(bytes);
    struct route *chosen = NULL;
    if (!may_try(class, buffer, bytes))
        return route;
    double in_use_s = equation_s(class, buffer, route->entry, UINT64_C(1) << bucket);
    OPAL_THREAD_LOCK(&lock);
    struct learning *learning = learning_made(class, buffer);
    if (learning) {
        if (!learning->is_looked[bucket])
            challengers_find(learning, class, buffer, bucket);
        chosen = trial_choose(class, buffer, learning, plan_entry_key(route->entry), bucket,
                              in_use_s, messages, tried);
    }
    OPAL_THREAD_UNLOCK(&lock);
    return chosen ? chosen : route;
}

/* --- plans ------------------------------------------------------------------------------------ */

/* What the model is told of a way that is not in use: so much more as its median may be off. */
static double factor_beside(const struct learning_range *range)
{
    double median = learning_median(range);
    return median > 0 ? median + learning_spread(range) / sqrt((double) kept(range) + 1) : 0;
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
    for (uint32_t j = 0; j < LEARNED_BUCKETS; j++) {
        struct learned_key in_use = plan_entry_key(plan_lookup(plan, UINT64_C(1) << j));
        double used = factor_in_use(learning, in_use, j);
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

/* The first range of sizes that another plan sends another way; LEARNED_BUCKETS: none. */
static uint32_t first_change(const struct plan *from, const struct plan *to)
{
    uint32_t i = 0;
    while (i < LEARNED_BUCKETS &&
           learned_key_equals(plan_entry_key(plan_lookup(from, UINT64_C(1) << i)),
                              plan_entry_key(plan_lookup(to, UINT64_C(1) << i))))
        i++;
    return i;
}

/* What messages of the entry take in the range, and how many were timed. */
static void move_show(const struct peer_class *class, enum class_buffer buffer,
                      const struct plan_entry *entry, uint32_t bucket, double *seconds,
                      uint32_t *messages)
{
    struct learned_key key = plan_entry_key(entry);
    const struct learning_range *range = learning_range_of(class, buffer, key, bucket);
    *messages = range ? range->taken : 0;
    *seconds = learning_factor(class, buffer, key, bucket) *
               equation_s(class, buffer, entry, UINT64_C(1) << bucket);
}

static void move_note(struct peer_class *class, enum class_buffer buffer, const struct plan *from,
                      const struct plan *to, uint32_t bucket)
{
    struct plan_move *move = calloc(1, sizeof(*move));
    class->move_count++;
    if (!move)
        return;
    move->at_s = 1e-9 * (double) (clock_now_ns() - begun_ns);
    move->buffer = buffer;
    move->bucket = bucket;
    move->from = plan_lookup(from, UINT64_C(1) << bucket);
    move->to = plan_lookup(to, UINT64_C(1) << bucket);
    move_show(class, buffer, move->from, bucket, &move->from_s, &move->from_messages);
    move_show(class, buffer, move->to, bucket, &move->to_s, &move->to_messages);
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

static void range_divide(struct learning_range *range, double by)
{
    for (int i = 0; i < LEARNING_TIMES; i++)
        range->ratio[i] = by > 0 ? (float) ((double) range->ratio[i] / by) : 0;
    if (!(by > 0))
        range->taken = 0;
}

/* Another way is in use in this range of sizes: what was compared with the one before is compared
 * with the new one. With the lock held. */
static void bucket_rebase(struct learning *learning, uint32_t bucket, struct learned_key from,
                          struct learned_key to)
{
    double before = factor_in_use(learning, from, bucket);
    const struct learning_way *way = way_of(learning, to);
    double factor = way ? learning_median(&way->at[bucket]) : 0;
    for (uint32_t i = 0; i < learning->way_count; i++) {
        struct learning_range *range = &learning->ways[i]->at[bucket];
        if (learned_key_equals(learning->ways[i]->key, to))
            range_set(range, factor * before);
        else if (learned_key_equals(learning->ways[i]->key, from))
            range_set(range, before > 0 && factor > 0 ? 1 / factor : 0);
        else
            range_divide(range, factor);
    }
    learning->in_use[bucket] = 0;
    learning->is_fresh[bucket] = false;
    learning->promise[bucket] = (struct promise){.before_ratio = (float) before};
    if (before > 0 && factor > 0)
        learning->promise[bucket].before = from;
}

static void learning_rebase(struct learning *learning, const struct plan *from,
                            const struct plan *to)
{
    OPAL_THREAD_LOCK(&lock);
    for (uint32_t i = 0; i < LEARNED_BUCKETS; i++) {
        struct learned_key before = plan_entry_key(plan_lookup(from, UINT64_C(1) << i));
        struct learned_key after = plan_entry_key(plan_lookup(to, UINT64_C(1) << i));
        if (!learned_key_equals(before, after))
            bucket_rebase(learning, i, before, after);
    }
    OPAL_THREAD_UNLOCK(&lock);
}

/* `stay`: as in the plan's input; 1: the plan was never used, and its change is no move. */
static void plan_again(struct peer_class *class, enum class_buffer buffer, double stay)
{
    struct planned *before = class_planned(class, buffer);
    struct planned *after = before ? class_plan(class, buffer, stay) : NULL;
    uint32_t change = after ? first_change(before->plan, after->plan) : LEARNED_BUCKETS;
    if (change == LEARNED_BUCKETS) {
        planned_free(after);
        return;
    }
    if (stay < 1)
        move_note(class, buffer, before->plan, after->plan, change);
    struct learning *learning = learning_now(class, buffer);
    if (learning)
        learning_rebase(learning, before->plan, after->plan);
    counts_move(before, after);
    after->before = before;
    class_set_plan(class, buffer, after);
}

/* Other kinds of messages that follow the same times. */
static void followers_plan(struct peer_class *class, enum class_buffer buffer)
{
    if (buffer == CLASS_CONTIGUOUS) {
        plan_again(class, CLASS_SYNC, 1);
        plan_again(class, CLASS_LEAVING, 1);
    } else if (buffer == CLASS_PACKED) {
        plan_again(class, CLASS_SYNC_PACKED, 1);
    }
}

static void plan_as_known(struct peer_class *class, enum class_buffer buffer,
                          struct learning *learning, double stay)
{
    OPAL_THREAD_LOCK(&lock);
    model_set(learning, class_planned(class, buffer)->plan);
    memset(learning->is_looked, 0, sizeof(learning->is_looked));
    OPAL_THREAD_UNLOCK(&lock);
    atomic_store_explicit(&class->learned[buffer], &learning->model, memory_order_release);
    plan_again(class, buffer, stay);
    followers_plan(class, buffer);
}

bool learning_is_due(const struct peer_class *class, enum class_buffer buffer)
{
    const struct learning *learning = learning_now(class, buffer);
    bool due = false;
    if (!learning || !parameters.learn || class->is_forced)
        return false;
    OPAL_THREAD_LOCK(&lock);
    due = learning->has_news && clock_now_ns() >= learning->plan_after_ns;
    OPAL_THREAD_UNLOCK(&lock);
    return due;
}

void learning_plan(struct peer_class *class, enum class_buffer buffer)
{
    struct learning *learning = learning_now(class, buffer);
    uint64_t begin_ns = clock_now_ns();
    if (!learning || class->move_count >= MOVES_MOST)
        return;
    plan_as_known(class, buffer, learning, STAY);
    uint64_t end_ns = clock_now_ns();
    OPAL_THREAD_LOCK(&lock);
    learning->plan_after_ns = end_ns + (uint64_t) ((double) (end_ns - begin_ns) / PLANS_PART);
    OPAL_THREAD_UNLOCK(&lock);
}

/* --- earlier and later jobs --------------------------------------------------------------------
 */

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

/* What an earlier job has seen of the way, by the equation's time; 0: nothing. */
static double recalled(const struct peer_class *class, const char *name, enum class_buffer buffer,
                       struct learned_key key, uint32_t bucket)
{
    const struct history *history = used_history();
    for (uint32_t i = 0; i < history->way_count; i++) {
        const struct history_way *way = &history->ways[i];
        if (way->bucket != bucket || way->buffer != (uint32_t) buffer ||
            !learned_key_equals(way->key, key) || strcmp(way->class, name) != 0)
            continue;
        const struct plan_entry entry = entry_of_key(key);
        double expected_s = equation_s(class, buffer, &entry, UINT64_C(1) << bucket);
        return expected_s > 0 ? way->seconds / expected_s : 0;
    }
    return 0;
}

/* As the median of few messages, beside the way that the plan takes, where that is known as well.
 */
static void way_recall(struct peer_class *class, const char *name, const struct history_way *way)
{
    enum class_buffer buffer = (enum class_buffer) way->buffer;
    const struct plan *plan = class_planned(class, buffer)->plan;
    struct learned_key in_use = plan_entry_key(plan_lookup(plan, UINT64_C(1) << way->bucket));
    double used = recalled(class, name, buffer, in_use, way->bucket);
    double ratio = recalled(class, name, buffer, way->key, way->bucket);
    if (!(used > 0) || !(ratio > 0))
        return;
    OPAL_THREAD_LOCK(&lock);
    struct learning *learning = learning_made(class, buffer);
    struct learning_way *mine = learning ? way_made(learning, way->key) : NULL;
    if (mine) {
        struct learning_range *range = &mine->at[way->bucket];
        range_set(range, learned_key_equals(way->key, in_use) ? ratio : ratio / used);
        range->bytes = UINT64_C(1) << way->bucket;
        range->recalled = LEARNING_LEAST;
    }
    OPAL_THREAD_UNLOCK(&lock);
}

static bool way_fits(const struct peer_class *class, const struct history_way *way)
{
    return way->buffer < CLASS_BUFFERS && class_planned(class, (enum class_buffer) way->buffer) &&
           way->key.lanes >> class_lanes_described(class) == 0;
}

void learning_recall(struct peer_class *class)
{
    const struct history *history = used_history();
    char name[HISTORY_CLASS_CHARS];
    if (class->is_recalled)
        return;
    class->is_recalled = true;
    if (!parameters.learn || class->is_forced || !class_name(class, name))
        return;
    for (uint32_t i = 0; i < history->way_count; i++)
        if (way_fits(class, &history->ways[i]) && strcmp(history->ways[i].class, name) == 0)
            way_recall(class, name, &history->ways[i]);
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        struct learning *learning = learning_now(class, (enum class_buffer) i);
        if (learning)
            plan_as_known(class, (enum class_buffer) i, learning, 1);
    }
}

static void ways_save(const struct peer_class *class, enum class_buffer buffer, const char *name)
{
    const struct learning *learning = learning_now(class, buffer);
    for (uint32_t i = 0; learning && i < learning->way_count; i++)
        for (uint32_t j = 0; j < LEARNED_BUCKETS; j++) {
            struct learned_key key = learning->ways[i]->key;
            const struct plan_entry entry = entry_of_key(key);
            struct history_way saved = {.buffer = buffer, .key = key, .bucket = j};
            snprintf(saved.class, sizeof(saved.class), "%s", name);
            saved.messages = learning->ways[i]->at[j].taken;
            saved.seconds = learning_factor(class, buffer, key, j) *
                            equation_s(class, buffer, &entry, UINT64_C(1) << j);
            if (saved.seconds > 0)
                used_history_add_way(&saved);
        }
}

void learning_save(void)
{
    char name[HISTORY_CLASS_CHARS];
    if (!parameters.learn || multilane.me.vpid != 0)
        return;
    for (const struct peer_class *class = classes_first(); class; class = class->next)
        for (int i = 0; i < CLASS_BUFFERS; i++)
            if (!class->is_forced && class_name(class, name))
                ways_save(class, (enum class_buffer) i, name);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void learning_free(struct learning *learning)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        free(learning->ways[i]);
    free(learning);
}

void learning_end(void)
{
    for (struct peer_class *class = classes_first(); class; class = class->next)
        for (int i = 0; i < CLASS_BUFFERS; i++) {
            struct learning *learning = learning_now(class, (enum class_buffer) i);
            atomic_store_explicit(&class->learned[i], NULL, memory_order_relaxed);
            atomic_store_explicit(&class->learning[i], NULL, memory_order_relaxed);
            if (learning)
                learning_free(learning);
        }
}
