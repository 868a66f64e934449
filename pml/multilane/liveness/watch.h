/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lanes and peers still answer. Everything that follows from a lost lane is done here, from
 * Open MPI's progress or the progress thread: callbacks of BTLs only mark.
 *
 * Time is that during which this process calls MPI, or its progress thread looks: else it hears
 * nobody, and may conclude nothing. A peer that computes answers on no lane, so it makes none
 * suspect. */
#ifndef MULTILANE_WATCH_H
#define MULTILANE_WATCH_H

#include "delivery/delivery.h"

/* Nanoseconds in which progress was called often. */
uint64_t active_time_ns(void);

/* Something is under way with this peer. May be called with the delivery's lock held. */
void watch_add(struct delivery *delivery);

/* The peer answered this question on this lane. With the delivery's lock held. */
void watch_answered(struct delivery *delivery, struct lane *lane, uint32_t ask);

/* The lane is the only one for messages to its peer: nothing is kept for it, and where a cut wire
 * would not be noticed otherwise the peer is asked now and then. With the component's lock held. */
void watch_alone(struct lane *lane);

/* The lane's BTL says that it is broken. False: it is not one that messages are kept for, so that
 * what it carried may be lost. */
bool watch_lane_broke(struct lane *lane, const char *what, const char *why);

void watch_init(void);
void watch_fini(void);
/* Was any message to any peer kept until the peer had it? */
bool watch_keeps(void);
/* Open MPI's progress calls us from now on, though there may be nothing to watch yet. */
void watch_listen(void);
/* There is something to watch from now on. */
void watch_begin(void);
/* What progress calls. */
int watch_progress(void);

#endif
