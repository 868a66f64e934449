/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of a send, and the steps that the receiver or the user causes. */
#include "request/send_start.h"

#include <string.h>

#include "base/work.h"
#include "base/multilane.h"
#include "memory/device_buffer.h"
#include "contact/peer_lanes.h"
#include "request/timer.h"
#include "request/send_queue.h"

/* Packs a buffered message into the user's attached buffer; it is sent from there. */
static int send_request_buffer(struct send_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    if (request->out.size == 0)
        return OMPI_SUCCESS;
    /* Not mca_pml_base_bsend_request_start, which packs as well: up to 5.0 it counts without the
     * lock of the other counts. */
    int rc = mca_pml_base_bsend_request_alloc(&base->req_ompi);
    void *room = (void *) (uintptr_t) request->base.req_addr;
    if (OPAL_LIKELY(rc == OMPI_SUCCESS)) {
        if (OPAL_UNLIKELY(request->source.bounce != NULL))
            memcpy(room, request->source.bounce->bytes, request->out.size);
        else
            outgoing_pack(&request->out, room);
    }
    if (OPAL_UNLIKELY(request->source.view != NULL))
        device_source_end(&request->source);
    if (rc != OMPI_SUCCESS)
        return rc;
    request->out.data = request->base.req_addr;
    request->out.memory.kind = MEMORY_HOST;
    return rc;
}

/* Brings the message to host memory where its protocol, or a buffered send, needs that. */
static int send_request_view(struct send_request *request, bool is_eager)
{
    enum device_bounce bounce = !is_eager ? BOUNCE_NONE
                                : request->base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS
                                    ? BOUNCE_LONG
                                    : BOUNCE_SOON;
    struct outgoing *out = &request->out;
    int rc = device_source_begin(&request->source, out->buffer, out->count, out->datatype,
                                 &out->memory, out->size, bounce);
    if (rc == OMPI_SUCCESS && request->source.bounce)
        out->data = (char *) request->source.bounce->bytes;
    return rc;
}

static enum class_buffer buffer_of(const struct send_request *request, bool leaves)
{
    enum class_buffer buffer = outgoing_buffer(&request->out);
    if (leaves && buffer == CLASS_CONTIGUOUS)
        buffer = outgoing_left_buffer(&request->out);
    if (request->base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS)
        return buffer;
    return buffer == CLASS_CONTIGUOUS ? CLASS_SYNC
           : buffer == CLASS_PACKED   ? CLASS_SYNC_PACKED
                                      : buffer;
}

/* Finds its route; and everything that may fail, before the message has its number. */
static int send_request_prepare(struct send_request *request, bool leaves)
{
    struct outgoing *out = &request->out;
    bool is_buffered = send_request_is_buffered(request);
    int rc = OMPI_SUCCESS;
    if (OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST))
        rc = buffer_gone(&out->memory, buffer_first_byte(out->buffer, out->datatype));
    if (OPAL_UNLIKELY(rc == OMPI_SUCCESS && is_buffered && out->memory.kind != MEMORY_HOST))
        rc = send_request_view(request, true);
    if (rc == OMPI_SUCCESS && is_buffered)
        rc = send_request_buffer(request);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
        return rc;
    out->answer = (struct wire_handle){0}; /* of a start before */
    request->route = outgoing_route(out, buffer_of(request, leaves));
    if (OPAL_UNLIKELY(out->memory.kind != MEMORY_HOST))
        rc = send_request_view(request, !request->route->protocol->method);
    return rc;
}

