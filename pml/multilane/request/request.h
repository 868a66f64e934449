/* SPDX-License-Identifier: BSD-3-Clause */
/* What sends and receives have in common: the two ends of a request's life, and the wait for it. */
#ifndef MULTILANE_REQUEST_H
#define MULTILANE_REQUEST_H

#include <stdatomic.h>

#include "common/compat/tsan.h"
#include "common/compat/pml.h"

#include "base/datatype.h"
#include "lane/lane.h"
#include "base/multilane.h"

/* What Open MPI calls on a request and what needs more than the request: handed down once. */
struct request_calls {
    ompi_request_start_fn_t start;
    ompi_request_cancel_fn_t cancel_send;
};

extern __attribute__((visibility("hidden"))) struct request_calls request_calls;

/* A request may be used again when the user has let go of it and the PML is done with it, in either
 * order and by any thread. Each says so once; the second one to say so returns the request. */
static inline bool request_ended(_Atomic uint32_t *ends)
{
    if (OPAL_UNLIKELY(opal_using_threads())) /* acquire and release: with the other end's */
        return atomic_fetch_add_explicit(ends, 1, memory_order_acq_rel) == 1;
    return (*(uint32_t *) ends)++ == 1; /* plain for the reason that counter_add has */
}

/* Is the PML done with a persistent request, which its user has? Acquire, against request_ended. */
static inline bool request_is_idle(const _Atomic uint32_t *ends)
{
    return atomic_load_explicit(ends, memory_order_acquire) == 1;
}

/* Completes it for its user, who may be another thread: that sees all that was done for it. Open
 * MPI's own steps only acquire in 4.1 and 5.0; who waits or tests acquires. */
static inline void request_complete(ompi_request_t *request)
{
    tsan_release(request); /* send_request_free, recv_request_free, request_wait */
    opal_atomic_wmb();
    ompi_request_complete(request, true);
}

/* Acquire, against request_complete: for those who ask at any time. By the compiler's builtin, here
 * alone: the member is Open MPI's, and not _Atomic. */
static inline bool request_is_complete(const ompi_request_t *request)
{
    return __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
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
