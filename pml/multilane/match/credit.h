/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control, the receiver's end: flow.h says how it works and why no process waits for ever. The
 * sender's end is send_queue.h. */
#ifndef MULTILANE_CREDIT_H
#define MULTILANE_CREDIT_H

#include "peer/peer.h"

/* The peer has nothing to send at the moment: what it has of the pool is for the others. No lock is
 * held. */
void credit_end(struct peer *peer);

/* With the peer's lock held: its sender may have no room left, and a receive may wait for it. */
void credit_look(struct peer *peer);

/* With the peer's lock held: a message of that cost has met its receive at once, or is kept, or
 * what was kept has met it or is thrown away. */
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

/* Tells the sender, if that is due. No lock is held. Relaxed: the thread that made it due comes
 * here. */
static inline void credit_tell_if_due(struct peer *peer)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->credit_due, memory_order_relaxed)))
        credit_tell(peer);
}

/* A peer is met: what we promise it. */
void credit_begin(struct peer *peer);

#endif
