/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for requests, and the list of waits. */
#include "request/request.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/own_page.h"
#include "common/lock/clock.h"

/* The list of waits. */

struct wait_stories wait_stories;

void wait_stories_init(wait_rows_fn fill)
{
    OBJ_CONSTRUCT(&wait_stories.lock, opal_mutex_t);
    wait_stories.first = NULL;
    wait_stories.fill = fill;
}

void wait_stories_fini(void)
{
    OBJ_DESTRUCT(&wait_stories.lock);
}

uint64_t wait_story_clock_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

void wait_story_number(struct wait_story *story, uint64_t now)
{
    story->since_ns = now;
    story->number = ++wait_stories.numbers;
    if (own_events)
        own_event_new(PAGE_EVENT_WAIT)->tag = (int32_t) story->call;
}

void wait_story_begin_locked(struct wait_story *story)
{
    opal_mutex_lock(&wait_stories.lock);
    wait_stories.fill(story, &story->rows);
    story->is_written = true;
    wait_story_number(story, wait_story_clock_ns());
    story->next = wait_stories.first;
    wait_stories.first = story;
    opal_mutex_unlock(&wait_stories.lock);
}

/* Waits of several threads end in any order. */
static void unlink_story(const struct wait_story *story)
{
    struct wait_story **at = &wait_stories.first;
    while (*at && *at != story)
        at = &(*at)->next;
    if (*at)
        *at = story->next;
}

/* Takes the wait out of the page. */
static void page_forget(uint64_t number)
{
    for (uint32_t i = 0; i < own_page->wait_count; i++) {
        if (own_page->waits[i].number != number)
            continue;
        own_page_change();
        own_page->waits[i] = own_page->waits[--own_page->wait_count];
        own_page_changed();
        return;
    }
}

void wait_story_end_locked(struct wait_story *story)
{
    OPAL_THREAD_LOCK(&wait_stories.lock);
    unlink_story(story);
    if (story->published && own_page) {
        page_forget(story->number);
        own_page_round(wait_story_clock_ns());
    }
    OPAL_THREAD_UNLOCK(&wait_stories.lock);
}

void wait_story_describe(struct wait_story *story, uint64_t now, struct page_wait *to)
{
    if (!story->number)
        wait_story_number(story, now);
    if (story->is_written)
        memcpy(to, &story->rows, sizeof(*to));
    else
        wait_stories.fill(story, to);
    to->call = story->call;
    to->number = story->number;
    to->since_ns = story->since_ns;
}

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
