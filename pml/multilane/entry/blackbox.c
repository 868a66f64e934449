/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the last calls of MPI in the file of this process, or all in its recording: its functions
 * stand before those of the module only in jobs that ask for it, so that others pay nothing. */
#include "entry/blackbox.h"

#include <stdatomic.h>

#include "base/own_page.h"
#include "common/compat/collective.h"
#include "entry/calls.h"
#include "entry/recording.h"
#include "report/wait_rows.h"
#include "request/request.h"
#include "request/wait_story.h"

static mca_pml_base_module_t below; /* the functions without events */
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

static inline void note(enum page_event_kind kind, const ompi_communicator_t *comm, int rank,
                        int tag, size_t bytes)
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

/* The box and the recording have the same calls; returns the recording's number. */
static uint32_t note_call(bool sends, const ompi_communicator_t *comm, int rank, int tag,
                          size_t count, const ompi_datatype_t *datatype)
{
    size_t bytes = count * datatype->super.size;
    note(sends ? PAGE_EVENT_SEND : PAGE_EVENT_RECEIVE, comm, rank, tag, bytes);
    return recording_call(sends, comm, rank, tag, bytes);
}

/* Nothing waits for such a send. */
static bool is_buffered(mca_pml_base_send_mode_t mode)
{
    return mode == MCA_PML_BASE_SEND_BUFFERED;
}

/* Waits and tests free what they find complete; MPI_Request_free may do so before. */
static int noted_free(ompi_request_t **request)
{
    ompi_request_t *ours = *request;
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) ours;
    bool sends = base->req_type == MCA_PML_REQUEST_SEND;
    ours->req_free = atomic_load_explicit(&frees[sends], memory_order_relaxed);
    if (!request_is_complete(ours))
        return ours->req_free(request);
    if (sends)
        note(PAGE_EVENT_SENT, base->req_comm, base->req_peer, base->req_tag,
             base->req_count * base->req_datatype->super.size);
    else
        note(PAGE_EVENT_GOT, base->req_comm, ours->req_status.MPI_SOURCE, ours->req_status.MPI_TAG,
             ours->req_status._ucount);
    recording_request_done(ours);
    return ours->req_free(request);
}

/* The call returns. `request`: what it has begun, and is told once more when it is done; or null.
 */
static void note_return(uint32_t number, bool sends, ompi_request_t *request)
{
    if (request == compat_empty_send_request())
        request = NULL;
    if (request && request->req_free != noted_free) {
        atomic_store_explicit(&frees[sends], request->req_free, memory_order_relaxed);
        request->req_free = noted_free;
    }
    recording_goes_on(number, request);
}

static int noted_isend(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                       int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                       ompi_request_t **request)
{
    uint32_t number = note_call(true, comm, destination, tag, count, datatype);
    int rc = below.pml_isend(buffer, count, datatype, destination, tag, mode, comm, request);
    note_return(number, true, rc == OMPI_SUCCESS && !is_buffered(mode) ? *request : NULL);
    return rc;
}

static int noted_send(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                      int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    uint32_t number = note_call(true, comm, destination, tag, count, datatype);
    int rc = below.pml_send(buffer, count, datatype, destination, tag, mode, comm);
    if (is_buffered(mode))
        recording_goes_on(number, NULL);
    else
        recording_done(number, comm, NULL);
    return rc;
}

static int noted_irecv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    uint32_t number = note_call(false, comm, source, tag, count, datatype);
    int rc = below.pml_irecv(buffer, count, datatype, source, tag, comm, request);
    note_return(number, false, rc == OMPI_SUCCESS ? *request : NULL);
    return rc;
}

static int noted_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                      ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_status_public_t got = {.MPI_SOURCE = source, .MPI_TAG = tag};
    uint32_t number = note_call(false, comm, source, tag, count, datatype);
    int rc = below.pml_recv(buffer, count, datatype, source, tag, comm, &got);
    note(PAGE_EVENT_GOT, comm, got.MPI_SOURCE, got.MPI_TAG, got._ucount);
    recording_done(number, comm, &got);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, got, false);
    return rc;
}

static int noted_imrecv(void *buffer, size_t count, ompi_datatype_t *datatype,
                        ompi_message_t **message, ompi_request_t **request)
{
    uint32_t number =
        note_call(false, (*message)->comm, MPI_ANY_SOURCE, MPI_ANY_TAG, count, datatype);
    int rc = below.pml_imrecv(buffer, count, datatype, message, request);
    note_return(number, false, rc == OMPI_SUCCESS ? *request : NULL);
    return rc;
}

static int noted_mrecv(void *buffer, size_t count, ompi_datatype_t *datatype,
                       ompi_message_t **message, ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = noted_imrecv(buffer, count, datatype, message, &request);
    return rc == OMPI_SUCCESS ? ompi_request_wait(&request, status) : rc;
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
static int noted_start(size_t count, ompi_request_t **requests)
{
    uint32_t number = 0, started = 0;
    for (size_t i = 0; i < count; i++) {
        const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) requests[i];
        if (is_of_pml(requests[i]) && ++started)
            number = note_call(base->req_type == MCA_PML_REQUEST_SEND, base->req_comm,
                               base->req_peer, base->req_tag, base->req_count, base->req_datatype);
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
    recording_begin(module);
    below = *module;
    if (!own_events && !recording_is_on())
        return;
    module->pml_isend = noted_isend;
    module->pml_send = noted_send;
    module->pml_irecv = noted_irecv;
    module->pml_recv = noted_recv;
    module->pml_imrecv = noted_imrecv;
    module->pml_mrecv = noted_mrecv;
    module->pml_start = noted_start;
}

void blackbox_end(mca_pml_base_module_t *module)
{
    if (module->pml_send == noted_send)
        *module = below;
    recording_end(module);
}
