/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for requests. */
#include "request/request.h"

#include <sched.h>

#include "base/clock.h"
#include "request/wait_story.h"

struct request_calls request_calls;

void request_look(struct lane *lane)
{
    if (!lane || waiting_shares())
        return;
    for (int look = 0; look < REQUEST_LOOKS && !lane_poll(lane); look++)
        ring_relax();
}

/* With threads a story takes a lock, and Open MPI's own wait three and a condition variable. At its
 * end a thread spins until the one that woke it has left: for a whole time slice, where both share
 * a processor. So what is on its way is looked for first, and then the processor is given to others
 * for a while. Where processors are short its sender may be one of them. */
#define LOOKS         64
#define LOOKS_SHARING 2
#define YIELDS_NS     500000u

/* `done`: how many of all are known to be complete, from the first on. */
static bool have_come(size_t count, ompi_request_t *const *requests, bool all, size_t *done)
{
    if (all) {
        while (*done < count && request_is_complete(requests[*done]))
            ++*done;
        return *done == count;
    }
    bool are_active = false;
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->req_state == OMPI_REQUEST_INACTIVE) /* as null is; it counts as complete */
            continue;
        if (request_is_complete(requests[i]))
            return true;
        are_active = true;
    }
    return !are_active;
}

bool requests_come_soon_to_thread(size_t count, ompi_request_t *const *requests, bool all)
{
    int looks = waiting_shares_now() ? LOOKS_SHARING : LOOKS;
    uint64_t began = 0;
    size_t done = 0;
    while (!have_come(count, requests, all, &done)) {
        if (--looks < 0) {
            uint64_t now = clock_now_ns();
            began = began ? began : now;
            if (now - began > YIELDS_NS)
                return false;
            sched_yield();
        }
        progress_of_wait();
    }
    return true;
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
    if (requests_come_soon(1, &request, true))
        return;
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
