/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what is under way and wakes the thread that waits for it. */
#include "base/work.h"

#include <stdatomic.h>
#include <pthread.h>

bool work_is_counted;

static struct {
    /* Sequentially consistent, in work_count and work_wait: the waiting thread sets is_awaited
     * and then reads under_way; a thread with work adds to under_way and then reads is_awaited.
     * One of them sees the other. */
    _Atomic uint64_t under_way;
    _Atomic bool is_awaited;
    _Atomic bool has_ended;

    pthread_mutex_t lock; /* for `changed`, which signals a change of the above; a leaf */
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
    if (atomic_fetch_add_explicit(&state.under_way, 1, memory_order_seq_cst) == 0 &&
        atomic_load_explicit(&state.is_awaited, memory_order_seq_cst)) /* both: work_wait */
        wake();
}

void work_uncount(void)
{
    atomic_fetch_sub_explicit(&state.under_way, 1, memory_order_seq_cst);
}

static bool is_under_way(void)
{
    return atomic_load_explicit(&state.under_way, memory_order_seq_cst) > 0; /* work_count */
}

static bool has_ended(void)
{
    return atomic_load_explicit(&state.has_ended,
                                memory_order_relaxed); /* work_end; the lock orders it */
}

bool work_wait(void)
{
    if (OPAL_LIKELY(is_under_way()))
        return !has_ended();
    pthread_mutex_lock(&state.lock);
    atomic_store_explicit(&state.is_awaited, true, memory_order_seq_cst); /* work_count */
    while (!is_under_way() && !has_ended())
        pthread_cond_wait(&state.changed, &state.lock);
    atomic_store_explicit(&state.is_awaited, false, memory_order_seq_cst);
    pthread_mutex_unlock(&state.lock);
    return !has_ended();
}

void work_end(void)
{
    atomic_store_explicit(&state.has_ended, true, memory_order_relaxed); /* has_ended */
    wake();
}

void work_reset(void)
{
    atomic_init(&state.under_way, 0);
    atomic_init(&state.is_awaited, false);
    atomic_init(&state.has_ended, false);
}
