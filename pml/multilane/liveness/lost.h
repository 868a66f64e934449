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

/* The peer says so of this process: for each the other one is lost. */
void lost_told(struct peer *peer);

/* Can no message from `source`, or from one of all that it may be, come any more? */
bool lost_comm_has(struct mca_pml_comm_t *comm, int32_t source);

static inline bool lost_concerns(struct mca_pml_comm_t *comm, int32_t source)
{
    return OPAL_UNLIKELY(__atomic_load_n(&multilane.lost_peers, __ATOMIC_RELAXED) > 0) &&
           lost_comm_has(comm, source);
}

#endif
