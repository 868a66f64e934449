/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches which lanes and peers still answer. Callbacks of BTLs only mark a failure; all that
 * follows is done here, from opal_progress or the progress thread. A peer that computes answers
 * on no lane, so no lane of it becomes suspect. */
#ifndef MULTILANE_WATCH_H
#define MULTILANE_WATCH_H

#include "peer/peer.h"

/* The peer is met: those of its lanes that tell whether they are quiet are looked at now and then.
 */
void watch_met(struct peer *peer);

/* Called by progress. */
int watch_progress(void);

#endif
