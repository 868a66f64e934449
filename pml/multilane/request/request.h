/* SPDX-License-Identifier: BSD-3-Clause */
/* What sends and receives share: the two ends of a request's life, and the wait. */
#ifndef MULTILANE_REQUEST_H
#define MULTILANE_REQUEST_H

#include <stdatomic.h>

#include "common/compat/tsan.h"
#include "common/compat/pml.h"
#include "common/ring/ring.h"

#include "base/datatype.h"
#include "lane/lane.h"
#include "lane/looks.h"
#include "lane/waiting.h"
#include "base/multilane.h"

struct send_request;

/* Callbacks of requests that need upper layers; set once at start. */
struct request_calls {
    ompi_request_start_fn_t start;
    ompi_request_cancel_fn_t cancel_send;
};

extern __attribute__((visibility("hidden"))) struct request_calls request_calls;

/* A request is free when its user has released it and the PML is done with it, in either order
 * and in any threads. Each calls this once; true for the second, which returns the request to
 * its list. */
static inline bool request_ended(_Atomic uint32_t *ends)
{
    if (OPAL_UNLIKELY(opal_using_threads())) /* acquire and release: with the other call */
        /* Each calls once: a 1 is of the other call, and there is no third that writes. */
        return atomic_load_explicit(ends, memory_order_acquire) == 1 ||
               atomic_fetch_add_explicit(ends, 1, memory_order_acq_rel) == 1;
    return (*(uint32_t *) ends)++ == 1; /* plain, as in counter_add */
}

/* Is the PML done with a persistent request that its user still holds? Acquire, against
 * request_ended. */
static inline bool request_is_idle(const _Atomic uint32_t *ends)
{
    return atomic_load_explicit(ends, memory_order_acquire) == 1;
}

/* Completes the request for its user, who may be another thread. The barrier is a release for
 * that thread's wait or test: Open MPI's own steps only acquire in 4.1 and 5.0. */
static inline void request_complete(ompi_request_t *request)
{
    tsan_release(request); /* send_request_free, recv_request_free, request_wait */
    opal_atomic_wmb();
    ompi_request_complete(request, true);
    waiting_completed();
}

/* Acquire, against request_complete. The one builtin of the PML: the member is Open MPI's, and
 * not _Atomic. */
static inline bool request_is_complete(const ompi_request_t *request)
{
    return __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
}

/* Polls `lane` (or null) a few times, until something arrives. */
void request_look(struct lane *lane);

/* Does a wait poll, and not leave the processor to others? */
static inline bool request_may_poll(void)
{
    return !waiting_shares() && !opal_progress_yield_when_idle;
}

/* Polls of the awaited lane per call of opal_progress, which costs more than one poll. */
#define REQUEST_LOOKS 16
/* After so many turns the answer is not near, and Open MPI's own wait is better: it yields,
 * sleeps, and knows of failed processes. */
#define REQUEST_TURNS 256

/* Polls `lane`, and all else at times, until `what` is done. False: it is not, and the answer is
 * not near. */
static inline __opal_attribute_always_inline__ bool
request_poll_until(bool (*is_done)(const void *what), const void *what, struct lane *lane)
{
    for (int turn = 0; turn < REQUEST_TURNS; turn++) {
        for (int look = 0; look < REQUEST_LOOKS; look++) {
            if (is_done(what))
                return true;
            if (!lane_poll(lane)) {
                looks_add();
                ring_relax();
            }
        }
        progress_of_wait();
    }
    return false;
}

bool requests_come_soon_to_thread(size_t count, ompi_request_t *const *requests, bool all);

/* With threads: looks for these requests, all or one of them, before a wait's story. True:
 * complete.
 */
static inline bool requests_come_soon(size_t count, ompi_request_t *const *requests, bool all)
{
    return OPAL_UNLIKELY(opal_using_threads()) &&
           requests_come_soon_to_thread(count, requests, all);
}

/* Waits for a request; `lane`: the lane of its answer, or null. */
void request_wait(ompi_request_t *request, struct lane *lane);

#endif
