/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the last calls of MPI in the file of this process, or all in its recording: its functions
 * stand before those of the module only in jobs that ask for it, so that others pay nothing. */
#include "entry/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "multilane/record.h"
#include "base/clock.h"
#include "base/own_page.h"
#include "common/compat/collective.h"
#include "report/report.h"
#include "request/request.h"
#include "base/parameters.h"
#include "common/lock/clock.h"

/* What is recorded: the calls that begin messages, and which of them a call finds complete. Time
 * within a recorded call is the messages', all other time the program's own. */

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
    ompi_request_fns_t plain; /* Open MPI's functions for waits and tests */
} recording;

static mca_pml_base_module_t below; /* the functions without events and recording */

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
    recording.began_ns = clock_now_ns(); /* beside the other clock */
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
        recording.computed_ns += clock_now_ns() - recording.left_ns;
}

static void leave(void)
{
    if (--recording.inside == 0)
        recording.left_ns = clock_now_ns();
}

static void add(struct record_event event)
{
    uint64_t when_ns = event.kind == RECORD_END ? recording.left_ns : clock_now_ns();
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

/* All of the call is done. `status`: of a receive. */
static void recording_done(uint32_t number, const ompi_communicator_t *comm,
                           const ompi_status_public_t *status)
{
    if (!recording.is_hooked)
        return;
    add_done(number, comm, status);
    leave();
}

/* --- requests --------------------------------------------------------------------------------- */

static void recording_request_done(ompi_request_t *request)
{
    mca_pml_base_request_t *base = (mca_pml_base_request_t *) request;
    if (!recording.is_hooked || base->req_sequence >> 32 != REQUEST_MARK >> 32)
        return;
    add_done((uint32_t) base->req_sequence, base->req_comm,
             base->req_type == MCA_PML_REQUEST_SEND ? NULL : &request->req_status);
    base->req_sequence = 0;
}

/* The call returns; the request, if not null, is done later: when the function is called that frees
 * it, or, of a persistent one, when a call finds it inactive. */
static void recording_goes_on(uint32_t number, ompi_request_t *request)
{
    if (!recording.is_hooked)
        return;
    if (request)
        ((mca_pml_base_request_t *) request)->req_sequence = REQUEST_MARK | number;
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

#define RECORDED(name, call, arguments, count, list, ...)                                          \
    static int recorded_##name(__VA_ARGS__, ompi_status_public_t *status)                          \
    {                                                                                              \
        enter();                                                                                   \
        return call_end(call arguments, count, list);                                              \
    }
#define RECORDED_REQ(name, arguments, count, ...)                                                  \
    RECORDED(name, recording.plain.req_##name, arguments, count, list, __VA_ARGS__)
#define RECORDED_PML(name, arguments, ...)                                                         \
    RECORDED(name, below.pml_##name, arguments, 0, NULL, __VA_ARGS__)
#define LIST  size_t count, ompi_request_t **list
#define PROBE int source, int tag, ompi_communicator_t *comm

RECORDED_REQ(test, (list, done, status), 1, ompi_request_t **list, int *done)
RECORDED_REQ(test_any, (count, list, index, done, status), count, LIST, int *index, int *done)
RECORDED_REQ(test_all, (count, list, done, status), count, LIST, int *done)
RECORDED_REQ(test_some, (count, list, done, indices, status), count, LIST, int *done, int *indices)
RECORDED_REQ(wait, (list, status), 1, ompi_request_t **list)
RECORDED_REQ(wait_any, (count, list, index, status), count, LIST, int *index)
RECORDED_REQ(wait_all, (count, list, status), count, LIST)
RECORDED_REQ(wait_some, (count, list, done, indices, status), count, LIST, int *done, int *indices)
RECORDED_PML(probe, (source, tag, comm, status), PROBE)
RECORDED_PML(iprobe, (source, tag, comm, found, status), PROBE, int *found)
RECORDED_PML(mprobe, (source, tag, comm, message, status), PROBE, ompi_message_t **message)
RECORDED_PML(improbe, (source, tag, comm, found, message, status), PROBE, int *found,
             ompi_message_t **message)

/* --- its life --------------------------------------------------------------------------------- */

/* While there is a page, with the module whose functions Open MPI calls. */
static void recording_begin(mca_pml_base_module_t *module)
{
    if (parameters.record[0] && opal_using_threads())
        opal_output(0,
                    "multilane: pml_multilane_record: rank %u has several threads for MPI, and "
                    "is not recorded.",
                    own_page->me.rank);
    if (!parameters.record[0] || opal_using_threads() || !file_begin())
        return;
    static bool is_registered; /* of each fork */
    if (!is_registered)
        is_registered = pthread_atfork(NULL, NULL, file_forget) == 0;
    recording.is_hooked = true;
    recording.count = recording.inside = 0;
    recording.computed_ns = 0;
    recording.left_ns = clock_now_ns();
    recording.plain = ompi_request_functions;
    ompi_request_functions = (ompi_request_fns_t){
        recorded_test, recorded_test_any, recorded_test_all, recorded_test_some,
        recorded_wait, recorded_wait_any, recorded_wait_all, recorded_wait_some};
    module->pml_probe = recorded_probe;
    module->pml_iprobe = recorded_iprobe;
    module->pml_mprobe = recorded_mprobe;
    module->pml_improbe = recorded_improbe;
}

static void recording_end(void)
{
    if (!recording.is_hooked)
        return;
    add((struct record_event){.peer = RECORD_ANY, .kind = RECORD_END});
    if (recording.file)
        file_end(true);
    recording.is_hooked = false;
    ompi_request_functions = recording.plain;
}

/* Those of requests: of receives, of sends. Relaxed: all threads write the same. */
static ompi_request_free_fn_t _Atomic frees[2];

static inline struct page_event *event_put(enum page_event_kind kind,
                                           const ompi_communicator_t *comm, int rank, int tag,
                                           size_t bytes)
{
    struct page_event *event = own_event_new(kind);
    event->comm = page_comm_number(comm);
    event->rank = rank;
    event->tag = tag;
    event->bytes = bytes < UINT32_MAX ? (uint32_t) bytes : UINT32_MAX;
    return event;
}

static inline void event_append(enum page_event_kind kind, const ompi_communicator_t *comm,
                                int rank, int tag, size_t bytes)
{
    if (own_events)
        event_put(kind, comm, rank, tag, bytes)->collective =
            (uint8_t) compat_collective_of_tag(tag);
}

void blackbox_call(ompi_communicator_t *comm, enum multilane_call call, int root, uint64_t bytes,
                   uint32_t turn)
{
    static const uint8_t kinds[MULTILANE_CALLS] = {
        [MULTILANE_BARRIER] = PAGE_BARRIER,     [MULTILANE_BCAST] = PAGE_BCAST,
        [MULTILANE_REDUCE] = PAGE_REDUCE,       [MULTILANE_ALLREDUCE] = PAGE_ALLREDUCE,
        [MULTILANE_ALLGATHER] = PAGE_ALLGATHER, [MULTILANE_ALLTOALL] = PAGE_ALLTOALL,
        [MULTILANE_GATHER] = PAGE_GATHER,
    };
    if (!own_events)
        return;
    struct page_event *event = event_put(PAGE_EVENT_CALL, comm, root, (int) turn, bytes);
    event->collective = kinds[call];
    event->first = (uint16_t) ompi_group_get_proc_name(comm->c_local_group, 0).vpid;
}

/* A call begins a message or a receive, for the box and the recording; returns the recording's
 * number of this event. */
static uint32_t record_call(bool sends, const ompi_communicator_t *comm, int rank, int tag,
                            size_t count, const ompi_datatype_t *datatype)
{
    size_t bytes = count * datatype->super.size;
    uint32_t number = recording.count;
    event_append(sends ? PAGE_EVENT_SEND : PAGE_EVENT_RECEIVE, comm, rank, tag, bytes);
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

/* Nothing waits for such a send. */
static bool is_buffered(mca_pml_base_send_mode_t mode)
{
    return mode == MCA_PML_BASE_SEND_BUFFERED;
}

/* Waits and tests free what they find complete; MPI_Request_free may do so before. */
static int recorded_free(ompi_request_t **request)
{
    ompi_request_t *ours = *request;
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) ours;
    bool sends = base->req_type == MCA_PML_REQUEST_SEND;
    ours->req_free = atomic_load_explicit(&frees[sends], memory_order_relaxed);
    if (!request_is_complete(ours))
        return ours->req_free(request);
    if (sends)
        event_append(PAGE_EVENT_SENT, base->req_comm, base->req_peer, base->req_tag,
                     base->req_count * base->req_datatype->super.size);
    else
        event_append(PAGE_EVENT_GOT, base->req_comm, ours->req_status.MPI_SOURCE,
                     ours->req_status.MPI_TAG, ours->req_status._ucount);
    recording_request_done(ours);
    return ours->req_free(request);
}

/* The call returns. `request`: what it has begun, and appears once more when it is done; or null.
 */
static void record_return(uint32_t number, bool sends, ompi_request_t *request)
{
    if (request == compat_empty_send_request())
        request = NULL;
    if (request && request->req_free != recorded_free) {
        atomic_store_explicit(&frees[sends], request->req_free, memory_order_relaxed);
        request->req_free = recorded_free;
    }
    recording_goes_on(number, request);
}

static int recorded_isend(const void *buffer, size_t count, ompi_datatype_t *datatype,
                          int destination, int tag, mca_pml_base_send_mode_t mode,
                          ompi_communicator_t *comm, ompi_request_t **request)
{
    uint32_t number = record_call(true, comm, destination, tag, count, datatype);
    int rc = below.pml_isend(buffer, count, datatype, destination, tag, mode, comm, request);
    record_return(number, true, rc == OMPI_SUCCESS && !is_buffered(mode) ? *request : NULL);
    return rc;
}

static int recorded_send(const void *buffer, size_t count, ompi_datatype_t *datatype,
                         int destination, int tag, mca_pml_base_send_mode_t mode,
                         ompi_communicator_t *comm)
{
    uint32_t number = record_call(true, comm, destination, tag, count, datatype);
    int rc = below.pml_send(buffer, count, datatype, destination, tag, mode, comm);
    if (is_buffered(mode))
        recording_goes_on(number, NULL);
    else
        recording_done(number, comm, NULL);
    return rc;
}

static int recorded_irecv(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                          int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    uint32_t number = record_call(false, comm, source, tag, count, datatype);
    int rc = below.pml_irecv(buffer, count, datatype, source, tag, comm, request);
    record_return(number, false, rc == OMPI_SUCCESS ? *request : NULL);
    return rc;
}

static int recorded_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                         ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_status_public_t got = {.MPI_SOURCE = source, .MPI_TAG = tag};
    uint32_t number = record_call(false, comm, source, tag, count, datatype);
    int rc = below.pml_recv(buffer, count, datatype, source, tag, comm, &got);
    event_append(PAGE_EVENT_GOT, comm, got.MPI_SOURCE, got.MPI_TAG, got._ucount);
    recording_done(number, comm, &got);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, got, false);
    return rc;
}

static int recorded_imrecv(void *buffer, size_t count, ompi_datatype_t *datatype,
                           ompi_message_t **message, ompi_request_t **request)
{
    uint32_t number =
        record_call(false, (*message)->comm, MPI_ANY_SOURCE, MPI_ANY_TAG, count, datatype);
    int rc = below.pml_imrecv(buffer, count, datatype, message, request);
    record_return(number, false, rc == OMPI_SUCCESS ? *request : NULL);
    return rc;
}

static int recorded_mrecv(void *buffer, size_t count, ompi_datatype_t *datatype,
                          ompi_message_t **message, ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = recorded_imrecv(buffer, count, datatype, message, &request);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = ompi_request_wait(&request, status);
    if (request != MPI_REQUEST_NULL) /* it has ended in an error */
        ompi_request_free(&request);
    return rc;
}

static bool is_of_pml(const ompi_request_t *request)
{
    return request && request->req_type == OMPI_REQUEST_PML;
}

static bool is_buffered_send(const ompi_request_t *request)
{
    const mca_pml_base_send_request_t *send = (const mca_pml_base_send_request_t *) request;
    return send->req_base.req_type == MCA_PML_REQUEST_SEND && is_buffered(send->req_send_mode);
}

/* Several start in one call, and have numbers that follow each other. */
static int recorded_start(size_t count, ompi_request_t **requests)
{
    uint32_t number = 0, started = 0;
    for (size_t i = 0; i < count; i++) {
        const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) requests[i];
        if (is_of_pml(requests[i]) && ++started)
            number =
                record_call(base->req_type == MCA_PML_REQUEST_SEND, base->req_comm, base->req_peer,
                            base->req_tag, base->req_count, base->req_datatype);
    }
    int rc = below.pml_start(count, requests);
    number -= started;
    for (size_t i = 0; i < count; i++)
        if (is_of_pml(requests[i]))
            recording_goes_on(++number, is_buffered_send(requests[i]) ? NULL : requests[i]);
    return rc;
}

void blackbox_begin(mca_pml_base_module_t *module)
{
    below = *module;
    recording_begin(module);
    if (!own_events && !recording_is_on())
        return;
    module->pml_isend = recorded_isend;
    module->pml_send = recorded_send;
    module->pml_irecv = recorded_irecv;
    module->pml_recv = recorded_recv;
    module->pml_imrecv = recorded_imrecv;
    module->pml_mrecv = recorded_mrecv;
    module->pml_start = recorded_start;
}

void blackbox_end(mca_pml_base_module_t *module)
{
    if (module->pml_send == recorded_send)
        *module = below;
    recording_end();
}
