/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's locks, threads and events, whose headers moved between 4.1 and 5.0. */
#ifndef MULTILANE_COMPAT_THREADS_H
#define MULTILANE_COMPAT_THREADS_H

#include "common/compat/compat.h"

#if COMPAT_SERIES >= 50000
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/mca/threads/threads.h"
#include "opal/mca/threads/wait_sync.h"
#else
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#include "opal/threads/threads.h"
#include "opal/threads/wait_sync.h"
#endif

#include "common/lock/bias.h"

/* Locks of a component that are mostly taken by one thread. All are biased together. */
extern __attribute__((visibility("hidden"))) struct bias component_bias;

static inline void biased_lock(opal_mutex_t *mutex)
{
    if (OPAL_UNLIKELY(opal_using_threads()) && !bias_enter(&component_bias, thread_number()))
        opal_mutex_lock(mutex);
}

/* 0: taken. */
static inline int biased_trylock(opal_mutex_t *mutex)
{
    if (OPAL_LIKELY(!opal_using_threads()))
        return 0;
    uintptr_t me = thread_number();
    if (!bias_is_free(&component_bias, me))
        return 1;
    return bias_enter(&component_bias, me) ? 0 : opal_mutex_trylock(mutex);
}

static inline void biased_unlock(opal_mutex_t *mutex)
{
    if (OPAL_UNLIKELY(opal_using_threads()) && !bias_leave(&component_bias, thread_number()))
        opal_mutex_unlock(mutex);
}

/* Before a lock that is taken outside of biased ones, and also inside of them (common/lock/bias.h).
 */
static inline void biased_claim(void)
{
    if (OPAL_UNLIKELY(opal_using_threads()))
        (void) bias_claim(&component_bias, thread_number());
}

/* The same for a thread that does not wait. False: another one has the bias. */
static inline bool biased_try_claim(void)
{
    return OPAL_LIKELY(!opal_using_threads()) || bias_is_free(&component_bias, thread_number());
}

#endif
