/* SPDX-License-Identifier: BSD-3-Clause */
/* What sends and receives have in common: the two ends of a request's life. */
#ifndef MULTILANE_REQUEST_H
#define MULTILANE_REQUEST_H

#include "common/compat/pml.h"

#include "lane.h"

/* A request may be used again when the user has let go of it and the PML is done with it, in either
 * order and by any thread. Each says so once; the second one to say so returns the request. */
static inline bool request_ended(uint32_t *ends)
{
    if (opal_using_threads())
        return __atomic_fetch_add(ends, 1, __ATOMIC_ACQ_REL) == 1; /* with the other end's */
    return (*ends)++ == 1;
}

/* Looks a few times at what `lane` (or null) brings; returns as soon as something came. */
void request_look(struct lane *lane);

/* Has `lane` (or null) brought something? */
static inline bool request_look_once(struct lane *lane)
{
    return lane && !opal_progress_yield_when_idle && lane_poll(lane);
}

/* Waits for a request that `lane` (or null, if it is not known) will complete. */
void request_wait(ompi_request_t *request, struct lane *lane);

#endif
