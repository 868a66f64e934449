/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control at the receiver. flow.h explains it; send_queue.h is the sender's part. */
#ifndef MULTILANE_CREDIT_H
#define MULTILANE_CREDIT_H

#include "peer/peer.h"

/* The peer sends nothing for now: its part of the pool goes back. No lock is held. */
void credit_end(struct peer *peer);

/* With the peer's lock held: where its limits are used up, starts to look for a receive that
 * waits for it. */
void credit_look(struct peer *peer);

/* With the peer's lock held, for a message of that cost. matched: a receive matched it at
 * arrival. hold: it is kept. release: a kept one was matched or thrown away. */
static inline void credit_matched(struct peer *peer, uint32_t cost)
{
    if (OPAL_UNLIKELY(flow_matched(&peer->in, cost)))
        atomic_store_explicit(&peer->credit_due, true,
                              memory_order_relaxed); /* credit_tell_if_due */
    if (OPAL_UNLIKELY(peer->in.held != 0))
        credit_look(peer);
}
void credit_hold(struct peer *peer, uint32_t cost);
void credit_release(struct peer *peer, uint32_t cost);

void credit_tell(struct peer *peer);

/* Tells the peer its limits, if that is due. No lock is held. Relaxed: the thread that set
 * credit_due comes here. */
static inline void credit_tell_if_due(struct peer *peer)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->credit_due, memory_order_relaxed)))
        credit_tell(peer);
}

/* A peer is met: starts with the limits promised to it. */
void credit_begin(struct peer *peer);

#endif
