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

/* The rest is for messages in parts. No lane overtakes another by so many messages. */
#define EARLY_MAX (1 << 24)

/* Work to do when no lock is held. */
struct order_rest {
    struct inbound *ready;   /* matched messages, in order */
    struct inbound *refused; /* messages to refuse */
};

/* With the peer's lock held, these three. Finds the receive for an arrival, or keeps it; `kept`:
 * the inbound that holds it already, or null. */
struct recv_request *order_deliver(struct arrival *arrival, struct inbound *kept,
                                   struct order_rest *rest);
/* Adds a message before its turn. False: a duplicate. */
bool order_insert_early(struct peer *peer, struct inbound *inbound);
/* Delivers early messages whose turn has come. */
void order_deliver_early(struct peer *peer, struct order_rest *rest);
/* Does the rest. No lock is held. */
void order_finish(struct order_rest *rest);

#endif
