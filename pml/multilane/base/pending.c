/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of things to be tried again. It is the only place that tries again, and it is reached
 * only from opal_progress and the progress thread: so nothing recurses, however long a lane says
 * that it is busy. */
#include "base/pending.h"

#include "base/counter.h"
#include "base/work.h"

struct pending_queue pending_queue;

/* Atomic, because pending_progress looks at the first one without the lock; the lock orders all
 * else. */
static void first_set(struct pending **first, struct pending *item)
{
    __atomic_store_n(first, item, __ATOMIC_RELAXED);
}

int pending_progress(void)
{
    struct pending_queue *queue = &pending_queue;
    /* A look without the lock is enough: what is added meanwhile is seen by the next round. */
    if (!__atomic_load_n(&queue->first, __ATOMIC_RELAXED))
        return 0;

    OPAL_THREAD_LOCK(&queue->lock);
    struct pending *round = queue->first;
    first_set(&queue->first, NULL);
    queue->last = &queue->first;
    OPAL_THREAD_UNLOCK(&queue->lock);

    int done = 0;
    struct pending *kept = NULL, **kept_last = &kept;
    while (round) {
        struct pending *item = round;
        round = item->next;
        bool is_unsent = item->is_unsent; /* it may be gone when it is done */
        item->next = NULL;
        if (item->retry(item) == OMPI_ERR_OUT_OF_RESOURCE) {
            *kept_last = item;
            kept_last = &item->next;
        } else {
            done++;
            if (is_unsent)
                counter_add(&pending_queue.unsent, UINT64_C(0) - 1);
            work_ends();
        }
    }
    if (kept) {
        /* What is older goes before what was added meanwhile. */
        OPAL_THREAD_LOCK(&queue->lock);
        *kept_last = queue->first;
        if (!queue->first)
            queue->last = kept_last;
        first_set(&queue->first, kept);
        OPAL_THREAD_UNLOCK(&queue->lock);
    }
    return done;
}

void pending_open(void)
{
    struct pending_queue *queue = &pending_queue;
    OBJ_CONSTRUCT(&queue->lock, opal_mutex_t);
    queue->first = NULL;
    queue->last = &queue->first;
    queue->registered = false;
    queue->unsent = 0;
}

void pending_close(void)
{
    if (pending_queue.registered)
        opal_progress_unregister(pending_progress);
    OBJ_DESTRUCT(&pending_queue.lock);
}

void pending_listen(void)
{
    if (!__atomic_exchange_n(&pending_queue.registered, true,
                             __ATOMIC_RELAXED)) /* once is enough */
        opal_progress_register(pending_progress);
}

void pending_add(struct pending *item)
{
    struct pending_queue *queue = &pending_queue;
    item->next = NULL;
    if (item->is_unsent)
        counter_add(&pending_queue.unsent, 1);
    work_begins(); /* first: another thread may be done with it at once */
    OPAL_THREAD_LOCK(&queue->lock);
    first_set(queue->last, item); /* it is the first one where the queue is empty */
    queue->last = &item->next;
    OPAL_THREAD_UNLOCK(&queue->lock);
    pending_listen();
}

void pending_move_on(void)
{
    static bool is_inside;
    /* Not all of Open MPI's progress: a component's may be what calls us. With threads the caller
     * may hold locks that a completion takes; and what moves on may come here again. */
    if (opal_using_threads() || is_inside)
        return;
    is_inside = true;
    pending_progress();
    is_inside = false;
}
