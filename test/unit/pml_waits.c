/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits where the program has threads: what is on its way is looked for before Open MPI's own wait,
 * whose end may spin for a time slice. */
#include "check.h"

#include <sched.h>

#include "common/compat/pml.h"
#include "entry/calls.h"
#include "lanes_standin.h"
#include "request/request.h"

#define REQUESTS 3

static ompi_request_t requests[REQUESTS], *waited_for[REQUESTS];
static unsigned yields;                 /* so far */
static unsigned completes_at[REQUESTS]; /* with this yield */

/* Stands in for the C library's: others run. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    standin_now_ns += 1000;
    for (int i = 0; i < REQUESTS; i++)
        if (yields == completes_at[i])
            requests[i].req_complete = REQUEST_COMPLETED;
    return 0;
}

/* Open MPI's own waits: what they found. */
static int calls, complete;
static bool has_story;

static int plain_found(size_t count, ompi_request_t **of)
{
    calls++;
    complete = 0;
    for (size_t i = 0; i < count; i++)
        complete += of[i]->req_complete == REQUEST_COMPLETED;
    has_story = wait_stories.first;
    return OMPI_SUCCESS;
}

static int plain_wait(ompi_request_t **request, ompi_status_public_t *status)
{
    (void) status;
    return plain_found(1, request);
}

static int plain_any(size_t count, ompi_request_t **of, int *index, ompi_status_public_t *status)
{
    (void) index;
    (void) status;
    return plain_found(count, of);
}

static int plain_all(size_t count, ompi_request_t **of, ompi_status_public_t *statuses)
{
    (void) statuses;
    return plain_found(count, of);
}

static int plain_some(size_t count, ompi_request_t **of, int *done, int *indices,
                      ompi_status_public_t *statuses)
{
    (void) done;
    (void) indices;
    (void) statuses;
    return plain_found(count, of);
}

static void no_rows(const struct wait_story *story, struct page_wait *to)
{
    (void) story;
    (void) to;
}

/* The first completes with yield `first`, each other one `apart` later; 0: never. */
static void begin(unsigned first, unsigned apart)
{
    yields = 0;
    calls = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        requests[i] =
            (ompi_request_t){.req_complete = REQUEST_PENDING, .req_type = OMPI_REQUEST_PML};
        waited_for[i] = &requests[i];
        completes_at[i] = first ? first + i * apart : 0;
    }
}

#define WAITED(expected, story)                                                                    \
    CHECK(calls == 1 && complete == (expected) && has_story == (story),                            \
          "%d calls, %d complete, story %d, %u yields", calls, complete, has_story, yields)

static void with_threads(void)
{
    opal_set_using_threads(true);
    /* Within the time for which it yields. */
    begin(300, 50);
    ompi_request_functions.req_wait(&waited_for[0], NULL);
    WAITED(1, false);
    begin(300, 50);
    ompi_request_functions.req_wait_all(REQUESTS, waited_for, NULL);
    WAITED(REQUESTS, false);
    begin(300, 50);
    ompi_request_functions.req_wait_any(REQUESTS, waited_for, NULL, NULL);
    WAITED(1, false);
    begin(300, 50);
    ompi_request_functions.req_wait_some(REQUESTS, waited_for, NULL, NULL, NULL);
    WAITED(1, false);
    /* The last of them first. */
    begin(0, 0);
    completes_at[REQUESTS - 1] = 300;
    ompi_request_functions.req_wait_any(REQUESTS, waited_for, NULL, NULL);
    WAITED(1, false);
    /* Those that are not active are complete, and are not waited for. */
    begin(300, 50);
    requests[0].req_state = OMPI_REQUEST_INACTIVE;
    requests[0].req_complete = REQUEST_COMPLETED;
    ompi_request_functions.req_wait_any(REQUESTS, waited_for, NULL, NULL);
    WAITED(2, false);
    begin(300, 50);
    requests[0].req_state = OMPI_REQUEST_INACTIVE;
    requests[0].req_complete = REQUEST_COMPLETED;
    ompi_request_functions.req_wait_some(REQUESTS, waited_for, NULL, NULL, NULL);
    WAITED(2, false);
    begin(0, 0);
    for (int i = 0; i < REQUESTS; i++) {
        requests[i].req_state = OMPI_REQUEST_INACTIVE;
        requests[i].req_complete = REQUEST_COMPLETED;
    }
    ompi_request_functions.req_wait_any(REQUESTS, waited_for, NULL, NULL);
    WAITED(REQUESTS, false);
    CHECK(yields == 0, "%u yields", yields);
    /* One that does not come: Open MPI's wait knows of failed processes, and may sleep. */
    begin(300, 50);
    completes_at[1] = 0;
    ompi_request_functions.req_wait_all(REQUESTS, waited_for, NULL);
    WAITED(2, true);
    CHECK(yields > 400 && yields < 2000, "%u yields", yields);
    CHECK(!wait_stories.first, "a story is left");
    /* None at all. */
    begin(0, 0);
    ompi_request_functions.req_wait_any(0, waited_for, NULL, NULL);
    WAITED(0, false);
    CHECK(yields == 0, "%u yields", yields);
    opal_set_using_threads(false);
}

/* Without threads the story comes at once, and Open MPI's wait makes the progress. */
static void without_threads(void)
{
    begin(300, 50);
    ompi_request_functions.req_wait_all(REQUESTS, waited_for, NULL);
    WAITED(0, true);
    CHECK(yields == 0, "%u yields", yields);
}

int main(void)
{
    opal_progress_set_event_flag(0); /* there is no loop of events in Open MPI's progress */
    wait_stories_init(no_rows);
    ompi_request_functions.req_wait = plain_wait;
    ompi_request_functions.req_wait_any = plain_any;
    ompi_request_functions.req_wait_all = plain_all;
    ompi_request_functions.req_wait_some = plain_some;
    waits_hook();
    with_threads();
    without_threads();
    waits_unhook();
    CHECK(ompi_request_functions.req_wait == plain_wait, "the hook is left");
    wait_stories_fini();
    return check_end();
}
