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
#include "plan/learning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A median that has moved by this part is news. */
#define NEWS_PART 0.1

opal_mutex_t learning_lock = OPAL_MUTEX_STATIC_INIT;

/* --- medians ---------------------------------------------------------------------------------- */

static int by_value(const void *one, const void *other)
{
    float a = *(const float *) one, b = *(const float *) other;
    return (a > b) - (a < b);
}

static uint32_t sorted(const struct learning_range *range, float ratios[LEARNING_TIMES])
{
    uint32_t count = learning_kept(range);
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

struct learning_way *learning_way_of(const struct learning *learning, struct learned_key key)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        if (learned_key_equals(learning->ways[i]->key, key))
            return learning->ways[i];
    return NULL;
}

struct learning_way *learning_way_made(struct learning *learning, struct learned_key key)
{
    struct learning_way *way = learning_way_of(learning, key);
    if (way || learning->way_count == LEARNED_WAYS_MAX)
        return way;
    way = calloc(1, sizeof(*way));
    if (way) {
        way->key = key;
        learning->ways[learning->way_count++] = way;
    }
    return way;
}

struct learning *learning_now(const struct peer_class *class, enum class_buffer buffer)
{
    /* Acquire, against learning_made: it is whole. */
    return atomic_load_explicit(&class->learning[buffer], memory_order_acquire);
}

struct learning *learning_made(struct peer_class *class, enum class_buffer buffer)
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
    const struct learning_way *way = learning ? learning_way_of(learning, key) : NULL;
    return way ? &way->at[bucket] : NULL;
}

double learning_equation_s(const struct peer_class *class, enum class_buffer buffer,
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
    return learned_key_equals(key, plan_key_at(class_planned(class, buffer)->plan, bucket));
}

void learning_range_set(struct learning_range *range, double ratio)
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
    struct learning_way *before = learning_way_of(learning, promise->before);
    struct learning_range *range = &way->at[bucket];
    promise->ratio[promise->count++] = (float) ratio;
    if (promise->count < LEARNING_LEAST)
        return;
    memcpy(range->ratio, promise->ratio, sizeof(promise->ratio));
    range->taken = LEARNING_LEAST;
    range->recalled = 0;
    if (before)
        learning_range_set(&before->at[bucket],
                           (double) promise->before_ratio / learning_median(range));
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
    double expected_s = learning_equation_s(class, buffer, route->entry, bytes);
    if (!(expected_s > 0) || !(seconds > 0))
        return;
    OPAL_THREAD_LOCK(&learning_lock);
    struct learning *learning = learning_made(class, buffer);
    struct learning_way *way = learning ? learning_way_made(learning, key) : NULL;
    if (way)
        way_add(learning, way, bucket, is_in_use(class, buffer, key, bucket), seconds / expected_s,
                bytes);
    OPAL_THREAD_UNLOCK(&learning_lock);
}

double learning_factor_in_use(const struct learning *learning, struct learned_key in_use,
                              uint32_t bucket)
{
    const struct learning_way *way = learning_way_of(learning, in_use);
    return way ? learning_median(&way->at[bucket]) : 0;
}

double learning_factor(const struct peer_class *class, enum class_buffer buffer,
                       struct learned_key key, uint32_t bucket)
{
    const struct learning *learning = learning_now(class, buffer);
    const struct learning_way *way = learning ? learning_way_of(learning, key) : NULL;
    struct learned_key in_use = plan_key_at(class_planned(class, buffer)->plan, bucket);
    if (!way)
        return 0;
    return learning_median(&way->at[bucket]) *
           (learned_key_equals(key, in_use) ? 1 : learning_factor_in_use(learning, in_use, bucket));
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The rest stays: plans may know of it. With the lock held. */
static void ways_free(struct learning *learning)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        free(learning->ways[i]);
    learning->way_count = 0;
    memset(learning->promise, 0, sizeof(learning->promise));
}

void learning_forget(struct peer_class *class)
{
    OPAL_THREAD_LOCK(&learning_lock);
    for (int i = 0; i < CLASS_BUFFERS; i++) {
        struct learning *learning = learning_now(class, (enum class_buffer) i);
        if (learning)
            ways_free(learning);
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
}

void learning_end(void)
{
    for (struct peer_class *class = classes_first(); class; class = class->next)
        for (int i = 0; i < CLASS_BUFFERS; i++) {
            struct learning *learning = learning_now(class, (enum class_buffer) i);
            atomic_store_explicit(&class->learned[i], NULL, memory_order_relaxed);
            atomic_store_explicit(&class->learning[i], NULL, memory_order_relaxed);
            if (learning)
                ways_free(learning);
            free(learning);
        }
}
