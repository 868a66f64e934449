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

#include "base/clock.h"
#include "base/parameters.h"

/* A median that has moved by this part is news. */
#define NEWS_PART 0.1
/* Where LEARNING_LEAST messages in a row took more than so many times what the plan was made by,
 * the machine has changed: a virtual machine's processors were moved apart (8 to 12 times), a link
 * has slowed. A ring of shm that has not grown yet takes 2.8 times as long as the large one. */
#define CHANGED 4
/* A job's first messages go to new memory and small rings. */
#define CHANGE_AFTER_NS UINT64_C(50000000)
/* Each may move a plan some times until a promise is kept, and plans move MOVES_MOST times. */
#define CHANGES_MOST 32

opal_mutex_t learning_lock = OPAL_MUTEX_STATIC_INIT;

static uint64_t begun_ns;

void learning_begin(void)
{
    begun_ns = clock_now_ns();
}

uint64_t learning_begun_ns(void)
{
    return begun_ns;
}

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
    if (!range->recalled || range->taken < range->recalled + LEARNING_LEAST)
        return;
    /* What this job has seen is enough, and an earlier one may have had other processors. */
    memmove(range->ratio, range->ratio + range->recalled, LEARNING_LEAST * sizeof(range->ratio[0]));
    range->taken = LEARNING_LEAST;
    range->recalled = 0;
}

void learning_range_set(struct learning_range *range, double ratio)
{
    range->recalled = 0;
    range->taken = ratio > 0 ? LEARNING_LEAST : 0;
    for (int i = 0; i < LEARNING_LEAST; i++)
        range->ratio[i] = (float) ratio;
}

void learning_range_divide(struct learning_range *range, double by)
{
    for (int i = 0; i < LEARNING_TIMES; i++)
        range->ratio[i] = by > 0 ? (float) ((double) range->ratio[i] / by) : 0;
    if (!(by > 0))
        range->taken = range->recalled = 0;
}

void learning_bucket_rebase(struct learning *learning, uint32_t bucket, struct learned_key from,
                            struct learned_key to, bool is_promise)
{
    double before = learning_factor_in_use(learning, from, bucket);
    const struct learning_way *way = learning_way_of(learning, to);
    double factor = way ? learning_median(&way->at[bucket]) : 0;
    for (uint32_t i = 0; i < learning->way_count; i++) {
        struct learning_range *range = &learning->ways[i]->at[bucket];
        bool is_recalled = range->taken <= range->recalled;
        if (learned_key_equals(learning->ways[i]->key, to))
            learning_range_set(range, factor * before);
        else if (learned_key_equals(learning->ways[i]->key, from))
            learning_range_set(range, before > 0 && factor > 0 ? 1 / factor : 0);
        else
            learning_range_divide(range, factor);
        if (is_recalled) /* and still is: this job has not timed it */
            range->recalled = range->taken;
    }
    learning->in_use[bucket] = 0;
    learning->is_fresh[bucket] = false;
    learning->promise[bucket] = (struct promise){.before_ratio = (float) before};
    if (is_promise && before > 0 && factor > 0)
        learning->promise[bucket].before = from;
}

uint64_t learning_size(const struct learning *learning, uint32_t bucket)
{
    return learning && learning->size[bucket] ? learning->size[bucket] : UINT64_C(1) << bucket;
}

struct learned_key learning_key_at(const struct learning *learning, const struct plan *plan,
                                   uint32_t bucket)
{
    return plan_entry_key(plan_lookup(plan, learning_size(learning, bucket)));
}

/* Have earlier jobs left something of it? By its last size. */
static bool is_recalled(const struct learning *learning, uint32_t bucket)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        if (learning->ways[i]->at[bucket].recalled)
            return true;
    return false;
}

/* With the lock held, for a message that goes by the plan. */
static void size_follow(struct learning *learning, const struct plan *plan, uint64_t bytes)
{
    uint32_t bucket = learned_bucket(bytes);
    struct learned_key before = learning_key_at(learning, plan, bucket);
    struct learned_key now = plan_entry_key(plan_lookup(plan, bytes));
    bool is_alike = learned_key_equals(before, now);
    bool is_open = !learning->size[bucket] && (is_alike || !is_recalled(learning, bucket));
    learning->misses[bucket] = is_alike ? 0 : learning->misses[bucket] + 1;
    if (!is_alike)
        learning->other[bucket] = bytes;
    if (!is_open && learning->misses[bucket] < LEARNING_TIMES)
        return;
    if (!is_alike)
        learning_bucket_rebase(learning, bucket, before, now, false);
    learning->size[bucket] = bytes;
    learning->misses[bucket] = 0;
    learning->is_looked[bucket] = false;
}

/* The shortest of the last messages; 0: there are too few. */
static double recent_least(const struct learning_range *range)
{
    double least = INFINITY;
    if (range->taken < range->recalled + LEARNING_LEAST)
        return 0;
    for (uint32_t i = 1; i <= LEARNING_LEAST; i++)
        least = fmin(least, (double) range->ratio[(range->taken - i) % LEARNING_TIMES]);
    return least;
}

/* With the lock held. The way in use takes so many times what was known of it; the others count as
 * what they took before. */
static void others_stay(struct learning *learning, struct learning_way *way, uint32_t bucket,
                        double times)
{
    for (uint32_t i = 0; i < learning->way_count; i++)
        if (learning->ways[i] != way)
            learning_range_divide(&learning->ways[i]->at[bucket], times);
    way->at[bucket].planned = (float) learning_median(&way->at[bucket]);
    learning->has_news = true;
}

/* With the lock held. Where the way in use has changed it is not known whether the others have. The
 * one that then is the best has to keep that promise, so if all have become slow the way in use
 * soon is used again. Each time takes some messages: it is rare. */
