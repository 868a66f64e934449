/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of peers for progress. */
#include "liveness/schedule.h"

struct liveness *_Atomic schedule_first;

static struct {
    opal_mutex_t lock; /* guards schedule_first; a leaf */
    int (*progress)(void);
    _Atomic uint64_t active_ns; /* written by the thread in watch.c, read by all */
    _Atomic bool listens;       /* registered with opal_progress */
    _Atomic bool begun;
} schedule;

uint64_t active_time_ns(void)
{
    return atomic_load_explicit(&schedule.active_ns, memory_order_relaxed); /* active_time_set */
}

void active_time_set(uint64_t ns)
{
    atomic_store_explicit(&schedule.active_ns, ns, memory_order_relaxed);
}

void schedule_add(struct liveness *liveness)
{
    /* watch.c clears it before it takes the lock of the liveness, which the caller holds: where it
     * is still set, that look comes after this. */
    if (atomic_load_explicit(&liveness->watched, memory_order_relaxed))
        return;
    OPAL_THREAD_LOCK(&schedule.lock);
    /* Acquire, against the release in watch.c: that thread has read next_watched. */
    if (!atomic_load_explicit(&liveness->watched, memory_order_acquire)) {
        atomic_store_explicit(&liveness->watched, true, memory_order_relaxed);
        liveness->next_watched = atomic_load_explicit(&schedule_first, memory_order_relaxed);
        atomic_store_explicit(&schedule_first, liveness,
                              memory_order_relaxed); /* schedule_has_any */
    }
    OPAL_THREAD_UNLOCK(&schedule.lock);
}

struct liveness *schedule_take(void)
{
    OPAL_THREAD_LOCK(&schedule.lock);
    struct liveness *all = atomic_load_explicit(&schedule_first, memory_order_relaxed);
    atomic_store_explicit(&schedule_first, NULL, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&schedule.lock);
    return all;
}

void schedule_init(int (*progress)(void))
{
    OBJ_CONSTRUCT(&schedule.lock, opal_mutex_t);
    schedule.progress = progress;
}

void schedule_listen(void)
{
    if (!atomic_exchange_explicit(&schedule.listens, true,
                                  memory_order_relaxed)) /* once is enough */
        opal_progress_register(schedule.progress);
}

void schedule_begin(void)
{
    schedule_listen();
    atomic_store_explicit(&schedule.begun, true, memory_order_relaxed); /* schedule_has_begun */
}

bool schedule_has_begun(void)
{
    return atomic_load_explicit(&schedule.begun, memory_order_relaxed);
}

void schedule_fini(void)
{
    if (atomic_load_explicit(&schedule.listens, memory_order_relaxed))
        opal_progress_unregister(schedule.progress);
    atomic_init(&schedule.listens, false);
    atomic_init(&schedule.begun, false);
    atomic_init(&schedule_first, NULL);
    OBJ_DESTRUCT(&schedule.lock);
}
