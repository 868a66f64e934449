/* SPDX-License-Identifier: BSD-3-Clause */
/* How much the senders of large messages may have under way to this process where several send at
 * once. What goes beyond it fills the queues of the network, in which small messages then wait, or
 * is dropped by a switch. So the receiver, which alone sees all senders, divides among them what
 * its lane brings in a few milliseconds (the B_L of the cluster model) and tells each its part with
 * WIRE_SEEN; stripe.h holds back what is more. A sender that is alone is not bounded. */
#ifndef MULTILANE_INFLOW_H
#define MULTILANE_INFLOW_H

#include "peer/peer.h"

/* A piece of a large message arrived on a lane (null: on no lane of the peer). */
void inflow_arrived(struct lane *lane, size_t size);

/* This process is about to ask the peer for a large message. */
void inflow_asked(struct peer *peer);

/* The modules of BTLs go. */
void inflow_forget(void);

#endif
