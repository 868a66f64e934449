/* SPDX-License-Identifier: BSD-3-Clause */
/* Which deliveries progress has to look at, and the time by which lanes and peers are judged.
 *
 * That time passes only while this process calls MPI, or its progress thread looks: else it hears
 * no peer, and may conclude nothing. */
#ifndef MULTILANE_SCHEDULE_H
#define MULTILANE_SCHEDULE_H

#include "delivery/delivery_state.h"

/* Nanoseconds in which progress was called often. Written by the thread that looks. */
uint64_t active_time_ns(void);
void active_time_set(uint64_t ns);

/* Something is under way with this peer: progress looks at it. May be called with the delivery's
 * lock held. */
void schedule_add(struct delivery *delivery);
/* All that was added, as a list by next_watched; each may be added again as soon as its `watched`
 * is cleared. */
struct delivery *schedule_take(void);
/* Is anything to be looked at? A hint, without the lock. */
bool schedule_has_any(void);
/* Was anything ever? */
bool schedule_had_any(void);

/* `progress` is what Open MPI's progress calls, */
void schedule_init(int (*progress)(void));
void schedule_fini(void);
/* from now on, though there may be nothing to look at yet; */
void schedule_listen(void);
/* and there is something to look at from now on. */
void schedule_begin(void);
bool schedule_has_begun(void);

#endif
