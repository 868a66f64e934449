/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what is under way, and wakes who waits for it. */
#include "base/work.h"

#include <pthread.h>

bool work_is_counted;

static struct {
    /* Atomic, sequentially consistent: who waits says so and then looks for work; whoever has work
     * counts it and then looks whether anybody waits. One sees the other. */
    uint64_t under_way;
    bool is_awaited;
    bool has_ended; /* atomic */

    pthread_mutex_t lock; /* for `changed`, which says that one of the above did; a leaf */
    pthread_cond_t changed;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wake(void)
{
    pthread_mutex_lock(&state.lock);
    pthread_cond_signal(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

void work_count(void)
{
    if (__atomic_fetch_add(&state.under_way, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_load_n(&state.is_awaited, __ATOMIC_SEQ_CST)) /* both: work_wait */
        wake();
}

void work_uncount(void)
{
    __atomic_fetch_sub(&state.under_way, 1, __ATOMIC_SEQ_CST);
}

static bool is_under_way(void)
{
    return __atomic_load_n(&state.under_way, __ATOMIC_SEQ_CST) > 0; /* work_count */
}

static bool has_ended(void)
{
    return __atomic_load_n(&state.has_ended, __ATOMIC_RELAXED); /* work_end; the lock orders it */
}

bool work_wait(void)
{
    if (OPAL_LIKELY(is_under_way()))
        return !has_ended();
    pthread_mutex_lock(&state.lock);
    __atomic_store_n(&state.is_awaited, true, __ATOMIC_SEQ_CST); /* work_count */
    while (!is_under_way() && !has_ended())
        pthread_cond_wait(&state.changed, &state.lock);
    __atomic_store_n(&state.is_awaited, false, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&state.lock);
    return !has_ended();
}

void work_end(void)
{
    __atomic_store_n(&state.has_ended, true, __ATOMIC_RELAXED); /* has_ended */
    wake();
}

void work_reset(void)
{
    state.under_way = 0;
    state.is_awaited = state.has_ended = false;
}
