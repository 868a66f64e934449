/* SPDX-License-Identifier: BSD-3-Clause */
/* A bell: words whose bits say which peer has something for their owner, and a word on which the
 * owner sleeps until one of the bits is set. */
#ifndef MULTILANE_BELL_H
#define MULTILANE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How no wake-up is lost.
 *
 *   a peer that rings                   the owner, before it sleeps
 *   1. publishes its message            1. asleep = 1
 *   2. sets its bit                     2. looks at all bits: one is set, no sleep
 *   3. reads asleep: 0, done            3. sleeps while asleep is 1 (futex: the kernel
 *   4. asleep = 0, wakes the owner         compares and sleeps in one step)
 *
 * Step 2 of the one, and 1 and 2 of the other, are sequentially consistent. So a processor that
 * keeps a store back while a later load goes ahead cannot hide both from each other: either the
 * owner sees the bit, or the peer sees that the owner is about to sleep. Step 2 of the peer is a
 * read-modify-write, which is the fence that this needs; on x86 step 3 is then a plain load, of
 * the same cache line.
 *
 * A message that its sender does not ring for (ring_is_attended) has no part in this: an owner that
 * sleeps attends to no ring, and has not for longer than a store can stay in its processor.
 *
 * test/unit/bell_model.c walks all interleavings, with stores kept back. */

/* Sets the bit. True: the owner sleeps, and the caller wakes it. Release: what was written before
 * is seen by the owner that takes the bit. */
static inline bool bell_ring(_Atomic uint64_t *word, uint64_t bit, _Atomic uint32_t *asleep)
{
    atomic_fetch_or_explicit(word, bit, memory_order_seq_cst); /* partner: bell_arm */
    if (__builtin_expect(atomic_load_explicit(asleep, memory_order_seq_cst) == 0, 1))
        return false;
    /* Relaxed: of several that ring now, one wakes. */
    return atomic_exchange_explicit(asleep, 0, memory_order_relaxed) != 0;
}

/* True: no bit is set, and the caller may sleep while `asleep` is not 0. */
static inline bool bell_arm(_Atomic uint64_t *words, uint32_t word_count, _Atomic uint32_t *asleep)
{
    uint64_t any = 0;

    atomic_store_explicit(asleep, 1, memory_order_seq_cst); /* partner: bell_ring */
    for (uint32_t i = 0; i < word_count; i++)
        any |= atomic_load_explicit(&words[i], memory_order_seq_cst); /* likewise */
    return any == 0;
}

#endif
