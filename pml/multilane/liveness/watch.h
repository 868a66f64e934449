/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lanes and peers still answer. Everything that follows from a lost lane is done here, from
 * Open MPI's progress or the progress thread: callbacks of BTLs only mark.
 * A peer that computes answers on no lane, so it makes none suspect. */
#ifndef MULTILANE_WATCH_H
#define MULTILANE_WATCH_H

#include "peer/peer.h"

/* The peer is met. Where it has one lane for messages nothing is kept for it, and where a cut wire
 * would not be noticed otherwise the peer is asked now and then. With the component's lock held. */
void watch_met(struct peer *peer);

/* What progress calls. */
int watch_progress(void);

#endif