int send_request_start(struct send_request *request, bool is_numbered, bool leaves)
{
    send_request_begin(request);
    peer_meet_network(request->out.peer, request->out.size);
    if (OPAL_UNLIKELY(peer_is_lost(request->out.peer))) {
        send_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return OMPI_SUCCESS;
    }
    if (!is_numbered) {
        int rc = send_request_prepare(request, leaves);
        if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
            work_ends_for(&request->counted);
            send_state_set(request, SEND_IDLE);
            /* Relaxed: only its user knows the request. */
            atomic_store_explicit(&request->ends, 1, memory_order_relaxed);
            request->base.req_base.req_pml_complete = true;
            request->base.req_base.req_ompi.req_state = OMPI_REQUEST_INACTIVE;
            request->base.req_base.req_ompi.req_complete = REQUEST_COMPLETED;
            return rc;
        }
    }
    if (is_numbered) /* and counted */
        request->route = request->out.route;
    else /* drawn last: a number without a message would stop all later ones */
        outgoing_draw(&request->out, request->route, request->route->eager_mask);
    request->is_under_way = true;
    counter_add32(&request->out.peer->under_way, 1);
    request->base.req_base.req_sequence = request->out.sequence;
    request->protocol = request->route->protocol;
    if (send_request_is_buffered(request))
        request_complete(&request->base.req_base.req_ompi);
    enum flow_verdict way = send_queue_admit(request);
    if (OPAL_UNLIKELY(way == FLOW_WAIT))
        return OMPI_SUCCESS;
    send_request_admitted(request, way);
    if (send_request_try(request) == LANE_AGAIN)
        send_queue_await_lane(request);
    return OMPI_SUCCESS;
}

/* The sum of what was put is wrong. Its FIN may have come before the lane says that the puts have
 * ended, and until then they are the transfer. */
static int send_request_again(struct pending *pending)
{
    struct send_request *request =
        (struct send_request *) ((char *) pending - offsetof(struct send_request, pending));
    const struct wire_rtr rtr = {.size = request->again};
    /* Acquire, against rndv_put_finish: the transfer is not used any more. */
    if (atomic_load_explicit(&request->is_putting, memory_order_acquire))
        return LANE_AGAIN;
    protocol_of_messages()->ready(request, NULL, &rtr, NULL);
    return OMPI_SUCCESS;
}

bool send_request_ready(struct peer *peer, struct lane *lane, const struct wire_rtr *rtr,
                        const unsigned char *key)
{
    struct send_request *request = handle_find(&multilane.handles, HANDLE_SEND, rtr->sender);
    if (!request || request->out.peer != peer || rtr->offset > request->out.size ||
        rtr->size > request->out.size - rtr->offset)
        return false;
    const struct protocol *way = protocol_of_method(rtr->method);
    bool is_device;
    if (!way || !way->ready || (way->puts && !send_request_place(request, &is_device)))
        return false;
    /* Acquire: as in send_request_again. */
    bool is_again = atomic_load_explicit(&request->is_putting, memory_order_acquire);
    if ((is_again && (rtr->method != WIRE_BY_SEND || rtr->offset)) ||
        !send_state_leave_announced(request, SEND_MOVING))
        return false;
    send_request_expect(request, false);
    request->receiver = rtr->receiver;
    if (OPAL_UNLIKELY(is_again)) {
        request->again = rtr->size;
        request->pending.retry = send_request_again;
        pending_add(&request->pending);
        return true;
    }
    way->ready(request, lane, rtr, key);
    return true;
}

bool send_request_acknowledged(struct peer *peer, struct wire_handle handle, bool taken)
{
    struct send_request *request = handle_find(&multilane.handles, HANDLE_SEND, handle);
    if (!request || request->out.peer != peer || send_state_of(request) == SEND_MOVING ||
        !handle_take(&multilane.handles, handle))
        return false;
    /* The lane may still use it: it ends when both steps are made. */
    if (!taken)
        request->base.req_base.req_ompi.req_status.MPI_ERROR = COMPAT_ERR_REVOKED;
    send_request_step(request);
    return true;
}

int send_request_cancel(ompi_request_t *ompi, int flag)
{
    struct send_request *request = (struct send_request *) ompi;
    /* MPI allows never to cancel a send. One to a dead process must end, though. */
    if (request_is_complete(ompi))
        return OMPI_SUCCESS;
    if (compat_proc_is_active(request->out.peer->proc))
        return compat_send_cancel(ompi, flag);
    ompi->req_status._cancelled = true;
    ompi->req_status.MPI_ERROR = COMPAT_ERR_PROC_FAILED;
    /* Else pieces may be under way, or the lane may try again: completes for the user only. The
     * request is returned when they end; never, where a BTL does not say so. */
    if (send_queue_withdraw(request)) {
        send_request_complete(request);
        return OMPI_SUCCESS;
    }
    /* No answer will come. */
    if (send_state_of(request) != SEND_MOVING && handle_is_set(request->handle) &&
        handle_take(&multilane.handles, request->handle))
        send_request_step(request);
    if (!request_is_complete(ompi))
        request_complete(ompi);
    return OMPI_SUCCESS;
}
