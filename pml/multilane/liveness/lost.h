/* SPDX-License-Identifier: BSD-3-Clause */
/* A lost peer, where Open MPI's fault tolerance is off and the user wants errors returned. The
 * job goes on; what waits for the peer, and later calls that need it, end with an error. */
#ifndef MULTILANE_LOST_H
#define MULTILANE_LOST_H

#include "peer/peer.h"

/* Marks the peer as lost; progress ends what waits for it. False: nothing was done, because on
 * every communicator with it errors end the job. A BTL may call this. */
bool lost_is_returned(struct peer *peer);

/* Would lost_is_returned do that? Takes the component's lock. */
bool lost_would_be_returned(struct peer *peer);

/* Sends WIRE_GONE on this lane: the lost peer may live and not know. */
void lost_tell(struct lane *lane);

/* --- losses that the progress thread finds ---------------------------------------------------- */

/* Hands losses that the progress thread finds to the program's own threads, because Open MPI's
 * error handling may call the user's functions. */

/* `proc` may be null. */
typedef void (*loss_function)(ompi_proc_t *proc, const char *sentence);

/* In the progress thread: keeps the loss; a thread of the program calls the function at its next
 * progress. False in other threads, or without memory: the caller calls it. */
bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence);

/* Is the calling thread the progress thread? That one says so. */
extern __attribute__((visibility("hidden"))) _Thread_local bool is_progress_thread;

#endif
