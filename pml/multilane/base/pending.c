/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what is under way and wakes the thread that waits for it; and the only place that tries
 * again what a lane refused. Only opal_progress, the progress thread and pending_move_on come here,
 * so nothing recurses while a lane stays busy. */
#include "base/pending.h"

#include <pthread.h>

#include "base/counter.h"

/* Counts what is under way and wakes the thread that waits for it. */

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

struct pending_queue pending_queue = {.lock = OPAL_MUTEX_STATIC_INIT};

/* Relaxed, both: the lock orders all but the look of pending_progress, which is a hint. */
static struct pending *first_of(const struct pending_queue *queue)
{
    return atomic_load_explicit(&queue->first, memory_order_relaxed);
}

static void first_set(struct pending_queue *queue, struct pending *item)
{
    atomic_store_explicit(&queue->first, item, memory_order_relaxed);
}

int pending_progress(void)
{
    struct pending_queue *queue = &pending_queue;
    /* Without the lock: the next call sees what another thread adds now. */
    if (!first_of(queue))
        return 0;

    OPAL_THREAD_LOCK(&queue->lock);
    struct pending *round = first_of(queue);
    first_set(queue, NULL);
    queue->last = NULL;
    OPAL_THREAD_UNLOCK(&queue->lock);

    int done = 0;
    struct pending *kept = NULL, *kept_last = NULL;
    while (round) {
        struct pending *item = round;
        round = item->next;
        bool is_unsent = item->is_unsent; /* the item may be freed by retry */
        item->next = NULL;
        if (item->retry(item) == OMPI_ERR_OUT_OF_RESOURCE) {
            if (kept)
                kept_last->next = item;
            else
                kept = item;
            kept_last = item;
        } else {
            done++;
            if (is_unsent)
                counter_add(&pending_queue.unsent, UINT64_C(0) - 1);
            work_ends();
        }
    }
    if (kept) {
        /* The older items go before those added meanwhile. */
        OPAL_THREAD_LOCK(&queue->lock);
        kept_last->next = first_of(queue);
        if (!queue->last)
            queue->last = kept_last;
        first_set(queue, kept);
        OPAL_THREAD_UNLOCK(&queue->lock);
    }
    return done;
}

void pending_close(void)
{
    struct pending *next;
    pending_queue.is_closed = true;
    for (struct pending *item = first_of(&pending_queue); item; item = next) {
        next = item->next;
        if (item->frees_itself)
            item->retry(item);
    }
    atomic_init(&pending_queue.first, NULL);
    pending_queue.last = NULL;
    atomic_init(&pending_queue.unsent, 0);
    pending_queue.is_closed = false;
}

void pending_add(struct pending *item)
{
    struct pending_queue *queue = &pending_queue;
    item->next = NULL;
    if (item->is_unsent)
        counter_add(&pending_queue.unsent, 1);
    work_begins(); /* before the item is in the queue: another thread may finish it at once */
    OPAL_THREAD_LOCK(&queue->lock);
    if (queue->last)
        queue->last->next = item;
    else
        first_set(queue, item);
    queue->last = item;
    OPAL_THREAD_UNLOCK(&queue->lock);
}

void pending_move_on(void)
{
    static bool is_inside;
    /* Only this queue, not all of opal_progress: a component's progress may be the caller. Not
     * with threads: the caller may hold locks that a completion takes. Not again from inside. */
    if (opal_using_threads() || is_inside)
        return;
    is_inside = true;
    pending_progress();
    is_inside = false;
}
