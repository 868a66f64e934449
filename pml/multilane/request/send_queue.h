/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of each peer: messages that wait for room at the receiver (flow.h) or on a lane. */
#ifndef MULTILANE_SEND_QUEUE_H
#define MULTILANE_SEND_QUEUE_H

#include "request/send_request.h"

/* A peer is met: starts with the units that it has promised. */
void send_queue_begin(struct peer *peer, uint32_t promised);

/* May the message go, and how? FLOW_WAIT: it is queued, and progress sends it when the receiver
 * has room. */
enum flow_verdict send_queue_admit(struct send_request *request);
/* The lane has refused the message: queues it before all later ones. */
void send_queue_await_lane(struct send_request *request);

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

#endif
