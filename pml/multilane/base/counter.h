/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters that any thread adds to. */
#ifndef MULTILANE_COUNTER_H
#define MULTILANE_COUNTER_H

#include <stdatomic.h>

#include "common/compat/pml.h"

/* Returns the count before. Relaxed, also in counter_read and counter_set: each counter is a number
 * of its own and orders nothing. Without threads it is a plain addition: one instruction, where gcc
 * makes three of a relaxed load and store. */
static inline uint64_t counter_add(_Atomic uint64_t *counter, uint64_t more)
{
    if (OPAL_UNLIKELY(opal_using_threads()))
        return atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
    uint64_t *plain = (uint64_t *) counter, before = *plain;
    *plain = before + more;
    return before;
}

static inline void counter_add32(_Atomic uint32_t *counter, uint32_t more)
{
    if (OPAL_UNLIKELY(opal_using_threads()))
        atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
    else
        *(uint32_t *) counter += more;
}

static inline uint64_t counter_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_set(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

#endif
