/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes and peers that fail: what the files of this layer offer each other and those above. */
#ifndef MULTILANE_FAULTS_H
#define MULTILANE_FAULTS_H

#include <stdint.h>

#include "common/compat/pml.h"
#include "lane/lane.h"
#include "peer/peer.h"

/* --- errors.c --------------------------------------------------------------------------------- */

/* Reports failed lanes and lost peers: one message, and MPI's error handling. */

/* Is MPI_Finalize so far that lost connections are no errors any more? */
bool mpi_is_ending(void);

/* Fills lane_events: another lane takes over (watch.c), or the peer counts as failed. */
void errors_begin(void);

/* Prints how a lane has changed ("is left out"), and why. `last`: later changes will only be
 * counted. */
void lane_say(const struct lane *lane, const char *change, const char *why, bool last);

/* The peer is lost: prints why, and starts MPI's error handling. */
void peer_lost(struct peer *peer, const char *why);

/* WIRE_GONE: the peer counts this process as lost, so the peer is lost to this process. */
void errors_peer_gave_up(struct peer *peer);

/* The error callback of the BTLs. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

/* --- lost.c ----------------------------------------------------------------------------------- */

/* A lost peer, where Open MPI's fault tolerance is off and the user wants errors returned. The
 * job goes on; what waits for the peer, and later calls that need it, end with an error. */

/* Marks the peer as lost; progress ends what waits for it. False: nothing was done, because on
 * every communicator with it errors end the job. A BTL may call this. */
bool lost_is_returned(struct peer *peer);

/* Would lost_is_returned do that? Takes the component's lock. */
bool lost_would_be_returned(struct peer *peer);

/* Sends WIRE_GONE on this lane: the lost peer may live and not know. */
void gone_send(struct lane *lane);

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

/* --- watch.c ---------------------------------------------------------------------------------- */

/* Watches which lanes and peers still answer. Callbacks of BTLs only mark a failure; all that
 * follows is done here, from opal_progress or the progress thread. A peer that computes answers
 * on no lane, so no lane of it becomes suspect. */

/* After a contact: those of its lanes whose BTL says whether they are quiet are looked at now and
 * then.
 */
void watch_peer(struct peer *peer);

/* Called by progress. */
int watch_progress(void);

/* --- wrong.c ---------------------------------------------------------------------------------- */

/* Lanes that bring wrong bytes, as sums show (pml_multilane_verify). */

/* Fills its part of lane_events, after errors_begin. */
void wrong_begin(void);

/* WIRE_WRONG: the other end leaves the lane out. */
void wrong_reported(struct lane *lane);

/* A message by a lane that cannot bring it again: its sender is lost. Null: it is not known. */
void wrong_is_lost(struct peer *peer, mca_btl_base_module_t *btl, size_t bytes);

/* --- drain.c ---------------------------------------------------------------------------------- */

/* Lanes that multilane-top --drain asks this process to empty. */

/* Does what was asked since, from progress. No lock is held. */
void drain_look(void);

/* What was asked (own_page_drain) when it was last done, toward each peer. */
uint64_t drain_done(void);

#endif
