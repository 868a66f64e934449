/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a send request. */
#include "request/send_request.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "common/sum/crc32c.h"
#include "base/multilane.h"
#include "base/pending.h"
#include "lane/lane.h"

static int send_request_free(ompi_request_t **ompi)
{
    struct send_request *request = (struct send_request *) *ompi;
    tsan_acquire(request); /* request_complete */
    request->base.req_base.req_free_called = true;
    if (request_ended(&request->ends))
        send_request_return(request);
    *ompi = MPI_REQUEST_NULL;
    if (OPAL_UNLIKELY(pending_any_unsent()))
        pending_move_on(); /* for a wait or test that found the request complete */
    return OMPI_SUCCESS;
}

static void send_request_construct(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    ompi->req_start = request_calls.start;
    ompi->req_free = send_request_free;
    ompi->req_cancel = request_calls.cancel_send;
    request->base.req_base.req_type = MCA_PML_REQUEST_SEND;
    request->handle = (struct wire_handle){0};
    request->rma.count = 0;
    request->source = (struct device_source){.view = NULL};
    request->is_under_way = false;
    request->offer.control = NULL;
    memset(request->own, 0, sizeof(request->own));
    request->is_waiting = false;
    atomic_init(&request->is_putting, false);
    tsan_release(request); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(send_request_t, mca_pml_base_send_request_t, send_request_construct, NULL);

void outgoing_pack(const struct outgoing *out, void *to)
{
    datatype_pack(out->datatype, out->count, out->buffer, 0, to, out->size);
}

/* Like MCA_PML_BASE_SEND_REQUEST_INIT, without the convertor, which is not used. */
static void send_request_init(struct send_request *request, mca_pml_base_send_mode_t mode,
                              bool persistent)
{
    const struct outgoing *out = &request->out;
    mca_pml_base_request_t *base = &request->base.req_base;
    OBJ_RETAIN(out->comm->ompi);
    OMPI_DATATYPE_RETAIN(out->datatype);
    OMPI_REQUEST_INIT(&base->req_ompi, persistent);
    base->req_ompi.req_mpi_object.comm = out->comm->ompi;
    base->req_ompi.req_status._cancelled = 0;
    base->req_proc = out->peer->proc;
    base->req_addr = (void *) (uintptr_t) out->buffer;
    base->req_count = out->count;
    base->req_datatype = out->datatype;
    base->req_peer = out->destination;
    base->req_tag = out->tag;
    base->req_comm = out->comm->ompi;
    base->req_pml_complete = false;
    base->req_free_called = false;
    request->base.req_addr = out->buffer;
    request->base.req_bytes_packed = out->size;
    request->base.req_send_mode = mode;
}

struct send_request *send_request_new(const struct outgoing *out, mca_pml_base_send_mode_t mode,
                                      bool persistent)
{
    struct send_request *request =
        (struct send_request *) tsan_list_get(&mca_pml_base_send_requests);
    if (OPAL_UNLIKELY(!request))
        return NULL;
    request->out = *out;
    send_state_set(request, SEND_IDLE);
    /* The PML has nothing to do with it until it is started. Relaxed: as in send_request_begin. */
    atomic_store_explicit(&request->ends, persistent, memory_order_relaxed);
    send_request_init(request, mode, persistent);
    return request;
}

void send_request_return(struct send_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    OMPI_REQUEST_FINI(&base->req_ompi);
    OBJ_RELEASE(base->req_comm);
    OMPI_DATATYPE_RELEASE(base->req_datatype);
    tsan_list_return(&mca_pml_base_send_requests, (opal_free_list_item_t *) request);
}

bool send_request_is_buffered(const struct send_request *request)
{
    return request->base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED;
}

void send_request_sum(struct send_request *request, size_t end)
{
    request->sum = crc32c(request->sum, request->out.data + request->summed, end - request->summed);
    request->summed = end;
}

void send_request_complete(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    handle_release(&multilane.handles, &request->handle);
    rma_release(&request->rma);
    if (OPAL_LIKELY(request->protocol != NULL) && request->protocol->send_end)
        request->protocol->send_end(request);
    if (OPAL_UNLIKELY(request->source.view != NULL))
        device_source_end(&request->source);
    work_ends_for(&request->counted);
    if (request->is_under_way)
        counter_add32(&request->out.peer->under_way, UINT32_MAX);
    request->is_under_way = false;
    send_state_set(request, SEND_IDLE);
    request->base.req_base.req_pml_complete = true;
    if (send_request_is_buffered(request))
        mca_pml_base_bsend_request_fini(ompi);
    if (!request_is_complete(ompi)) /* buffered sends complete at their start, as a rule */
        request_complete(ompi);
    if (request_ended(&request->ends))
        send_request_return(request);
}

void send_request_step(struct send_request *request)
{
    /* Acquire and release: the last step sees what the others did. */
    if (atomic_fetch_sub_explicit(&request->unfinished, 1, memory_order_acq_rel) == 1)
        send_request_complete(request);
}

void send_request_fail(struct send_request *request, int mpi_error)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = mpi_error;
    /* Else the thread that removed the handle makes that step. */
    if (handle_is_set(request->handle) && handle_take(&multilane.handles, request->handle))
        send_request_step(request);
    send_request_step(request);
}

