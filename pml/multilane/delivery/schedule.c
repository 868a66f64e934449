/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of deliveries that progress looks at. */
#include "delivery/schedule.h"

static struct {
    opal_mutex_t lock; /* guards first; a leaf */
    struct delivery *first;
    int (*progress)(void);
    uint64_t active_ns; /* atomic: written by the thread that looks, read by all */
    bool listens;       /* atomic: Open MPI's progress calls `progress` */
    bool begun;         /* atomic */
    bool had_any;       /* atomic */
} schedule;

uint64_t active_time_ns(void)
{
    return __atomic_load_n(&schedule.active_ns, __ATOMIC_RELAXED); /* active_time_set */
}

void active_time_set(uint64_t ns)
{
    __atomic_store_n(&schedule.active_ns, ns, __ATOMIC_RELAXED);
}

void schedule_add(struct delivery *delivery)
{
    /* Cleared before the look at the delivery takes its lock, which we hold: so if it is still set,
     * that look is yet to come. */
    if (__atomic_load_n(&delivery->watched, __ATOMIC_RELAXED))
        return;
    OPAL_THREAD_LOCK(&schedule.lock);
    /* Acquire, against who took the list: it is done with next_watched. */
    if (!__atomic_load_n(&delivery->watched, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&delivery->watched, true, __ATOMIC_RELAXED);
        delivery->next_watched = schedule.first;
        __atomic_store_n(&schedule.first, delivery, __ATOMIC_RELAXED); /* schedule_has_any */
        __atomic_store_n(&schedule.had_any, true, __ATOMIC_RELAXED);   /* schedule_had_any */
    }
    OPAL_THREAD_UNLOCK(&schedule.lock);
}

struct delivery *schedule_take(void)
{
    OPAL_THREAD_LOCK(&schedule.lock);
    struct delivery *all = schedule.first;
    __atomic_store_n(&schedule.first, NULL, __ATOMIC_RELAXED);
    OPAL_THREAD_UNLOCK(&schedule.lock);
    return all;
}

bool schedule_has_any(void)
{
    return __atomic_load_n(&schedule.first, __ATOMIC_RELAXED) != NULL;
}

bool schedule_had_any(void)
{
    return __atomic_load_n(&schedule.had_any, __ATOMIC_RELAXED);
}

void schedule_init(int (*progress)(void))
{
    OBJ_CONSTRUCT(&schedule.lock, opal_mutex_t);
    schedule.progress = progress;
}

void schedule_listen(void)
{
    if (!__atomic_exchange_n(&schedule.listens, true, __ATOMIC_RELAXED)) /* once is enough */
        opal_progress_register(schedule.progress);
}

void schedule_begin(void)
{
    schedule_listen();
    __atomic_store_n(&schedule.begun, true, __ATOMIC_RELAXED); /* schedule_has_begun */
}

bool schedule_has_begun(void)
{
    return __atomic_load_n(&schedule.begun, __ATOMIC_RELAXED);
}

void schedule_fini(void)
{
    if (schedule.listens)
        opal_progress_unregister(schedule.progress);
    schedule.listens = schedule.begun = schedule.had_any = false;
    schedule.first = NULL;
    OBJ_DESTRUCT(&schedule.lock);
}
