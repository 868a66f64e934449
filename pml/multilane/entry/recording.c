/* SPDX-License-Identifier: BSD-3-Clause */
/* What is recorded: the calls that begin messages, and which of them a call finds complete. Time
 * within a recorded call is the messages', all other time the program's own. */
#define _GNU_SOURCE
#include "entry/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own_page.h"
#include "base/parameters.h"
#include "common/lock/clock.h"
#include "report/wait_rows.h"
#include "request/request.h"

/* In the upper half of the number that requests have for the order of messages. */
#define REQUEST_MARK (UINT64_C(0x4d4c7265) << 32)

static struct {
    FILE *file; /* null: there is none, or it is full */
    uint64_t room_bytes;
    uint32_t count;    /* of events */
    unsigned inside;   /* recorded calls that have not returned: one may make others */
    uint64_t began_ns; /* by the clock of the node, as what follows */
    uint64_t left_ns;  /* the last call returned */
    uint64_t computed_ns;
    bool is_hooked;
    mca_pml_base_module_t below; /* the functions without a recording, */
    ompi_request_fns_t plain;    /* and those for waits and tests */
} recording;

static uint64_t now_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/* --- the file --------------------------------------------------------------------------------- */

/* One sentence of each rank. */
static void file_end(bool is_good)
{
    int why = errno;
    if (recording.file && fclose(recording.file) != 0 && is_good) {
        is_good = false;
        why = errno;
    }
    recording.file = NULL;
    if (!is_good)
        opal_output(0, "multilane: pml_multilane_record %s: rank %u records no further: %s.",
                    parameters.record, own_page->me.rank, strerror(why));
}

/* A child of fork() that ends would write what lies in the buffer once more. */
static void file_forget(void)
{
    if (recording.file)
        __fpurge(recording.file);
    recording.file = NULL;
}

static bool file_write(const void *bytes, size_t count)
{
    errno = EFBIG;
    if (count > recording.room_bytes)
        return false;
    recording.room_bytes -= count;
    return fwrite(bytes, count, 1, recording.file) == 1;
}

/* A write beyond the limit of the process would end it by a signal. */
static uint64_t bytes_allowed(void)
{
    struct rlimit limit;
    bool is_less = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < RECORD_BYTES_MOST;
    return is_less ? limit.rlim_cur : RECORD_BYTES_MOST;
}

static bool file_begin(void)
{
    char path[PATH_MAX];
    struct record_head head = {.magic = RECORD_MAGIC,
                               .version = RECORD_VERSION,
                               .event_bytes = sizeof(struct record_event),
                               .job = own_page->me.job,
                               .rank = own_page->me.rank,
                               .job_size = own_page->job_size,
                               .began_ns = clock_read_ns(CLOCK_REALTIME)};
    recording.began_ns = now_ns(); /* beside the other clock */
    memcpy(head.host, own_page->host, sizeof(head.host));
    snprintf(path, sizeof(path), "%s/" RECORD_FILE_NAME ".%u.%u", parameters.record, head.job,
             head.rank);
    (void) unlink(path); /* of a job that had the same number */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    recording.file = fd >= 0 ? fdopen(fd, "w") : NULL;
    recording.room_bytes = bytes_allowed();
    if (recording.file && file_write(&head, sizeof(head)) && fflush(recording.file) == 0)
        return true;
    file_end(false);
    return false;
}

/* --- events ----------------------------------------------------------------------------------- */

bool recording_is_on(void)
{
    return recording.file;
}

static void enter(void)
{
    if (recording.inside++ == 0)
        recording.computed_ns += now_ns() - recording.left_ns;
}

static void leave(void)
{
    if (--recording.inside == 0)
        recording.left_ns = now_ns();
}

static void add(struct record_event event)
{
    uint64_t when_ns = event.kind == RECORD_END ? recording.left_ns : now_ns();
    event.time_ns = when_ns - recording.began_ns;
    event.computed_ns = recording.computed_ns;
    recording.computed_ns = 0;
    recording.count++;
    if (recording.file && !file_write(&event, sizeof(event)))
        file_end(false);
}

static uint32_t rank_in_world(const ompi_communicator_t *comm, int rank)
{
    struct page_process process = page_process_of(comm, rank);
    return rank >= 0 && process.job == own_page->me.job ? process.rank : RECORD_ANY;
}

uint32_t recording_call(bool sends, const ompi_communicator_t *comm, int rank, int tag,
                        uint64_t bytes)
{
    uint32_t number = recording.count;
    if (!recording.is_hooked)
        return 0;
    enter();
    add((struct record_event){.bytes = bytes,
                              .peer = rank_in_world(comm, rank),
                              .comm = page_comm_number(comm),
                              .tag = tag,
                              .kind = sends ? RECORD_SEND : RECORD_RECEIVE});
    return number;
}

static void add_done(uint32_t number, const ompi_communicator_t *comm,
                     const ompi_status_public_t *status)
{
    struct record_event event = {.peer = RECORD_ANY, .number = number, .kind = RECORD_DONE};
    if (status && !status->_cancelled) {
        event.peer = rank_in_world(comm, status->MPI_SOURCE);
        event.tag = status->MPI_TAG;
        event.bytes = status->_ucount;
    }
    add(event);
}

