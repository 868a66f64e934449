/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan for people: which size goes how and what decided it, and the terms of each switch. */
#ifndef COMMON_REPORT_PLAN_TABLE_H
#define COMMON_REPORT_PLAN_TABLE_H

#include <stdio.h>

#include "common/model/number.h"
#include "common/model/plan.h"

/* How an entry was used, and what its messages took. */
struct plan_use {
    uint64_t messages, bytes;
    uint32_t samples;         /* how many messages were timed; 0: what follows says nothing */
    uint64_t measured_bytes;  /* the one that is in the middle by `ratio`: its size, */
    double measured_s, ratio; /* its time, and that by what was predicted of it */
};

/* The largest size of an entry at which its time is shown. */
uint64_t plan_last_shown(const struct plan_entry *entry);

/* What the model expects of an entry at `bytes`; not a number where it cannot say. */
double plan_time(const struct plan_input *input, const struct plan_entry *entry, uint64_t bytes);

/* The lanes of an entry and, where they are several, the part of a message that each has at the
 * speeds the plan knows. */
struct words plan_lanes_text(const struct plan_input *input, const struct plan_entry *entry);

/* One row an entry, each line after `indent`; `uses`, one an entry, may be null. */
void plan_table_print(FILE *out, const struct plan_input *input, const struct plan *plan,
                      const struct plan_use *uses, const char *indent);

/* What the lanes cost: one row a way and range, and where its numbers come from. `observed_at`,
 * which may be null, says what traffic has shown of a bandwidth; 0: nothing. */
typedef double (*plan_lane_observed)(const void *context, int lane, enum model_way way,
                                     uint32_t range);
void plan_lanes_print(FILE *out, const struct plan_input *input, plan_lane_observed observed_at,
                      const void *context, const char *indent);

/* For each switch both protocols' terms, the size at which their lines meet, and what bounded it.
 */
void plan_switches_print(FILE *out, const struct plan_input *input, const struct plan *plan,
                         const char *indent);

#endif
