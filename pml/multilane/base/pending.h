/* SPDX-License-Identifier: BSD-3-Clause */
/* What could not be sent because a lane was out of room, kept in order and tried again from
 * progress. Until it is done it is work under way (work.h). */
#ifndef MULTILANE_PENDING_H
#define MULTILANE_PENDING_H

#include <stdatomic.h>

#include "common/compat/pml.h"

/* Something to be tried again. It is in the queue at most once. */
struct pending {
    struct pending *next;
    /* OMPI_ERR_OUT_OF_RESOURCE: keep it and try later. Anything else: it is out of the queue, and
     * the function has dealt with it (the object may be gone). */
    int (*retry)(struct pending *self);
    bool is_unsent; /* bytes for another process: counted, see pending_move_on */
};

struct pending_queue {
    opal_mutex_t lock;             /* guards first and last */
    struct pending *_Atomic first; /* pending_progress looks at it without the lock */
    struct pending *last;          /* null where the queue is empty */
    _Atomic bool registered;       /* with opal_progress, from the first use on */
    _Atomic uint64_t unsent;       /* how many of the items hold bytes for other processes */
};

/* The process has one. Hidden, here as where it is defined: so it is reached without the table of
 * other libraries. */
extern __attribute__((visibility("hidden"))) struct pending_queue pending_queue;

void pending_open(void);
void pending_close(void);
/* What progress calls: tries all again that wait; returns how many are done. */
int pending_progress(void);
/* From now on opal_progress calls it; else from the first use on. */
void pending_listen(void);
void pending_add(struct pending *item);

/* Does anything wait in this process for a call that makes progress? Relaxed: what another thread
 * leaves at this moment is moved on by the next call. */
static inline bool pending_any_unsent(void)
{
    return atomic_load_explicit(&pending_queue.unsent, memory_order_relaxed) != 0;
}

/* For calls that wait for nothing: tries what waits once. */
void pending_move_on(void);

#endif
