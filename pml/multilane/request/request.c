/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request. */
#include "request/request.h"

#include "common/ring/ring.h"

struct request_calls request_calls;

/* Polls of the awaited lane per call of opal_progress, which costs more than one poll. */
#define LOOKS_PER_PROGRESS 16
/* After so many turns the answer is not near, and Open MPI's own wait is better: it yields,
 * sleeps, and knows of failed processes. */
#define TURNS 256

void request_look(struct lane *lane)
{
    if (!lane || waiting_shares())
        return;
    for (int look = 0; look < LOOKS_PER_PROGRESS && !lane_poll(lane); look++)
        ring_relax();
}

/* False: not complete, and the answer is not near. */
static bool poll_completes(ompi_request_t *request, struct lane *lane)
{
    for (int turn = 0; turn < TURNS; turn++) {
        for (int look = 0; look < LOOKS_PER_PROGRESS; look++) {
            if (request_is_complete(request))
                return true;
            if (!lane_poll(lane))
                ring_relax();
        }
        opal_progress();
    }
    return false;
}

static __attribute__((noinline)) void wait_sharing(ompi_request_t *request)
{
    enum waiting_for before = waiting_enter(WAITING_MESSAGES);
    ompi_request_wait_completion(request);
    waiting_leave(before);
}

static __attribute__((noinline)) void wait_long(ompi_request_t *request)
{
    waiting_reconsider();
    wait_sharing(request);
}

void request_wait(ompi_request_t *request, struct lane *lane)
{
    if (waiting_shares())
        wait_sharing(request);
    else if (!lane || !poll_completes(request, lane))
        wait_long(request);
    tsan_acquire(request); /* request_complete */
}
