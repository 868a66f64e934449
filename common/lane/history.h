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

struct history {
    struct history_starts starts[2]; /* [1]: of more processes than processors */
    uint32_t way_count;
    struct history_way *ways;
};

/* Of such a machine; empty: there is no folder. */
void history_path(const struct fingerprint *machine, char path[PROFILE_PATH_CHARS]);

/* Never fails: what cannot be read is empty. The caller ends it by history_free. */
void history_read(const char *path, struct history *history);
void history_free(struct history *history);

/* Adds to it; a way that is known is replaced, the oldest start is forgotten. Costs that fail
 * startup_check are those of a busy start. */
void history_add_start(struct history_starts *starts, const struct startup_costs *costs);
void history_add_way(struct history *history, const struct history_way *way);

/* Has the node been measured, as far as it can be? */
bool history_has_starts(const struct history_starts *starts);

/* The medians; false: nothing was measured. */
bool history_costs(const struct history_starts *starts, struct startup_costs *costs);

/* As a whole, or not at all. */
bool history_write(const char *path, const struct history *history);

#endif
