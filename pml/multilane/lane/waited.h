/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads have waited so far. While that is one only, a request that this thread completes
 * wakes no other, and needs no fence. */
#ifndef MULTILANE_WAITED_H
#define MULTILANE_WAITED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Written by each thread that begins to wait, read by each that completes a request. A second
 * thread that begins to wait meanwhile loses no wake-up:
 *
 *   the first, which completes          the second, which waits
 *   1. completes a request              1. several = true
 *   2. reads several: false, done       2. looks at its request, and yields, for 500 us at least
 *                                       3. sleeps
 *
 * There is no fence between 1 and 2 of the first, so its store may come to memory after its load
 * was made, which was before step 1 of the second. But no store stays in a processor for as long as
 * step 2 of the second takes (the same as in btl/shm/attended.c), so that one finds its request
 * complete before it sleeps. test/unit/bell_model.c walks that, with stores kept back. */
struct waited {
    _Atomic uintptr_t first; /* a number of that thread's own; 0: none. Set once */
    _Atomic bool several;    /* another one too. It stays */
};

static inline void waited_mark(struct waited *waited, uintptr_t mine)
{
    uintptr_t first = atomic_load_explicit(&waited->first, memory_order_relaxed);
    if (first == mine)
        return;
    /* Relaxed, both: only the thread that wrote it finds its own number there. */
    if (first == 0 && atomic_compare_exchange_strong_explicit(
                          &waited->first, &first, mine, memory_order_relaxed, memory_order_relaxed))
        return;
    /* Sequentially consistent: in memory before the thread's wait begins. */
    if (!atomic_load_explicit(&waited->several, memory_order_relaxed))
        atomic_store_explicit(&waited->several, true, memory_order_seq_cst);
}

/* Whether a thread may wait that is not this one. After a request is complete. */
static inline bool waited_others(const struct waited *waited, uintptr_t mine)
{
    atomic_signal_fence(memory_order_seq_cst); /* the compiler reads it after the completion */
    return atomic_load_explicit(&waited->first, memory_order_relaxed) != mine ||
           atomic_load_explicit(&waited->several, memory_order_relaxed);
}

#endif
