/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches which lanes and peers still answer. Callbacks of BTLs only mark a failure; all that
 * follows is done here, from opal_progress or the progress thread. A peer that computes answers
 * on no lane, so no lane of it becomes suspect. */
#ifndef MULTILANE_WATCH_H
#define MULTILANE_WATCH_H

#include "peer/peer.h"

/* The peer is met. Where tcp is its only lane for messages, a cut wire would go unnoticed: it is
 * asked now and then, though nothing is kept. With the component's lock held. */
void watch_met(struct peer *peer);

/* Called by opal_progress and the progress thread. */
int watch_progress(void);

#endif
