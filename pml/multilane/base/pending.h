/* SPDX-License-Identifier: BSD-3-Clause */
/* Work under way, and the queue of what a full lane refused. */
#ifndef MULTILANE_PENDING_H
#define MULTILANE_PENDING_H

#include <stdatomic.h>

#include "common/compat/pml.h"

/* Counts what is under way: requests, and items of the queue below. Only a progress thread needs
 * the count, to know when to sleep; without one it costs a branch. */

/* Set once, before any work or progress thread exists; read-only from then on. */
extern __attribute__((visibility("hidden"))) bool work_is_counted;

void work_count(void);
void work_uncount(void);

/* Work is under way between these two calls. */
static inline void work_begins(void)
{
    if (OPAL_UNLIKELY(work_is_counted))
        work_count();
}

static inline void work_ends(void)
{
    if (OPAL_UNLIKELY(work_is_counted))
        work_uncount();
}

/* The same for a request with its member `counted`: a cancelled one may end twice. */
static inline void work_begins_for(bool *counted)
{
    *counted = work_is_counted;
    work_begins();
}

static inline void work_ends_for(bool *counted)
{
    if (OPAL_LIKELY(!*counted))
        return;
    *counted = false;
    work_uncount();
}

/* Sleeps until work is under way. False: work_end was called. One thread only. */
bool work_wait(void);

/* Ends work_wait. */
void work_end(void);

/* Back to the start: nothing is under way. No thread may be in any of these functions. */
void work_reset(void);

/* --- the queue ---------------------------------------------------------------------------------
 * What a full lane refused: kept in order, tried again from progress. Each item counts as work
 * under way. */

/* Work to try again. It is in the queue at most once. */
struct pending {
    struct pending *next;
    /* OMPI_ERR_OUT_OF_RESOURCE: stays in the queue. Anything else: it has left the queue, and
     * the object may be freed. */
    int (*retry)(struct pending *self);
    bool is_unsent;    /* holds bytes for another process: counted, see pending_move_on */
    bool frees_itself; /* tried once more when the queue is closed, only to free what it has */
};

struct pending_queue {
    opal_mutex_t lock;             /* guards first and last */
    struct pending *_Atomic first; /* pending_progress looks at it without the lock */
    struct pending *last;          /* null where the queue is empty */
    _Atomic uint64_t unsent;       /* how many of the items hold bytes for other processes */
    bool is_closed;                /* MPI ends: nothing is sent or reported any more */
};

/* Hidden, so that it is reached without the global offset table. */
extern __attribute__((visibility("hidden"))) struct pending_queue pending_queue;

/* Empties the queue, when MPI ends. */
void pending_close(void);
/* Tries all items once; returns how many are done. Progress calls it. */
int pending_progress(void);
void pending_add(struct pending *item);

/* Do bytes for another process wait here for a call that makes progress? Relaxed: what another
 * thread adds at this moment waits for the next call. */
static inline bool pending_any_unsent(void)
{
    return atomic_load_explicit(&pending_queue.unsent, memory_order_relaxed) != 0;
}

/* Does anything wait here? Relaxed: a hint. */
static inline bool pending_any(void)
{
    return atomic_load_explicit(&pending_queue.first, memory_order_relaxed) != NULL;
}

/* Tries all items once, from a call that does not wait itself. */
void pending_move_on(void);

#endif
