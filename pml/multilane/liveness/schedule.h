/* SPDX-License-Identifier: BSD-3-Clause */
/* Which peers progress has to look at, and the active time by which it judges lanes and peers.
 *
 * Active time passes only while this process calls MPI, or its progress thread runs: at other
 * times it hears no peer and can conclude nothing. */
#ifndef MULTILANE_SCHEDULE_H
#define MULTILANE_SCHEDULE_H

#include <stdatomic.h>

#include "liveness/liveness_state.h"

/* Active time in nanoseconds. The thread in watch.c writes it, all read it. */
uint64_t active_time_ns(void);
void active_time_set(uint64_t ns);

/* Adds a peer for progress to look at. The lock of its liveness may be held. */
void schedule_add(struct liveness *liveness);
/* Takes all that were added, linked by next_watched. Each may be added again once its `watched`
 * is false. */
struct liveness *schedule_take(void);
/* Was one added? A hint, without the lock, in each round of progress. */
extern struct liveness *_Atomic schedule_first; /* schedule.c writes it under a lock */
static inline bool schedule_has_any(void)
{
    return atomic_load_explicit(&schedule_first, memory_order_relaxed) != NULL;
}

/* `progress` is the function to register with opal_progress. */
void schedule_init(int (*progress)(void));
void schedule_fini(void);
/* Registers it, though none was added yet. */
void schedule_listen(void);
/* The same, and schedule_has_begun is true from now on. */
void schedule_begin(void);
bool schedule_has_begun(void);

#endif