static void change_follow(struct learning *learning, struct learning_way *way, uint32_t bucket)
{
    struct learning_range *range = &way->at[bucket];
    double least = recent_least(range), planned = (double) range->planned;
    uint64_t now_ns = clock_now_ns(), age_ns = now_ns - learning_begun_ns();
    if (age_ns < CHANGE_AFTER_NS || !(planned > 0) || least < CHANGED * planned ||
        learning->changes == CHANGES_MOST || now_ns < learning->change_after_ns[bucket])
        return;
    learning->change_after_ns[bucket] = now_ns + age_ns / 2;
    learning->plan_after_ns = 0;
    learning->changes++;
    learning_range_set(range, least);
    others_stay(learning, way, bucket, least / planned);
}

/* With the lock held. The promise ends when it is known whether it was kept: what messages really
 * took replaces it, and the way before is compared with that. */
static void promise_add(struct learning *learning, struct learning_way *way, uint32_t bucket,
                        double ratio)
{
    struct promise *promise = &learning->promise[bucket];
    struct learning_way *before = learning_way_of(learning, promise->before);
    struct learning_range *range = &way->at[bucket];
    double promised = learning_median(range);
    promise->ratio[promise->count++] = (float) ratio;
    if (promise->count < LEARNING_LEAST)
        return;
    memcpy(range->ratio, promise->ratio, sizeof(promise->ratio));
    range->taken = LEARNING_LEAST;
    range->recalled = 0;
    others_stay(learning, way, bucket, learning_median(range) / promised);
    if (before)
        learning_range_set(&before->at[bucket],
                           (double) promise->before_ratio / learning_median(range));
    promise->before.lanes = 0;
    learning->plan_after_ns = 0;
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
    if (is_used)
        change_follow(learning, way, bucket);
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
    const struct plan *plan = class_planned(class, buffer)->plan;
    if (way && learned_key_equals(key, plan_entry_key(plan_lookup(plan, bytes))))
        size_follow(learning, plan, bytes);
    if (way)
        way_add(learning, way, bucket,
                learned_key_equals(key, learning_key_at(learning, plan, bucket)),
                seconds / expected_s, bytes);
    OPAL_THREAD_UNLOCK(&learning_lock);
}

bool learning_is_promised(const struct peer_class *class, enum class_buffer buffer, uint32_t bucket)
{
    const struct learning *learning = learning_now(class, buffer);
    bool is_promised = false;
    if (!learning)
        return false;
    OPAL_THREAD_LOCK(&learning_lock);
    is_promised = learning->promise[bucket].before.lanes != 0;
    OPAL_THREAD_UNLOCK(&learning_lock);
    return is_promised;
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
    struct learned_key in_use =
        learning_key_at(learning, class_planned(class, buffer)->plan, bucket);
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

/* --- trials ----------------------------------------------------------------------------------- */

/* Which messages are sent another way than the plan's, to know what that takes. */

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
/* What only earlier jobs have seen is tried once, and where that differs by so many times, until it
 * is known anew: they may have run on other processors. */
#define IN_DOUBT 1.5
/* An unknown way is expected to cost at least this part of a message more. */
#define UNKNOWN_PART 0.1

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
        /* Release, against class_route_next. */
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
    uint64_t bytes = learning_size(learning, bucket);
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

static double last_of(const struct learning_range *range)
{
    return (double) range->ratio[(range->taken - 1) % LEARNING_TIMES];
}

static bool is_in_doubt(const struct learning_range *range, double median)
{
    double last = last_of(range);
    return range->recalled && (last * IN_DOUBT < median || last > IN_DOUBT * median);
}

/* What a message of the challenger would cost more than one of the way in use, as a part of it;
 * below 0: it is not tried. `by_equation`: its time by that of the way in use; `near`: its factor
 * to that at about this size, 0: it is not known. */
static double extra_of(const struct learning_way *way, uint32_t bucket, double by_equation,
                       double near, double in_use_factor, uint32_t in_use_taken)
{
    double median = way ? learning_median(&way->at[bucket]) : 0;
    if (median > 0) {
        const struct learning_range *range = &way->at[bucket];
        double known = median * by_equation;
        uint32_t share = known > TRY_KNOWN ? SLOW_SHARE : KNOWN_SHARE;
        if (range->recalled && range->taken == range->recalled)
            return fmax(known - 1, 0);
        if (is_in_doubt(range, median))
            return fmax(last_of(range) * by_equation - 1, 0);
        return range->taken > in_use_taken / share ? -1 : fmax(known - 1, 0);
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
    const struct learning_way *way = learning_way_of(learning, in_use);
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
            learning_way_of(learning, key), bucket, challenger->expected_s / in_use_equation_s,
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
    return class_learns(class) && !parameters.override_count && bytes >= TRIED_FROM_BYTES &&
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
    struct learned_key key = plan_entry_key(route->entry);
    OPAL_THREAD_LOCK(&learning_lock);
    struct learning *learning = learning_made(class, buffer);
    const struct plan *plan = class_planned(class, buffer)->plan;
    if (learning && learned_key_equals(key, learning_key_at(learning, plan, bucket))) {
        double in_use_s =
            learning_equation_s(class, buffer, route->entry, learning_size(learning, bucket));
        if (!learning->is_looked[bucket])
            challengers_find(learning, class, buffer, bucket);
        chosen = trial_choose(class, buffer, learning, key, bucket, in_use_s, messages, tried);
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
    /* It was chosen for the size that stands for the range, and may not carry this one. */
    return chosen && learning_equation_s(class, buffer, chosen->entry, bytes) > 0 ? chosen : route;
}
