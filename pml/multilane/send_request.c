/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a send that could not be done at once. */
#include "send_request.h"

#include <string.h>

#include "common/compat/tsan.h"
#include "credit.h"
#include "device_memory.h"
#include "errors.h"
#include "multilane.h"
#include "protocol/protocol.h"
#include "request.h"
#include "work.h"

static int send_request_free(ompi_request_t **ompi)
{
    struct send_request *request = (struct send_request *) *ompi;
    tsan_acquire(request); /* request_complete */
    request->base.req_base.req_free_called = true;
    if (request_ended(&request->ends))
        send_request_return(request);
    *ompi = MPI_REQUEST_NULL;
    if (OPAL_UNLIKELY(request_any_unsent()))
        request_move_on(); /* of a wait or test that found it complete */
    return OMPI_SUCCESS;
}

static void send_request_complete(struct send_request *request);

static int send_request_cancel(ompi_request_t *ompi, int flag)
{
    struct send_request *request = (struct send_request *) ompi;
    /* MPI lets an implementation never cancel a send. One to a dead process must end, though. */
    if (request_is_complete(ompi))
        return OMPI_SUCCESS;
    if (compat_proc_is_active(request->out.peer->proc))
        return compat_send_cancel(ompi, flag);
    if (__atomic_load_n(&request->in_ring, __ATOMIC_RELAXED)) { /* it ends with the ring */
        rndv_ring_stop(request->out.peer, true);
        return OMPI_SUCCESS;
    }
    ompi->req_status._cancelled = true;
    ompi->req_status.MPI_ERROR = COMPAT_ERR_PROC_FAILED;
    /* Where pieces of it may be under way, or it waits to be tried again, only the program is done
     * with it: it is given back when they are, and stays with us if a BTL never says so. */
    if (credit_withdraw(request)) {
        send_request_complete(request);
        return OMPI_SUCCESS;
    }
    /* No answer comes. */
    if (request->state != SEND_MOVING && handle_is_set(request->handle) &&
        handle_take(&multilane.handles, request->handle))
        send_request_step(request);
    if (!request_is_complete(ompi))
        request_complete(ompi);
    return OMPI_SUCCESS;
}

