/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that several protocols make. */
#include "protocol/common.h"

#include <string.h>

#include "base/multilane.h"
#include "delivery/control.h"

int post_by_request(const struct outgoing *out, const struct route *route)
{
    return LANE_AGAIN;
}

/* The answer is one more thing that the request waits for. */
static int answer_expect(struct send_request *request)
{
    if (handle_is_set(request->handle))
        return OMPI_SUCCESS;
    /* Before another thread finds the request by its handle, and makes a step. Relaxed: as yet no
     * other thread changes it, and the handle's lock orders it. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    int rc = handle_acquire(&multilane.handles, HANDLE_SEND, request, &request->handle);
    if (rc != OMPI_SUCCESS)
        atomic_fetch_sub_explicit(&request->unfinished, 1, memory_order_relaxed);
    else if (OPAL_UNLIKELY(peer_is_lost(request->out.peer)))
        send_request_lost(request, request->handle); /* lost_end may have looked before */
    return rc;
}

int eager_expect_ack(struct send_request *request)
{
    if (request->base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS)
        return OMPI_SUCCESS;
    int rc = answer_expect(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    request->out.answer = request->handle;
    handle_goes_out(request);
    return OMPI_SUCCESS;
}

/* --- by a copy that stays until it has left --------------------------------------------------- */

/* What the copy takes: a BTL's fragments are as long as its longest eager message. */
static size_t kept_cost(const struct send_request *request)
{
    const struct lane *lane = route_lane(request->route, request->out.peer, 0);
    size_t least = lane->btl->btl_eager_limit;
    return request->out.size < least ? least : request->out.size;
}

static void kept_left(void *owner, int status)
{
    struct send_request *request = owner;
    peer_unqueue(request->out.peer, kept_cost(request));
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        send_request_step(request);
    else
        send_request_broke(request);
}

/* Sets up the convertor for what is sent: the user's memory, or the packed copy of it. */
static void outgoing_prepare(const struct outgoing *out, opal_convertor_t *convertor)
{
    const opal_convertor_t *of = out->peer->proc->super.proc_convertor;
    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    if (OPAL_LIKELY(out->data != NULL))
        opal_convertor_copy_and_prepare_for_send(of, &ompi_mpi_packed.dt.super, out->size,
                                                 out->data, 0, convertor);
    else
        opal_convertor_copy_and_prepare_for_send(of, &out->datatype->super, out->count, out->buffer,
                                                 0, convertor);
}

int eager_post_packed(const struct outgoing *out, struct lane *lane)
{
    opal_convertor_t convertor;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    if (!lane->sendi)
        return LANE_AGAIN;
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->answer);
    outgoing_prepare(out, &convertor);
    int rc = lane_send_packed(lane, header, length, &convertor, out->size);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

static int kept_by_fragment(struct send_request *request, struct lane *lane)
{
    const struct outgoing *out = &request->out;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->answer);
    mca_btl_base_descriptor_t *descriptor;
    int rc = lane_fragment(lane, length + out->size, &descriptor);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS))
        return rc;
    unsigned char *bytes = lane_fragment_bytes(descriptor);
    memcpy(bytes, header, length);
    outgoing_copy(out, bytes + length);
    counter_add(&multilane.copied_bytes, out->size);
    return lane_send_descriptor(lane, descriptor, kept_left, request);
}

static int eager_send_kept(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    size_t cost = kept_cost(request); /* the request may be gone when its lane has it */
    struct lane *lane = stripe_whole(request->route, peer, request->out.size);
    if (!lane || !peer_queue(peer, cost))
        return LANE_AGAIN;
    int rc = kept_by_fragment(request, lane);
    if (rc == LANE_UNDER_WAY)
        return OMPI_SUCCESS;
    peer_unqueue(peer, cost);
    return rc;
}

