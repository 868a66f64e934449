/* SPDX-License-Identifier: BSD-3-Clause */
/* Which messages are sent another way than the plan's, to know what that takes. */
#include "plan/learning.h"

#include <math.h>

#include "base/parameters.h"

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
    double in_use_s = learning_equation_s(class, buffer, route->entry, UINT64_C(1) << bucket);
    OPAL_THREAD_LOCK(&learning_lock);
    struct learning *learning = learning_made(class, buffer);
    if (learning) {
        if (!learning->is_looked[bucket])
            challengers_find(learning, class, buffer, bucket);
        chosen = trial_choose(class, buffer, learning, plan_entry_key(route->entry), bucket,
                              in_use_s, messages, tried);
    }
    OPAL_THREAD_UNLOCK(&learning_lock);
    return chosen ? chosen : route;
}
