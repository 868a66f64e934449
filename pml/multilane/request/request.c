/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request. */
#include "request/request.h"

#include "request/wait_story.h"

struct request_calls request_calls;

void request_look(struct lane *lane)
{
    if (!lane || waiting_shares())
        return;
    for (int look = 0; look < REQUEST_LOOKS && !lane_poll(lane); look++)
        ring_relax();
}

static bool is_complete(const void *request)
{
    return request_is_complete(request);
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
    if (!lane || !request_may_poll() || !request_poll_until(is_complete, request, lane))
        wait_long(request);
    tsan_acquire(request); /* request_complete */
}
