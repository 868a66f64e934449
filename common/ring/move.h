/* SPDX-License-Identifier: BSD-3-Clause */
/* How a sender goes on in another ring, larger or smaller, without losing a message or their order.
 */
#ifndef MULTILANE_RING_MOVE_H
#define MULTILANE_RING_MOVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The sender writes where the next ring is, and announces it. From then on it writes no message
 * into the old ring. The receiver that sees the announcement reads the old ring until it is empty,
 * then begins with the new one and says so; only then the sender may use the old ring's memory for
 * something else, and announce again. So there are at most two rings at a time, and the receiver's
 * look at the ring that it reads knows nothing of all this.
 *
 * A receiver that cannot map the new ring clears the first one, which is its own memory, reads on
 * there, and says so. The sender then takes its messages out of the refused ring and sends them
 * again in the first one. test/unit/ring_move_model.c walks all interleavings. */
struct ring_move {
    /* Rings announced so far. Written by the sender: release, after the last message in the old
     * ring and after `lines` and `place`. Read by the receiver: acquire (ring_move_seen). */
    _Atomic uint32_t announced;
    /* The announced ring that the receiver reads. Written by the receiver: release, after its last
     * look at the old ring. Read by the sender: acquire (ring_move_done). */
    _Atomic uint32_t taken;
    /* The announced ring that the receiver cannot read. Written by the receiver: release, after it
     * has cleared the first ring. Read by the sender: acquire (ring_move_refused). */
    _Atomic uint32_t refused;
    /* Of the ring announced last. Written by the sender while the two words above are equal. */
    uint32_t lines;
    uint64_t place;
};

/* Sender: whether the receiver reads the ring announced last. */
static inline bool ring_move_done(const struct ring_move *move, uint32_t announced)
{
    return atomic_load_explicit(&move->taken, memory_order_acquire) == announced;
}

/* Sender, once ring_move_done: the messages that follow are in that ring. */
static inline void ring_move_announce(struct ring_move *move, uint32_t announced, uint32_t lines,
                                      uint64_t place)
{
    move->lines = lines;
    move->place = place;
    atomic_store_explicit(&move->announced, announced, memory_order_release);
}

/* Receiver: rings announced. If that is another than the one it reads, no message comes into that
 * one any more; those that came before are seen after this. */
static inline uint32_t ring_move_seen(const struct ring_move *move)
{
    return atomic_load_explicit(&move->announced, memory_order_acquire);
}

/* Receiver, when it will not look at the old ring again. */
static inline void ring_move_take(struct ring_move *move, uint32_t announced)
{
    atomic_store_explicit(&move->taken, announced, memory_order_release);
}

/* Receiver, when it looks at the first ring again, which it has cleared. */
static inline void ring_move_refuse(struct ring_move *move, uint32_t announced)
{
    atomic_store_explicit(&move->refused, announced, memory_order_release);
}

/* Sender: whether the receiver reads the first ring instead of the one announced last. */
static inline bool ring_move_refused(const struct ring_move *move, uint32_t announced)
{
    return !ring_move_done(move, announced) &&
           atomic_load_explicit(&move->refused, memory_order_acquire) == announced;
}

/* Sender, once ring_move_refused: the messages that follow are in the first ring, and it may
 * announce again. Relaxed: only the sender reads it. */
static inline void ring_move_return(struct ring_move *move, uint32_t announced)
{
    atomic_store_explicit(&move->taken, announced, memory_order_relaxed);
}

#endif
