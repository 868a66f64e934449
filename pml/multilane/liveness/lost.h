/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that is lost, where Open MPI's fault tolerance is off and the user wants errors returned:
 * the job goes on, and what waits for that peer, or is asked of it later, ends in an error. */
#ifndef MULTILANE_LOST_H
#define MULTILANE_LOST_H

#include "match/comm.h"
#include "base/multilane.h"
#include "peer/peer.h"

/* Marks the peer as lost; progress ends what waits for it. False, and nothing is done: on every
 * communicator with it errors are to end the job. May be called by a BTL. */
bool lost_is_returned(struct peer *peer);

/* Would that be done, if the peer were lost? Takes the component's lock. */
bool lost_would_be_returned(struct peer *peer);

/* Tells a lost peer, who may not know, by this lane. */
void lost_tell(struct lane *lane);

#endif