void send_request_lost(struct send_request *request, struct wire_handle handle)
{
    ompi_status_public_t *status = &request->base.req_base.req_ompi.req_status;
    if (!send_state_leave_announced(request, SEND_STARTED) &&
        send_state_of(request) == SEND_MOVING) { /* the end of its pieces ends it */
        status->MPI_ERROR = COMPAT_ERR_PROC_FAILED;
        return;
    }
    if (!handle_take(&multilane.handles, handle))
        return;
    status->MPI_ERROR = COMPAT_ERR_PROC_FAILED;
    send_request_step(request);
}

void send_request_broke(struct send_request *request)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = COMPAT_ERR_PROC_FAILED;
    send_request_step(request);
}

/* btl/cuda's is none of the peer's lanes: by one of these it is announced. */
static struct lane *started_by(const struct send_request *request)
{
    struct peer *peer = request->out.peer;
    return request->route->lanes[0] < peer_lane_count(peer) ? route_lane(request->route, peer, 0)
                                                            : peer_control_lane(peer);
}

int send_request_try(struct send_request *request)
{
    if (OPAL_UNLIKELY(peer_is_gone(request->out.peer))) {
        send_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return OMPI_SUCCESS;
    }
    int rc = request->protocol->start(request);
    if (rc == LANE_AGAIN || rc == OMPI_SUCCESS)
        return rc;
    lane_events.failed(started_by(request), "could not start a send", rc);
    send_request_fail(request, MPI_ERR_OTHER);
    return OMPI_SUCCESS;
}

void send_request_begin(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    request->base.req_base.req_pml_complete = false;
    ompi->req_complete = REQUEST_PENDING;
    ompi->req_state = OMPI_REQUEST_ACTIVE;
    ompi->req_status.MPI_ERROR = OMPI_SUCCESS;
    ompi->req_status._cancelled = 0;
    /* osc/pt2pt of 4.1 finds the operation of a completed send by its tag. */
    ompi->req_status.MPI_SOURCE = ompi_comm_rank(request->base.req_base.req_comm);
    ompi->req_status.MPI_TAG = request->base.req_base.req_tag;
    ompi->req_status._ucount = request->out.size;
    request->base.req_bytes_packed = request->out.size;
    /* Relaxed, both: no other thread uses the request yet. */
    atomic_store_explicit(&request->ends, 0, memory_order_relaxed);
    atomic_store_explicit(&request->unfinished, 1, memory_order_relaxed);
    request->receiver = (struct wire_handle){0};
    request->protocol = NULL;
    request->is_summed = false;
    send_state_set(request, SEND_STARTED);
    work_begins_for(&request->counted);
}

void send_request_admitted(struct send_request *request, enum flow_verdict way)
{
    if (way == FLOW_GO_AS_RTS && !request->protocol->method)
        request->protocol = protocol_of_messages();
}
