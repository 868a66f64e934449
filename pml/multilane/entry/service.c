/* SPDX-License-Identifier: BSD-3-Clause */
/* What other components of Multilane call: multilane/service.h. */
#include "multilane/service.h"

#include "base/parameters.h"
#include "common/compat/pml.h"
#include "entry/calls.h"
#include "match/comm.h"
#include "report/report.h"
#include "request/request.h"

/* A wait is looked after when it has taken so long, and each time again. */
#define LOOK_NS    100000000u
#define LOOK_TURNS 16u /* between looks at the clock */

static bool has_changed(const struct multilane_wait *wait)
{
    return atomic_load_explicit(wait->word, memory_order_acquire) != wait->seen;
}

/* What the wait ends with though the word has not changed; else OMPI_SUCCESS. */
static int wait_error(const struct multilane_wait *wait)
{
    ompi_communicator_t *comm = wait->comm;
    if (comm_lost(comm->c_pml_comm, MATCH_ANY))
        return COMPAT_ERR_PROC_FAILED;
    return compat_comm_refuses(comm, wait->tag)
               ? compat_comm_refusal(comm)
               : compat_comm_receive_error(comm, MPI_ANY_SOURCE, wait->tag);
}

static int wait_long(const struct multilane_wait *wait)
{
    struct wait_story story;
    uint64_t looked_ns = wait_story_clock_ns();
    int status = OMPI_SUCCESS;
    wait_story_begin_word(&story, wait);
    waiting_by_word(wait->word, wait->seen);
    for (uint32_t turn = 1; !has_changed(wait); turn++) {
        opal_progress();
        status = wait_error(wait);
        if (status == OMPI_SUCCESS && turn % LOOK_TURNS == 0 &&
            wait_story_clock_ns() - looked_ns > LOOK_NS) {
            looked_ns = wait_story_clock_ns();
            status = wait->look(wait->with);
        }
        if (status != OMPI_SUCCESS)
            break;
    }
    waiting_by_word(NULL, 0);
    if (waiting.look)
        waiting.look(); /* a sleep that the word has ended is over before progress sees it */
    wait_story_end(&story);
    return status;
}

static int service_wait(const struct multilane_wait *wait)
{
    return has_changed(wait) ? OMPI_SUCCESS : wait_long(wait);
}

static struct multilane_calls *calls_begin(void)
{
    const bool is_recorded = parameters.blackbox[0] != '\0';
    if (!parameters.explain && !is_recorded)
        return NULL;
    struct multilane_calls *calls = collectives_begin();
    calls->note = is_recorded ? blackbox_call : NULL;
    return calls;
}

static void service_contact(ompi_communicator_t *comm, int rank)
{
    if (multilane.enabled && comm->c_pml_comm)
        (void) comm_peer(comm->c_pml_comm, rank);
}

extern const struct multilane_service MULTILANE_SERVICE_NAME;
__attribute__((visibility("default"))) const struct multilane_service MULTILANE_SERVICE_NAME = {
    .version = MULTILANE_SERVICE_VERSION,
    .struct_bytes = sizeof(struct multilane_service),
    .shares = waiting_shares_now,
    .records = recording_is_on,
    .wait = service_wait,
    .calls = calls_begin,
    .contact = service_contact,
};

/* --- Open MPI's waits ---------------------------------------------------------------------------
 * Tells the story around each of them that lasts; collectives wait by them as well. */

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
