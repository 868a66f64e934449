/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the story around each of Open MPI's waits that lasts; collectives wait by them as well. */
#include "entry/waits.h"

#include "request/request.h"
#include "request/wait_story.h"

static ompi_request_fns_t plain; /* Open MPI's own functions */

static int wait_one(ompi_request_t **request, ompi_status_public_t *status)
{
    struct wait_story story;
    if (request_is_complete(*request) || requests_come_soon(1, request, true))
        return plain.req_wait(request, status);
    wait_story_begin(&story, PAGE_WAIT, 1, request);
    int rc = plain.req_wait(request, status);
    wait_story_end(&story);
    return rc;
}

static int wait_any(size_t count, ompi_request_t **requests, int *index,
                    ompi_status_public_t *status)
{
    struct wait_story story;
    if (requests_come_soon(count, requests, false))
        return plain.req_wait_any(count, requests, index, status);
    wait_story_begin(&story, PAGE_WAITANY, count, requests);
    int rc = plain.req_wait_any(count, requests, index, status);
    wait_story_end(&story);
    return rc;
}

static int wait_all(size_t count, ompi_request_t **requests, ompi_status_public_t *statuses)
{
    struct wait_story story;
    if (requests_come_soon(count, requests, true))
        return plain.req_wait_all(count, requests, statuses);
    wait_story_begin(&story, PAGE_WAITALL, count, requests);
    int rc = plain.req_wait_all(count, requests, statuses);
    wait_story_end(&story);
    return rc;
}

static int wait_some(size_t count, ompi_request_t **requests, int *done, int *indices,
                     ompi_status_public_t *statuses)
{
    struct wait_story story;
    if (requests_come_soon(count, requests, false))
        return plain.req_wait_some(count, requests, done, indices, statuses);
    wait_story_begin(&story, PAGE_WAITSOME, count, requests);
    int rc = plain.req_wait_some(count, requests, done, indices, statuses);
    wait_story_end(&story);
    return rc;
}

void waits_hook(void)
{
    plain = ompi_request_functions;
    ompi_request_functions.req_wait = wait_one;
    ompi_request_functions.req_wait_any = wait_any;
    ompi_request_functions.req_wait_all = wait_all;
    ompi_request_functions.req_wait_some = wait_some;
}

void waits_unhook(void)
{
    if (ompi_request_functions.req_wait == wait_one) /* else another component came after this */
        ompi_request_functions = plain;
}
