/* SPDX-License-Identifier: BSD-3-Clause */
/* What earlier jobs on machines like this one have learned: what their starts have measured, and
 * what messages took. A file in the user's cache folder, beside profiles, that the first process of
 * a job writes when it ends: of a thousand nodes that share the folder, one. It is a cache: what is
 * damaged, or another user's, is as if it were not there. */
#ifndef COMMON_LANE_HISTORY_H
#define COMMON_LANE_HISTORY_H

#include "common/lane/profile.h"
#include "common/lane/startup.h"
#include "common/model/learned.h"

/* The newest starts; the median of what they have measured counts. With so many a job does not
 * measure any more, nor where so many were too busy to, or had no second processor for it: then
 * what is declared counts, and what messages teach. */
#define HISTORY_STARTS 5
#define HISTORY_BUSY   8

#define HISTORY_CLASS_CHARS 160
#define HISTORY_WAYS_MAX    4096

struct history_starts {
    uint32_t count, busy;
    struct startup_costs costs[HISTORY_STARTS]; /* the oldest first */
};

/* Messages of one size range that went one way. */
struct history_way {
    char class[HISTORY_CLASS_CHARS]; /* "cache/shm:shm": where the peers are, and their lanes */
    uint32_t buffer;                 /* the PML's number of it */
    struct learned_key key;
    uint32_t bucket;
    uint32_t messages; /* that were timed */
    double seconds;    /* the median for the largest size of the bucket */
};

/* Where an empty message takes so many times what it takes on near processors, these are apart:
 * a virtual machine's are moved by its host, and then all costs differ. */
#define HISTORY_APART 2

/* Of starts: the sum of */
enum history_kind {
    HISTORY_CROWDED = 1, /* more processes than processors */
    HISTORY_IS_APART = 2,
    HISTORY_KINDS = 4
};

struct history {
    struct history_starts starts[HISTORY_KINDS];
    uint32_t way_count;
    struct history_way *ways;
};

/* Of such a machine; empty: there is no folder. */
void history_path(const struct fingerprint *machine, char path[PROFILE_PATH_CHARS]);

/* False where the file is there and cannot be read. What cannot be read, or is none of ours, is
 * empty. The caller ends it by history_free. */
bool history_read(const char *path, struct history *history);
void history_free(struct history *history);

/* By what an empty message takes now; 0: it is not known. */
uint32_t history_kind(const struct history *history, bool is_crowded, double empty_s);

/* Adds to it; a way that is known is replaced, the oldest start of the kind is forgotten, and where
 * there is no room the way that was timed longest ago. Costs
 * that fail startup_check are those of a busy start, of the kind that is given. */
void history_add_start(struct history *history, uint32_t kind, const struct startup_costs *costs);
void history_add_way(struct history *history, const struct history_way *way);

/* Has the node been measured, as far as it can be? */
bool history_has_starts(const struct history_starts *starts);

/* The medians; false: nothing was measured. */
bool history_costs(const struct history_starts *starts, struct startup_costs *costs);

/* As a whole, or not at all. */
bool history_write(const char *path, const struct history *history);

#endif
