/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control between processes: flow.h says how it works and why nobody waits for ever. */
#ifndef MULTILANE_CREDIT_H
#define MULTILANE_CREDIT_H

#include "match/inbound.h"
#include "peer/peer.h"
#include "request/send_request.h"

/* What a message took, or would take, while it waits for its receive. */
static inline uint32_t arrival_cost(const struct arrival *arrival)
{
    return flow_cost(arrival->type == WIRE_RTS ? 0 : arrival->size);
}

/* May the request's message go, and how? FLOW_WAIT: it is kept here, and sent from progress when
 * the receiver has room. */
enum flow_way credit_admit(struct send_request *request);
/* The request's lane has refused it: it is sent from progress, before those that come later. */
void credit_await_lane(struct send_request *request);

/* Does any message to this peer wait? Relaxed: one that is sent past it comes early, no more. */
static inline bool credit_any_waits(const struct peer *peer)
{
    return __atomic_load_n(&peer->waiting, __ATOMIC_RELAXED) != NULL;
}
/* A request that will not be sent any more. True: it was waiting. */
bool credit_withdraw(struct send_request *request);
/* The peer is lost: ends in an error what waits for room there. No lock is held. */
void credit_lost(struct peer *peer);
/* The peer has nothing to send, for now: what it has of the pool is for the others. No lock is
 * held. */
void credit_end(struct peer *peer);

/* The receiver tells its limits. False: they cannot be. */
bool credit_arrived(struct peer *peer, const struct wire_credit *credit);

/* With the peer's lock held: its sender may have no room left, and a receive may wait for it. */
void credit_look(struct peer *peer);

/* With the peer's lock held: a message of that cost has met its receive at once, or is kept in
 * `inbound`, or what was kept has met it or is thrown away. */
static inline void credit_matched(struct peer *peer, uint32_t cost)
{
    if (OPAL_UNLIKELY(flow_matched(&peer->in, cost)))
        __atomic_store_n(&peer->credit_due, true, __ATOMIC_RELAXED); /* credit_tell_if_due */
    if (OPAL_UNLIKELY(peer->in.held != 0))
        credit_look(peer);
}
void credit_hold(struct peer *peer, struct inbound *inbound);
void credit_release(struct inbound *inbound);

void credit_tell(struct peer *peer);

/* Tells the sender, if that is due. No lock is held. Relaxed: whoever made it due comes here. */
static inline void credit_tell_if_due(struct peer *peer)
{
    if (OPAL_UNLIKELY(__atomic_load_n(&peer->credit_due, __ATOMIC_RELAXED)))
        credit_tell(peer);
}

/* A peer is met: what it promises us, and we promise it. */
void credit_begin(struct peer *peer, uint32_t promised);

#endif
