/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of a send, the queue of a peer, and the steps that the receiver or the user causes. */
#include "request/send_request.h"

#include <string.h>

#include "base/pending.h"
#include "base/multilane.h"
#include "memory/device.h"
#include "contact/peer_lanes.h"
#include "request/timer.h"
#include "match/inbound.h"

/* The queue of a peer, in the order of the messages' numbers. */

/* The first in the queue. Relaxed: the credit lock, which is held, orders it. */
static struct send_request *waiting_first(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed);
}

/* Links a request, or null, behind `before`; null: at the front. Relaxed: send_queue_any reads
 * it without the lock, as a hint. */
static void waiting_link(struct peer *peer, struct send_request *before,
                         struct send_request *request)
{
    if (before)
        before->next_waiting = request;
    else
        atomic_store_explicit(&peer->waiting, request, memory_order_relaxed);
}

static bool is_older(const struct send_request *one, const struct send_request *other)
{
    return (int32_t) (one->out.mark - other->out.mark) < 0;
}

/* Sorted by mark: threads come here in any order. With the credit lock held. */
static void waiting_insert(struct peer *peer, struct send_request *request)
{
    struct send_request *before = NULL, *next = waiting_first(peer);
    if (peer->waiting_last && is_older(peer->waiting_last, request)) {
        before = peer->waiting_last;
        next = NULL;
    }
    while (next && is_older(next, request)) {
        before = next;
        next = next->next_waiting;
    }
    request->next_waiting = next;
    waiting_link(peer, before, request);
    if (!next)
        peer->waiting_last = request;
    request->is_waiting = true;
}

/* With the credit lock held. */
static struct send_request *waiting_pop(struct peer *peer)
{
    struct send_request *request = waiting_first(peer);
    waiting_link(peer, NULL, request->next_waiting);
    if (!request->next_waiting)
        peer->waiting_last = NULL;
    request->is_waiting = false;
    return request;
}

/* Does the first message wait for its lane? Then later ones wait behind it, or they would take
 * its room. With the credit lock held. */
static bool lane_is_awaited(const struct peer *peer)
{
    const struct send_request *first = waiting_first(peer);
    return first && first->is_admitted;
}

/* May the message go, and how? FLOW_WAIT: it is queued, and progress sends it when the receiver
 * has room. */
static enum flow_verdict send_queue_admit(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    if (OPAL_LIKELY(!send_queue_any(peer) &&
                    flow_is_within(request->out.mark,
                                   atomic_load_explicit(&peer->out.limit, memory_order_relaxed))))
        return FLOW_GO;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    enum flow_verdict verdict = FLOW_WAIT;
    bool is_behind = lane_is_awaited(peer);
    if (!is_behind)
        verdict = flow_try(&peer->out, request->out.mark, request->out.cost);
    request->is_admitted = false;
    if (verdict == FLOW_WAIT) {
        waiting_insert(peer, request);
        if (!is_behind)
            counter_add(&multilane.waited_messages, 1);
    }
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        send_queue_lost(peer); /* the queue may have been emptied before this */
    return verdict;
}

/* The lane has refused the message: queues it before all later ones. */
static void send_queue_await_lane(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    request->is_admitted = true;
    waiting_insert(peer, request);
    bool is_due = !peer->waiting_is_pending;
    peer->waiting_is_pending = true;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (is_due)
        pending_add(&peer->waiting_pending);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        send_queue_lost(peer); /* as above */
}

bool send_queue_withdraw(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    bool was_waiting = request->is_waiting;
    if (was_waiting) {
        struct send_request *before = NULL, *at = waiting_first(peer);
        for (; at != request; at = at->next_waiting)
            before = at;
        waiting_link(peer, before, request->next_waiting);
        if (!request->next_waiting)
            peer->waiting_last = before;
        request->is_waiting = false;
    }
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    return was_waiting;
}

void send_queue_lost(struct peer *peer)
{
    struct send_request *request;
    credit_end(peer);
    do {
        OPAL_THREAD_LOCK(&peer->credit_lock);
        request = waiting_first(peer) ? waiting_pop(peer) : NULL;
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
        if (request)
            send_request_fail(request, COMPAT_ERR_PROC_FAILED);
    } while (request);
}

/* Removes and returns the next message that may go now; null: new limits will bring this
 * function back. */
static struct send_request *waiting_take(struct peer *peer, enum flow_verdict *verdict)
{
    struct send_request *request = NULL;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    const struct send_request *first = waiting_first(peer);
    *verdict = FLOW_WAIT;
    if (lane_is_awaited(peer))
        *verdict = FLOW_GO;
    else if (first)
        *verdict = flow_try(&peer->out, first->out.mark, first->out.cost);
    if (*verdict == FLOW_WAIT)
        peer->waiting_is_pending = false;
    else
        request = waiting_pop(peer);
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    return request;
}

/* From progress: sends what may go now. */
static int waiting_retry(struct pending *pending)
{
    struct peer *peer = (struct peer *) ((char *) pending - offsetof(struct peer, waiting_pending));
    enum flow_verdict verdict;
    struct send_request *request;
    while ((request = waiting_take(peer, &verdict))) {
        if (!request->is_admitted) {
            send_request_admitted(request, verdict);
            request->is_admitted = true;
        }
        if (send_request_try(request) != LANE_AGAIN)
            continue;
        OPAL_THREAD_LOCK(&peer->credit_lock);
        waiting_insert(peer, request);
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
        return LANE_AGAIN;
    }
    return OMPI_SUCCESS;
}

bool send_queue_credit(struct peer *peer, const struct wire_credit *credit)
{
    uint32_t drawn = (uint32_t) (atomic_load_explicit(&peer->drawn, memory_order_relaxed) >> 32);
    OPAL_THREAD_LOCK(&peer->credit_lock);
    bool good = flow_is_possible(&peer->out, drawn, credit->limit, credit->headers);
    bool is_due = good && flow_moved(&peer->out, drawn, credit->limit, credit->headers) &&
                  waiting_first(peer) && !peer->waiting_is_pending;
    if (is_due)
        peer->waiting_is_pending = true;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (is_due)
        pending_add(&peer->waiting_pending);
    return good;
}

void send_queue_begin(struct peer *peer, uint32_t promised)
{
    peer->out = (struct flow_out){.limit = promised, .headers = promised + flow_headers(promised)};
    peer->waiting_pending = (struct pending){.retry = waiting_retry, .is_unsent = true};
}

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
    peer_check_network(request->out.peer, request->out.size);
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
    if (!request || request->out.peer != peer || rtr->size > request->out.size)
        return false;
    const struct protocol *way = protocol_of_method(rtr->method);
    bool is_device;
    if (!way || !way->ready || (way->puts && !send_request_place(request, &is_device)))
        return false;
    /* Acquire: as in send_request_again. */
    bool is_again = atomic_load_explicit(&request->is_putting, memory_order_acquire);
    if ((is_again && rtr->method != WIRE_BY_SEND) ||
        !send_state_leave_announced(request, SEND_MOVING))
        return false;
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