void recording_done(uint32_t number, const ompi_communicator_t *comm,
                    const ompi_status_public_t *status)
{
    if (!recording.is_hooked)
        return;
    add_done(number, comm, status);
    leave();
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_send(const ompi_request_t *request)
{
    return ((const mca_pml_base_request_t *) request)->req_type == MCA_PML_REQUEST_SEND;
}

static void request_mark(uint32_t number, ompi_request_t *request)
{
    ((mca_pml_base_request_t *) request)->req_sequence = REQUEST_MARK | number;
}

void recording_request_done(ompi_request_t *request)
{
    mca_pml_base_request_t *base = (mca_pml_base_request_t *) request;
    if (!recording.is_hooked || base->req_sequence >> 32 != REQUEST_MARK >> 32)
        return;
    add_done((uint32_t) base->req_sequence, base->req_comm,
             is_send(request) ? NULL : &request->req_status);
    base->req_sequence = 0;
}

void recording_goes_on(uint32_t number, ompi_request_t *request)
{
    if (!recording.is_hooked)
        return;
    if (request)
        request_mark(number, request);
    leave();
}

static void persistent_done(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++)
        if (requests[i]->req_type == OMPI_REQUEST_PML && requests[i]->req_persistent &&
            requests[i]->req_state == OMPI_REQUEST_INACTIVE)
            recording_request_done(requests[i]);
}

/* --- other calls ------------------------------------------------------------------------------ */

/* Open MPI's functions, with the time that they take; some requests may be complete then. */
static int call_end(int rc, size_t count, ompi_request_t **requests)
{
    persistent_done(count, requests);
    leave();
    return rc;
}

static int recorded_test(ompi_request_t **list, int *done, ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_test(list, done, status), 1, list);
}

static int recorded_test_any(size_t count, ompi_request_t **list, int *index, int *done,
                             ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_test_any(count, list, index, done, status), count, list);
}

static int recorded_test_all(size_t count, ompi_request_t **list, int *done,
                             ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_test_all(count, list, done, status), count, list);
}

static int recorded_test_some(size_t count, ompi_request_t **list, int *done, int *indices,
                              ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_test_some(count, list, done, indices, status), count, list);
}

static int recorded_wait(ompi_request_t **list, ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_wait(list, status), 1, list);
}

static int recorded_wait_any(size_t count, ompi_request_t **list, int *index,
                             ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_wait_any(count, list, index, status), count, list);
}

static int recorded_wait_all(size_t count, ompi_request_t **list, ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_wait_all(count, list, status), count, list);
}

static int recorded_wait_some(size_t count, ompi_request_t **list, int *done, int *indices,
                              ompi_status_public_t *status)
{
    enter();
    return call_end(recording.plain.req_wait_some(count, list, done, indices, status), count, list);
}

static int recorded_probe(int source, int tag, ompi_communicator_t *comm,
                          ompi_status_public_t *status)
{
    enter();
    return call_end(recording.below.pml_probe(source, tag, comm, status), 0, NULL);
}

static int recorded_iprobe(int source, int tag, ompi_communicator_t *comm, int *found,
                           ompi_status_public_t *status)
{
    enter();
    return call_end(recording.below.pml_iprobe(source, tag, comm, found, status), 0, NULL);
}

static int recorded_mprobe(int source, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                           ompi_status_public_t *status)
{
    enter();
    return call_end(recording.below.pml_mprobe(source, tag, comm, message, status), 0, NULL);
}

static int recorded_improbe(int source, int tag, ompi_communicator_t *comm, int *found,
                            ompi_message_t **message, ompi_status_public_t *status)
{
    enter();
    return call_end(recording.below.pml_improbe(source, tag, comm, found, message, status), 0,
                    NULL);
}

/* --- its life --------------------------------------------------------------------------------- */

void recording_begin(mca_pml_base_module_t *module)
{
    if (parameters.record[0] && opal_using_threads())
        opal_output(0,
                    "multilane: pml_multilane_record: rank %u has several threads for MPI, and "
                    "is not recorded.",
                    own_page->me.rank);
    if (!parameters.record[0] || opal_using_threads() || !file_begin())
        return;
    static bool is_told; /* of each fork */
    if (!is_told)
        is_told = pthread_atfork(NULL, NULL, file_forget) == 0;
    recording.is_hooked = true;
    recording.count = recording.inside = 0;
    recording.computed_ns = 0;
    recording.left_ns = now_ns();
    recording.below = *module;
    recording.plain = ompi_request_functions;
    ompi_request_functions = (ompi_request_fns_t){
        recorded_test, recorded_test_any, recorded_test_all, recorded_test_some,
        recorded_wait, recorded_wait_any, recorded_wait_all, recorded_wait_some};
    module->pml_probe = recorded_probe;
    module->pml_iprobe = recorded_iprobe;
    module->pml_mprobe = recorded_mprobe;
    module->pml_improbe = recorded_improbe;
}

void recording_end(mca_pml_base_module_t *module)
{
    if (!recording.is_hooked)
        return;
    add((struct record_event){.peer = RECORD_ANY, .kind = RECORD_END});
    if (recording.file)
        file_end(true);
    recording.is_hooked = false;
    ompi_request_functions = recording.plain;
    *module = recording.below;
}
