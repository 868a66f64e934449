/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports failed lanes and lost peers: one message, and MPI's error handling. */
#ifndef MULTILANE_ERRORS_H
#define MULTILANE_ERRORS_H

#include "common/compat/pml.h"

struct lane;
struct peer;

/* Is MPI_Finalize so far that lost connections are no errors any more? */
bool mpi_is_ending(void);

/* Fills lane_events: another lane takes over (watch.h), or the peer counts as
 * failed. */
void errors_begin(void);

/* Prints how a lane has changed ("is left out"), and why. `last`: later changes will only be
 * counted.
 */
void lane_say(const struct lane *lane, const char *change, const char *why, bool last);

/* The peer is lost: prints why, and starts MPI's error handling. */
void peer_lost(struct peer *peer, const char *why);

/* WIRE_GONE: the peer counts this process as lost, so the peer is lost to this process. */
void errors_peer_gave_up(struct peer *peer);

/* The error callback of the BTLs. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#endif
