/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of deliveries for progress. */
#include "delivery/schedule.h"

#include <stdatomic.h>

static struct {
    opal_mutex_t lock; /* guards first; a leaf */
    struct delivery *_Atomic first;
    int (*progress)(void);
    _Atomic uint64_t active_ns; /* written by the thread in watch.c, read by all */
    _Atomic bool listens;       /* registered with opal_progress */
    _Atomic bool begun;
    _Atomic bool had_any;
} schedule;

uint64_t active_time_ns(void)
{
    return atomic_load_explicit(&schedule.active_ns, memory_order_relaxed); /* active_time_set */
}

void active_time_set(uint64_t ns)
{
    atomic_store_explicit(&schedule.active_ns, ns, memory_order_relaxed);
}

void schedule_add(struct delivery *delivery)
{
    /* watch.c clears it before it takes the delivery's lock, which the caller holds: where it is
     * still set, that look comes after this. */
    if (atomic_load_explicit(&delivery->watched, memory_order_relaxed))
        return;
    OPAL_THREAD_LOCK(&schedule.lock);
    /* Acquire, against the release in watch.c: that thread has read next_watched. */
    if (!atomic_load_explicit(&delivery->watched, memory_order_acquire)) {
        atomic_store_explicit(&delivery->watched, true, memory_order_relaxed);
        delivery->next_watched = atomic_load_explicit(&schedule.first, memory_order_relaxed);
        atomic_store_explicit(&schedule.first, delivery,
                              memory_order_relaxed);                          /* schedule_has_any */
        atomic_store_explicit(&schedule.had_any, true, memory_order_relaxed); /* schedule_had_any */
    }
    OPAL_THREAD_UNLOCK(&schedule.lock);
}

struct delivery *schedule_take(void)
{
    OPAL_THREAD_LOCK(&schedule.lock);
    struct delivery *all = atomic_load_explicit(&schedule.first, memory_order_relaxed);
    atomic_store_explicit(&schedule.first, NULL, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&schedule.lock);
    return all;
}

bool schedule_has_any(void)
{
    return atomic_load_explicit(&schedule.first, memory_order_relaxed) != NULL;
}

bool schedule_had_any(void)
{
    return atomic_load_explicit(&schedule.had_any, memory_order_relaxed);
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
    atomic_init(&schedule.had_any, false);
    atomic_init(&schedule.first, NULL);
    OBJ_DESTRUCT(&schedule.lock);
}
