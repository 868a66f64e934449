/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan for one peer, operation and buffer type: which protocol carries which size over what. */
#ifndef COMMON_MODEL_PLAN_H
#define COMMON_MODEL_PLAN_H

#include "common/model/plan_input.h"

/* The weights of one entry's lanes add up to this. */
#define PLAN_WEIGHT_ONE 65536u

/* What decides that an entry begins where it does. */
enum plan_decider {
    PLAN_BY_LANE_LIMIT = MODEL_BOUND_LANE,     /* the entry before cannot carry more: the lane, */
    PLAN_BY_CREDIT = MODEL_BOUND_CREDIT,       /* the receiver's memory */
    PLAN_BY_EAGER_MAX = MODEL_BOUND_EAGER_MAX, /* or the user bounds it */
    PLAN_BY_EQUATION,                          /* its line falls below that of the entry before */
    PLAN_BY_RANGE,                             /* other terms of the lines begin here */
    PLAN_BY_FORCE,                             /* a protocol is forced from here on, or to here */
    PLAN_DECIDERS
};

/* "equation", "range", "credit", "eager_max", "lane limit", "forced". */
const char *plan_decider_name(enum plan_decider decider);

struct plan_entry {
    uint64_t first_bytes; /* for reports; the data path reads plan->largest */
    uint64_t largest_bytes;
    enum plan_decider decided_by; /* has no meaning in the first entry, which begins at 0 */
    const struct model_protocol *protocol;
    uint32_t protocol_index;           /* in the table that the plan was built from */
    bool chooses;                      /* lanes of it could send in place or copy; */
    bool copies;                       /* these do the latter */
    uint32_t lane_count;               /* at least 1 */
    uint8_t lanes[MODEL_LANES_MAX];    /* indices into the lanes given, the best first */
    uint32_t weights[MODEL_LANES_MAX]; /* by bandwidth; a message takes its shares by stripe.c */
};

struct plan {
    uint32_t entry_count; /* at least 1 */
    /* largest[i] is entries[i].largest_bytes, close together for plan_lookup; the last one is
     * UINT64_MAX. */
    uint64_t *largest;
    struct plan_entry *entries;
    /* Where an override could not be honoured: one sentence to report once; else empty. */
    char note[200];
};

/* Builds the plan, or returns null with a sentence that names the operation, the buffer type, the
 * size that nothing can carry and what lane was missing, or the lane and value that are wrong. The
 * plan keeps nothing of the input but pointers into the protocol table. */
struct plan *plan_build(const struct plan_input *input, struct error_text *error);
void plan_free(struct plan *plan);

/* The entry for a message of `bytes`: at most one comparison an entry, and it always ends, because
 * no size is above the last entry's. */
static inline const struct plan_entry *plan_lookup(const struct plan *plan, uint64_t bytes)
{
    const uint64_t *largest = plan->largest;
    uint32_t i = 0;
    while (bytes > largest[i])
        i++;
    return &plan->entries[i];
}

struct learned_key plan_entry_key(const struct plan_entry *entry);

/* What reports say behind the entry's lanes: "", ", in place" or ", copied". */
const char *plan_entry_manner(const struct plan_entry *entry);

/* What the model expects an entry's protocol and lanes to cost at `bytes`, also outside the entry's
 * range, also where the entry is of an earlier job. False if the protocol cannot carry that size
 * over those lanes. */
bool plan_predict(const struct plan_input *input, const struct plan_entry *entry, uint64_t bytes,
                  struct cost *cost);

/* The same for any protocol of the table over the best set of lanes for that size: what a report
 * compares the choice with. False: it cannot carry that size; *entry is then untouched. */
bool plan_best_of_protocol(const struct plan_input *input, uint32_t protocol_index, uint64_t bytes,
                           struct plan_entry *entry, struct cost *cost);

#endif
