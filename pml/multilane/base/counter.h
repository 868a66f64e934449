/* SPDX-License-Identifier: BSD-3-Clause */
/* A count for people. */
#ifndef MULTILANE_COUNTER_H
#define MULTILANE_COUNTER_H

#include "common/compat/pml.h"

/* By any thread; each counter is a number of its own, and is read relaxed. */
static inline void counter_add(uint64_t *counter, uint64_t more)
{
    if (OPAL_UNLIKELY(opal_using_threads()))
        __atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
    else
        *counter += more;
}

#endif
