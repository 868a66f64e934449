/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request. */
#include "request/request.h"

#include "common/ring/ring.h"
#include "request/wait_story.h"

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

static enum page_call request_call(const ompi_request_t *request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;
    return base->req_type == MCA_PML_REQUEST_SEND ? PAGE_SEND : PAGE_RECV;
}

static __attribute__((noinline)) void wait_long(ompi_request_t *request)
{
    struct wait_story story;
    wait_story_begin(&story, request_call(request), 1, &request);
    ompi_request_wait_completion(request);
    wait_story_end(&story);
}

void request_wait(ompi_request_t *request, struct lane *lane)
{
    if (!lane || waiting_shares() || opal_progress_yield_when_idle ||
        !poll_completes(request, lane))
        wait_long(request);
    tsan_acquire(request); /* request_complete */
}
