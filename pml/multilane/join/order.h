/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's order of the messages of a peer, whatever lane they came by: each is delivered in its turn,
 * to the receive that waits for it or to the queue of unexpected ones. */
#ifndef MULTILANE_ORDER_H
#define MULTILANE_ORDER_H

#include "match/inbound.h"

/* A whole message, or a RTS, in whatever order it comes. The arrival is of the caller, and may be
 * gone when it returns. No lock is held. */
void message_arrived(struct arrival *arrival);

/* A new communicator takes the messages that came for it before it was known. With the component's
 * lock held. */
void order_adopt_orphans(struct mca_pml_comm_t *comm);

/* For messages in parts. No lane overtakes another by so many messages. */
#define EARLY_MAX (1 << 24)

/* What is left to be done when no lock is held. */
struct order_rest {
    struct inbound *ready;   /* messages that found receives, in order */
    struct inbound *refused; /* and those that nothing will receive */
};

/* These with the peer's lock held. Finds the receive for an arrival, or keeps it; `kept` is the
 * inbound that holds the arrival already, or null. */
struct recv_request *order_deliver(struct arrival *arrival, struct inbound *kept,
                                   struct order_rest *rest);
/* Adds a message that came before its turn. False: one with its number is there. */
bool order_insert_early(struct peer *peer, struct inbound *inbound);
/* Delivers the early messages whose turn has come. */
void order_deliver_early(struct peer *peer, struct order_rest *rest);
/* No lock is held. */
void order_finish(struct order_rest *rest);

#endif
