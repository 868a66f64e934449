/* SPDX-License-Identifier: BSD-3-Clause */
/* What could not be sent because a lane was out of room, kept in order and tried again from
 * progress. Until it is done it is work under way (work.h). */
#ifndef MULTILANE_PENDING_H
#define MULTILANE_PENDING_H

#include "common/compat/pml.h"

/* Something to be tried again. It is in the queue at most once. */
struct pending {
    struct pending *next;
    /* OMPI_ERR_OUT_OF_RESOURCE: keep it and try later. Anything else: it is out of the queue, and
     * the function has dealt with it (the object may be gone). */
    int (*retry)(struct pending *self);
    bool is_unsent; /* bytes for another process: counted, see request_move_on */
};

struct pending_queue {
    opal_mutex_t lock; /* guards first and last */
    struct pending *first;
    struct pending **last;
    bool registered; /* atomic: with opal_progress, from the first use on */
};

void pending_queue_init(struct pending_queue *queue);
void pending_queue_fini(struct pending_queue *queue);
/* What progress calls: tries all again that wait; returns how many are done. */
int pending_progress(void);
/* From now on opal_progress calls it; else from the first use on. */
void pending_listen(struct pending_queue *queue);
void pending_add(struct pending_queue *queue, struct pending *item);

#endif
