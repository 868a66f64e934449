/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps MPI's order of the messages of a peer over all lanes: delivers each in its turn, to its
 * receive or to the unexpected queue. */
#ifndef MULTILANE_ORDER_H
#define MULTILANE_ORDER_H

#include "match/inbound.h"

/* Handles an arrived whole message or RTS, in any order. The caller owns the arrival, which is
 * invalid on return. No lock is held. */
void message_arrived(struct arrival *arrival);

/* Moves the messages that came for this communicator before it was made. With the component's
 * lock held. */
void order_adopt_orphans(struct mca_pml_comm_t *comm);

/* No lane overtakes another by so many messages. */
#define EARLY_MAX (1 << 24)

/* --- messages in parts ------------------------------------------------------------------------ */

/* Joins the parts of eager messages. */

/* Handles an arrived part, in any order. The caller owns the arrival. No lock is held. */
void part_arrived(struct arrival *part);

/* Is this a part of a message that has its receive? */
bool part_is_awaited(struct peer *peer, uint32_t sequence);

/* The peer is lost: ends the receives of messages with missing parts. No lock is held. */
void assemblies_lost(struct peer *peer);

/* Frees what waits for parts that never came, when MPI ends. */
void assemblies_fini(void);

#endif