int eager_start(struct send_request *request)
{
    int rc = eager_expect_ack(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = request->protocol->post(&request->out, request->route);
    if (rc != LANE_LEFT)
        return rc == LANE_FULL ? LANE_AGAIN : eager_send_kept(request);
    send_request_step(request);
    return OMPI_SUCCESS;
}

/* --- in pieces -------------------------------------------------------------------------------- */

void pieces_finish(struct transfer *transfer, int status)
{
    struct send_request *request = send_request_of_transfer(transfer);
    if (OPAL_LIKELY(status == OMPI_SUCCESS)) {
        send_request_step(request);
    } else {
        lane_events.failed(route_lane(request->route, request->out.peer, 0),
                           "lost a part of a message", status);
        send_request_broke(request);
    }
}

/* --- rendezvous ------------------------------------------------------------------------------- */

static uint16_t memory_of(const struct send_request *request)
{
    bool is_device;
    const char *place = send_request_place(request, &is_device);
    return (is_device ? WIRE_ON_DEVICE : 0) | (place ? WIRE_IN_ONE_PIECE : 0);
}

/* Of a put, while its receiver answers, over sock in some 10 us: so much takes no longer. The
 * answer may have come, and another thread may be at it. */
#define SUMMED_AHEAD ((size_t) 512 << 10)

static void sum_ahead(struct send_request *request)
{
    const size_t end = request->out.size < SUMMED_AHEAD ? request->out.size : SUMMED_AHEAD;
    if (request->summed < end && !opal_using_threads())
        send_request_sum(request, end);
}

/* Its bytes may go by another lane than the announcement. */
static bool any_lane_sums(const struct peer *peer)
{
    bool any = false;
    for (int i = 0; parameters.sums != SUMS_OF_NONE && i < peer_lane_count(peer); i++)
        any |= peer->lanes[i].sums;
    return any;
}

int rndv_announce(struct send_request *request, struct lane *lane, const struct wire_key *key,
                  const void *key_bytes)
{
    int rc = answer_expect(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    const struct outgoing *out = &request->out;
    const struct wire_handle timer =
        out->answer.index >= WIRE_TIMER_FIRST ? out->answer : (struct wire_handle){0};
    struct control_message message;
    message.length = comm_write_match(out->comm, out->peer, message.bytes, WIRE_RTS, out->sequence,
                                      out->tag, timer);
    struct wire_rts rts = {.size = out->size,
                           .sender = request->handle,
                           .method = (uint16_t) request->protocol->method,
                           .memory = memory_of(request)};
    if (key)
        rts.key = *key;
    bool is_summed =
        OPAL_UNLIKELY(any_lane_sums(out->peer)) && out->data && rts.method != WIRE_BY_SEND;
    if (is_summed) {
        if (!request->is_summed) /* else it is tried again */
            request->summed = request->sum = 0;
        if (rts.method != WIRE_BY_PUT) /* its sum comes with the FIN */
            send_request_sum(request, out->size);
        rts.memory |= WIRE_SUMMED;
        rts.sum = request->sum;
    }
    request->is_summed = is_summed;
    control_append(&message, (char *) &rts + sizeof(rts.match), sizeof(rts) - sizeof(rts.match));
    control_append(&message, key_bytes, wire_keys_length(&rts.key));
    send_state_set(request,
                   SEND_ANNOUNCED); /* before it is true: the answer may come inside the send */
    handle_goes_out(request);
    rc = control_try(lane, &message);
    if (OPAL_UNLIKELY(is_summed))
        sum_ahead(request);
    if (rc == OMPI_SUCCESS)
        send_request_step(request);
    else
        send_state_set(request, SEND_STARTED);
    return rc;
}

int get_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    bool is_device;
    return rma_get(&request->rma, recv_request_place(request, &is_device), offset, request->wanted,
                   size);
}

bool eager_in_place_extended(const struct outgoing *out, struct lane *lane)
{
    size_t header = comm_match_length(out->comm, out->peer, out->answer);
    unsigned char *bytes = lane_reserve(lane, header, out->size);
    if (!bytes)
        return false;
    outgoing_copy_to_lane(out, lane, bytes + header);
    comm_write_extended(out->comm, out->peer, bytes, WIRE_EAGER, out->sequence, out->tag,
                        out->answer);
    lane_commit(lane, header, out->size);
    return true;
}

void bytes_reported(void *owner, int status)
{
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        send_request_step(owner);
    else
        send_request_broke(owner);
}

void bytes_report(struct lane *lane, uint8_t type, struct wire_handle receiver, uint64_t bytes,
                  struct send_request *request)
{
    struct wire_fin fin = {.receiver = receiver, .size = bytes};
    if (request)
        control_send_owned(lane, type, &fin, sizeof(fin), 0, bytes_reported, request);
    else
        control_send(lane, type, &fin, sizeof(fin));
}
