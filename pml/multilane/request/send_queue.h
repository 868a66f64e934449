/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that wait for room at their receiver (flow.h) or on a lane: a queue for each peer. */
#ifndef MULTILANE_SEND_QUEUE_H
#define MULTILANE_SEND_QUEUE_H

#include "request/send_request.h"

/* A peer is met: what it promises us. */
void send_queue_begin(struct peer *peer, uint32_t promised);

/* May the request's message go, and how? FLOW_WAIT: it is kept here, and sent from progress when
 * the receiver has room. */
enum flow_verdict send_queue_admit(struct send_request *request);
/* The request's lane has refused it: it is sent from progress, before those that come later. */
void send_queue_await_lane(struct send_request *request);

/* Does any message to this peer wait? Relaxed: one that is sent past it comes early, no more. */
static inline bool send_queue_any(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed) != NULL;
}
/* A request that will not be sent any more. True: it was waiting. */
bool send_queue_withdraw(struct send_request *request);
/* The peer is lost: ends in an error what waits for room there. No lock is held. */
void send_queue_lost(struct peer *peer);
/* The receiver tells its limits. False: they cannot be. */
bool send_queue_credit(struct peer *peer, const struct wire_credit *credit);

#endif
