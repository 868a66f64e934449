/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages of a class take, by way and size: kept here, and given to the model, whose plan
 * follows it. */
#ifndef MULTILANE_LEARNING_H
#define MULTILANE_LEARNING_H

#include "common/model/plan.h"
#include "plan/peer_class.h"

/* Of so many messages the median counts: half of them may have been disturbed. What is older is
 * forgotten. Fewer than the least say nothing. */
#define LEARNING_TIMES 15
#define LEARNING_LEAST 5

/* Messages of one way and one range of sizes. */
struct learning_range {
    uint32_t recalled; /* so many of them stand for what an earlier job has seen */
    uint32_t taken;    /* in all; the last LEARNING_TIMES of them are kept */
    /* Of the way in use: of the time to what the equation expects. Of others: of that to the same
     * of the last message before it that took the way in use, so that what delays both does not
     * count. */
    float ratio[LEARNING_TIMES];
    float planned;  /* the factor by which the plan was made; 0: none */
    uint64_t bytes; /* the size of the last one */
};

struct learning_way {
    struct learned_key key;
    struct learning_range at[LEARNED_BUCKETS];
};

/* A way that has come into use by what few messages promised, until as many have gone by it: a lane
 * that was idle may have been faster for those few. */
struct promise {
    struct learned_key before; /* the way that was in use; `lanes` 0: there is no promise */
    float before_ratio;        /* and what it took */
    uint32_t count;
    float ratio[LEARNING_LEAST];
};

/* A way that might be faster than the one in use. */
struct challenger {
    struct route *route;
    double expected_s; /* by the equation alone, for the size that stands for the range */
};

#define LEARNING_CHALLENGERS (2 * MODEL_PROTOCOLS)

/* Of one class and one kind of buffer. learning_lock guards it. */
struct learning {
    uint32_t way_count;
    struct learning_way *ways[LEARNED_WAYS_MAX];
    struct model_learned model;                /* as the plan in use was made */
    bool has_news;                             /* which it does not know */
    uint32_t changes;                          /* of the machine, in this job */
    uint64_t plan_after_ns;                    /* no other plan is made before, */
    uint64_t change_after_ns[LEARNED_BUCKETS]; /* nor is the machine another one */
    double spent_s, tried_s;                   /* by all messages, and what trials have cost more */
    /* Of the last message of the way in use; and it was timed after the last trial began. */
    float in_use[LEARNED_BUCKETS];
    /* Plans change inside ranges. One size stands for the range, of messages that go by the plan;
     * 0: its last one. Another one takes its place after LEARNING_TIMES messages in a row that the
     * plan sends another way, the last of which had the size in `other` (0: none). */
    uint64_t size[LEARNED_BUCKETS], other[LEARNED_BUCKETS];
    uint32_t misses[LEARNED_BUCKETS];
    bool is_fresh[LEARNED_BUCKETS];
    struct promise promise[LEARNED_BUCKETS];
    bool is_looked[LEARNED_BUCKETS]; /* the challengers of this range are known */
    uint8_t challenger_count[LEARNED_BUCKETS];
    struct challenger challengers[LEARNED_BUCKETS][LEARNING_CHALLENGERS];
};

/* The median of what one way took in one range, by the equation's time for it; 0: too few messages.
 */
double learning_median(const struct learning_range *range);
/* Of the middle half: the largest less the smallest. */
double learning_spread(const struct learning_range *range);

/* What a message of the way takes in the range, by the equation's time for it; 0: not known. */
double learning_factor(const struct peer_class *class, enum class_buffer buffer,
                       struct learned_key key, uint32_t bucket);

const struct learning_range *learning_range_of(const struct peer_class *class,
                                               enum class_buffer buffer, struct learned_key key,
                                               uint32_t bucket);

/* A message of this route and size took so long; of a stream: from one to the next. */
void learning_add(struct peer_class *class, const struct route *route, uint64_t bytes,
                  double seconds);

/* For a message that is to be timed, one of `messages`: its own route, or one to be tried with the
 * next `tried` messages. */
struct route *learning_route(struct peer_class *class, struct route *route, uint64_t bytes,
                             uint64_t messages, uint32_t tried);

/* Has another way come into use that must still show what it takes? */
bool learning_is_promised(const struct peer_class *class, enum class_buffer buffer,
                          uint32_t bucket);

/* Is there enough news for another plan? */
bool learning_is_due(const struct peer_class *class, enum class_buffer buffer);
/* Makes it, with the component's lock held. */
void learning_plan(struct peer_class *class, enum class_buffer buffer);

/* A new class begins with what earlier jobs on the node have learned of its lanes, and this job by
 * the class that the peer had before (null: none), as where one of its lanes was lost. With the
 * component's lock held. */
void learning_recall(struct peer_class *class, const struct peer_class *before);

/* Leaves it to later jobs, in the first process of this one. */
void learning_save(void);

/* As if no message of the class had been timed. */
void learning_forget(struct peer_class *class);

void learning_begin(void);
/* Call before classes_fini: plans do not know it any more. */
void learning_end(void);

/* --- what its files share ---------------------------------------------------------------------
 * learning.c keeps times and sends messages another way, learned_plan.c makes plans, has what is
 * known from earlier jobs and leaves it for later ones. */

/* Guards every struct learning, but for what plans read of it under the component's lock; a leaf.
 * The functions below want it held, but for learning_now and learning_equation_s. */
extern __attribute__((visibility("hidden"))) opal_mutex_t learning_lock;

/* Null: nothing was timed yet. */
struct learning *learning_now(const struct peer_class *class, enum class_buffer buffer);
/* Null: no memory. */
struct learning *learning_made(struct peer_class *class, enum class_buffer buffer);

struct learning_way *learning_way_of(const struct learning *learning, struct learned_key key);
/* Null: no memory, or too many ways. */
struct learning_way *learning_way_made(struct learning *learning, struct learned_key key);

/* Of the messages taken, so many are known. */
static inline uint32_t learning_kept(const struct learning_range *range)
{
    return range->taken < LEARNING_TIMES ? range->taken : LEARNING_TIMES;
}

/* The range's median is this; 0: it has none. */
void learning_range_set(struct learning_range *range, double ratio);

void learning_range_divide(struct learning_range *range, double by);

/* Another way is in use in this range of sizes: what was compared with the one before is compared
 * with the new one. */
void learning_bucket_rebase(struct learning *learning, uint32_t bucket, struct learned_key from,
                            struct learned_key to, bool is_promise);

/* The size that stands for the range (learning null: its last one), and the way that messages of
 * that size take. */
uint64_t learning_size(const struct learning *learning, uint32_t bucket);
struct learned_key learning_key_at(const struct learning *learning, const struct plan *plan,
                                   uint32_t bucket);

uint64_t learning_begun_ns(void);

/* What the way in use takes in the range, by the equation's time for it; 0: not known. */
double learning_factor_in_use(const struct learning *learning, struct learned_key in_use,
                              uint32_t bucket);

/* By the equation alone; 0: it cannot say. */
double learning_equation_s(const struct peer_class *class, enum class_buffer buffer,
                           const struct plan_entry *entry, uint64_t bytes);

#endif