static void send_request_construct(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    ompi->req_start = module_start;
    ompi->req_free = send_request_free;
    ompi->req_cancel = send_request_cancel;
    request->base.req_base.req_type = MCA_PML_REQUEST_SEND;
    request->handle = (struct wire_handle){0};
    request->rma.count = 0;
    request->control = NULL;
    request->view = NULL;
    request->bounce = NULL;
    request->device_key = (struct registration){0};
    request->expecting = 0;
    request->in_ring = false;
    request->is_waiting = false;
    tsan_release(request); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(send_request_t, mca_pml_base_send_request_t, send_request_construct, NULL);

void outgoing_pack(const struct outgoing *out, void *to)
{
    opal_convertor_t convertor;
    struct iovec iov = {.iov_base = to, .iov_len = out->size};
    uint32_t iov_count = 1;
    size_t packed = out->size;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(out->peer->proc->super.proc_convertor,
                                             &out->datatype->super, out->count, out->buffer, 0,
                                             &convertor);
    opal_convertor_pack(&convertor, &iov, &iov_count, &packed);
    OBJ_DESTRUCT(&convertor);
}

struct send_request *send_request_new(const struct outgoing *out, mca_pml_base_send_mode_t mode,
                                      bool persistent)
{
    struct send_request *request =
        (struct send_request *) tsan_list_get(&mca_pml_base_send_requests);
    if (OPAL_UNLIKELY(!request))
        return NULL;
    request->out = *out;
    request->state = SEND_IDLE;
    request->ends = persistent; /* the PML has nothing to do with it until it is started */
    request->base.req_base.req_proc = out->peer->proc;
    /* The macro needs this name: it also replaces the member that it assigns it to. */
    ompi_communicator_t *comm = out->comm->ompi;
    MCA_PML_BASE_SEND_REQUEST_INIT(&request->base, out->buffer, out->count, out->datatype,
                                   out->destination, out->tag, comm, mode, persistent, 0);
    return request;
}

void send_request_return(struct send_request *request)
{
    MCA_PML_BASE_SEND_REQUEST_FINI(&request->base);
    tsan_list_return(&mca_pml_base_send_requests, (opal_free_list_item_t *) request);
}

static bool is_buffered(const struct send_request *request)
{
    return request->base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED;
}

static void send_request_release_control(struct send_request *request)
{
    struct lane *lane = request->control_lane;
    if (OPAL_LIKELY(!request->control))
        return;
    lane->extension->control_release(lane->btl, lane->endpoint, request->control_handle);
    request->control = NULL;
}

void send_request_expect(struct send_request *request, bool expects)
{
    struct peer *peer = request->out.peer;
    /* Acquire: pairs with the lanes that are added to the array, see peer_lanes.c. */
    uint8_t lanes =
        expects ? __atomic_load_n(&peer->lane_count, __ATOMIC_ACQUIRE) : request->expecting;
    for (uint8_t i = 0; i < lanes; i++)
        lane_expect(&peer->lanes[i], expects);
    request->expecting = expects ? lanes : 0;
}

static void send_request_complete(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    handle_release(&multilane.handles, &request->handle);
    rma_release(&request->rma);
    send_request_release_control(request);
    if (OPAL_UNLIKELY(request->view != NULL))
        device_send_end(request);
    send_request_expect(request, false);
    request_work_ends(&request->counted);
    request->state = SEND_IDLE;
    request->base.req_base.req_pml_complete = true;
    if (is_buffered(request))
        mca_pml_base_bsend_request_fini(ompi);
    if (!request_is_complete(ompi)) /* a buffered one is so from its start, as a rule */
        request_complete(ompi);
    if (request_ended(&request->ends))
        send_request_return(request);
}

void send_request_step(struct send_request *request)
{
    /* Each step sees what the earlier ones did. */
    if (__atomic_sub_fetch(&request->unfinished, 1, __ATOMIC_ACQ_REL) == 0)
        send_request_complete(request);
}

void send_request_fail(struct send_request *request, int mpi_error)
{
    request->base.req_base.req_ompi.req_status.MPI_ERROR = mpi_error;
    /* Else another thread, which says that no answer comes, makes that step. */
    if (handle_is_set(request->handle) && handle_take(&multilane.handles, request->handle))
        send_request_step(request);
    send_request_step(request);
}

void send_request_lost(struct send_request *request, struct wire_handle handle)
{
    ompi_status_public_t *status = &request->base.req_base.req_ompi.req_status;
    if (request->state == SEND_MOVING) { /* the end of its pieces is its own */
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

int send_request_try(struct send_request *request)
{
    if (OPAL_UNLIKELY(lost_or_dead(request->out.peer))) {
        send_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return OMPI_SUCCESS;
    }
    int rc = request->protocol->start(request);
    if (rc == LANE_AGAIN || rc == OMPI_SUCCESS)
        return rc;
    lane_failed(route_lane(request->route, request->out.peer, 0), "could not start a send", rc);
    send_request_fail(request, MPI_ERR_OTHER);
    return OMPI_SUCCESS;
}

/* Moves a buffered message into the buffer that the user attached, whence it is sent. */
static int send_request_buffer(struct send_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    if (request->out.size == 0)
        return OMPI_SUCCESS;
    /* Not mca_pml_base_bsend_request_start, which packs as well: up to 5.0 it counts without the
     * lock that every other count is made with. */
    int rc = mca_pml_base_bsend_request_alloc(&base->req_ompi);
    void *room = (void *) (uintptr_t) request->base.req_addr;
    if (OPAL_LIKELY(rc == OMPI_SUCCESS)) {
        if (OPAL_UNLIKELY(request->bounce != NULL))
            memcpy(room, request->bounce->bytes, request->out.size);
        else
            outgoing_pack(&request->out, room);
    }
    if (OPAL_UNLIKELY(request->view != NULL))
        device_send_end(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    opal_convertor_cleanup(&base->req_convertor);
    opal_convertor_copy_and_prepare_for_send(base->req_proc->super.proc_convertor,
                                             &ompi_mpi_packed.dt.super, request->out.size, room, 0,
                                             &base->req_convertor);
    request->out.data = request->base.req_addr;
    request->out.memory.kind = MEMORY_HOST;
    return rc;
}

/* What has to be done before the message gets its number, and may fail. */
static int send_request_prepare(struct send_request *request)
{
    int rc = OMPI_SUCCESS;
    if (OPAL_UNLIKELY(request->out.memory.kind != MEMORY_HOST))
        rc = device_send_begin(request);
    if (rc == OMPI_SUCCESS && is_buffered(request))
        rc = send_request_buffer(request);
    return rc;
}

void send_request_begin(struct send_request *request)
{
    ompi_request_t *ompi = &request->base.req_base.req_ompi;
    request->base.req_base.req_pml_complete = false;
    ompi->req_complete = REQUEST_PENDING;
    ompi->req_state = OMPI_REQUEST_ACTIVE;
    ompi->req_status.MPI_ERROR = OMPI_SUCCESS;
    ompi->req_status._cancelled = 0;
    /* 4.1's osc/pt2pt tells by the tag of a send that has ended whose operation it was. */
    ompi->req_status.MPI_SOURCE = ompi_comm_rank(request->base.req_base.req_comm);
    ompi->req_status.MPI_TAG = request->base.req_base.req_tag;
    ompi->req_status._ucount = request->out.size;
    request->base.req_bytes_packed = request->out.size;
    request->ends = 0;
    request->unfinished = 1;
    request->receiver = (struct wire_handle){0};
    request->state = SEND_STARTED;
    request_work_begins(&request->counted);
}

int send_request_start(struct send_request *request, bool is_numbered)
{
    send_request_begin(request);
    if (OPAL_UNLIKELY(peer_is_lost(request->out.peer))) {
        send_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return OMPI_SUCCESS;
    }
    if (!is_numbered) {
        int rc = send_request_prepare(request);
        if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
            request_work_ends(&request->counted);
            request->state = SEND_IDLE;
            request->ends = 1;
            request->base.req_base.req_pml_complete = true;
            request->base.req_base.req_ompi.req_state = OMPI_REQUEST_INACTIVE;
            request->base.req_base.req_ompi.req_complete = REQUEST_COMPLETED;
            return rc;
        }
    }
    /* Another plan than the one that it was prepared for: it may have changed meanwhile. */
    bool must_stage = request->view != NULL && !request->bounce;
    if (is_numbered) { /* and counted */
        request->route = request->out.route;
    } else {
        /* Only now: a number that was given out and not sent would stop all that follow. */
        enum class_buffer buffer = outgoing_buffer(&request->out);
        struct route *route =
            class_route(peer_class_now(request->out.peer), buffer, request->out.size);
        if (OPAL_UNLIKELY(buffer == CLASS_DEVICE_RINGLESS))
            peer_ring_missed(request->out.peer);
        outgoing_draw(&request->out, route, OPAL_UNLIKELY(must_stage) ? 0 : route->eager_mask);
        request->route = route;
    }
    request->base.req_base.req_sequence = request->out.sequence;
    request->protocol = request->route->protocol;
    if (OPAL_UNLIKELY(must_stage) && request->protocol->method == 0)
        request->protocol = &rndv_staged;
    if (is_buffered(request))
        request_complete(&request->base.req_base.req_ompi);
    enum flow_way way = credit_admit(request);
    if (OPAL_UNLIKELY(way == FLOW_WAIT))
        return OMPI_SUCCESS;
    send_request_admitted(request, way);
    if (send_request_try(request) == LANE_AGAIN)
        credit_await_lane(request);
    return OMPI_SUCCESS;
}

void send_request_admitted(struct send_request *request, enum flow_way way)
{
    if (way == FLOW_GO_AS_RTS && !request->protocol->method)
        request->protocol = request->view ? &rndv_staged : &rndv_am; /* any lane will do */
}

bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key)
{
    struct send_request *request = handle_find(&multilane.handles, HANDLE_SEND, rtr->sender);
    if (!request || request->out.peer != peer || request->state != SEND_ANNOUNCED ||
        rtr->offset > request->out.size || rtr->size > request->out.size - rtr->offset)
        return false;
    bool is_device;
    if (rtr->method == WIRE_BY_PUT && !device_send_place(request, &is_device))
        return false;
    const struct protocol *protocol = protocol_of_method(rtr->method);
    if (!protocol || !protocol->ready)
        return false;
    if (OPAL_UNLIKELY(__atomic_load_n(&request->in_ring, __ATOMIC_RELAXED)) &&
        rtr->method != WIRE_BY_RING) { /* the receiver has given it up, and need not be told */
        __atomic_store_n(&request->in_ring, false, __ATOMIC_RELAXED);
        rndv_ring_stop(peer, true);
    }
    if (OPAL_UNLIKELY(request->protocol == &rndv_ring) && rtr->method != WIRE_BY_RING)
        peer_ring_missed(peer);
    request->state = SEND_MOVING;
    send_request_expect(request, false);
    request->receiver = rtr->receiver;
    protocol->ready(request, lane, rtr, key);
    return true;
}

bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken)
{
    struct send_request *request = handle_find(&multilane.handles, HANDLE_SEND, handle);
    if (!request || request->out.peer != peer || request->state == SEND_MOVING ||
        !handle_take(&multilane.handles, handle))
        return false;
    /* Its own lane may not be done with it yet: it ends when both are, in error or not. */
    if (!taken)
        request->base.req_base.req_ompi.req_status.MPI_ERROR = COMPAT_ERR_REVOKED;
    send_request_step(request);
    return true;
}
