/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a send, keeps those that wait for room, and handles the receiver's answers and MPI_Cancel.
 */
#ifndef MULTILANE_SEND_START_H
#define MULTILANE_SEND_START_H

#include "request/send_request.h"

/* The queue of each peer: messages that wait for room at the receiver (flow.h) or on a lane. */

/* A peer is contacted: starts with the units that it has promised. */
void send_queue_begin(struct peer *peer, uint32_t promised);

/* Does a message to this peer wait? Relaxed: sending past it is harmless, order comes from the
 * numbers. */
static inline bool send_queue_any(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed) != NULL;
}
/* Removes a request from the queue. False: it was not in it. */
bool send_queue_withdraw(struct send_request *request);
/* The peer is lost: ends the waiting sends with an error. No lock is held. */
void send_queue_lost(struct peer *peer);
/* WIRE_CREDIT: takes over the limits. False: impossible limits. */
bool send_queue_credit(struct peer *peer, const struct wire_credit *credit);

/* Starts the send; `is_numbered`: out.sequence is drawn already; `leaves`: the caller does not wait
 * for its end. An error leaves the request
 * unstarted. */
int send_request_start(struct send_request *request, bool is_numbered, bool leaves);

/* RTR; ACK or (not `taken`) NACK. False: they fit no request. */
bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key);
bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken);

int send_request_cancel(ompi_request_t *ompi, int flag);

#endif
