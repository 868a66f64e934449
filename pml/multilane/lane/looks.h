/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the lanes that found nothing, counted. A receive notes the count when it is posted: a
 * message that is found before two more looks may have lain there while the receiver did something
 * else, and its time says nothing of its way. */
#ifndef MULTILANE_LOOKS_H
#define MULTILANE_LOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern __attribute__((visibility("hidden"))) _Atomic uint32_t looks;

/* Counts the rounds of Open MPI's progress as well. */
void looks_begin(void);
void looks_end(void);

/* Relaxed, all: a number of its own. Where two threads look at once one look may be lost, which
 * only makes them fewer. */
static inline void looks_add(void)
{
    atomic_store_explicit(&looks, atomic_load_explicit(&looks, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static inline uint32_t looks_now(void)
{
    return atomic_load_explicit(&looks, memory_order_relaxed);
}

/* Two, not one: a round may count before it calls the lanes. */
static inline bool looks_are_few(uint32_t since)
{
    return looks_now() - since < 2;
}

#endif
