/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-put: RTS, RTR with the keys of the receive buffer, the sender puts over all lanes, FIN on
 * each lane after its puts: when they have ended, or right behind them where a lane keeps that
 * order. */
#include "protocol/common.h"

#include "delivery/control.h"

extern const struct protocol rndv_put, rndv_device;

static int rndv_put_start(struct send_request *request)
{
    return rndv_announce(request, route_lane(request->route, request->out.peer, 0), NULL, NULL);
}

/* This end's route for puts: for this message; or, where the sender puts in a stream or tries it,
 * for those of a stream, and for the largest. Null: it has none. */
static const struct route *put_route(const struct recv_request *request)
{
    struct peer_class *class = peer_class_now(recv_request_peer(request));
    const size_t sizes[] = {request->wanted, SIZE_MAX};
    if (request->route->protocol == &rndv_put)
        return request->route;
    for (int i = 0; i < 4; i++) {
        enum class_buffer buffer = i % 2 == 0 ? CLASS_STREAM : CLASS_CONTIGUOUS;
        const struct route *route =
            class_planned(class, buffer) ? class_route_at(class, buffer, sizes[i / 2]) : NULL;
        if (route && route->protocol == &rndv_put)
            return route;
    }
    return NULL;
}

/* The lanes are those by which this end would put, else the one that the RTS came on. */
static bool rndv_put_offer(struct recv_request *request, char *place, const struct arrival *arrival)
{
    const uint32_t access = MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_WRITE;
    peer_check_links(recv_request_peer(request));
    const struct route *route = put_route(request);
    struct lane *lane = arrival->lane;
    if (route)
        return rma_offer(&request->rma, route, recv_request_peer(request), place, request->wanted,
                         access);
    return lane && lane_can_put(lane) &&
           rma_offer_lane(&request->rma, lane, place, request->wanted, access);
}

static bool rndv_put_receive(struct recv_request *request, const struct arrival *arrival)
{
    char *place = recv_request_place(request, &request->rma.is_device);
    request->rma.count = 0;
    atomic_store_explicit(&request->rma.landed, false, memory_order_relaxed);
    if (!rndv_put_offer(request, place, arrival))
        return false;
    unsigned char bytes[WIRE_KEY_MAX];
    struct wire_key key;
    rma_write_keys(&request->rma, &key, bytes);
    recv_request_send_rtr(request, request->rma.lanes[0].lane, WIRE_BY_PUT, &key, bytes);
    return true;
}

/* A message with a sum has arrived when the receiver says so, or it comes again. */
static void answer_await(struct send_request *request)
{
    if (send_state_of(request) == SEND_ANNOUNCED)
        return;
    /* The answer is one step more. Relaxed: the steps order. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    send_state_set(request, SEND_ANNOUNCED);
    if (OPAL_UNLIKELY(peer_is_lost(request->out.peer)))
        send_request_lost(request, request->handle); /* lost_end may have looked before */
}

/* On the lane of the puts: it is ordered behind them. The sum is made while the receiver still
 * takes the last bytes out of the lane. */
static void fin_send(struct send_request *request, struct rma_lane *used)
{
    struct wire_fin_summed fin = {.fin = {.receiver = request->receiver, .size = used->bytes}};
    if (!used->bytes)
        return; /* none, or it was sent */
    used->bytes = 0;
    if (OPAL_UNLIKELY(request->is_summed)) {
        answer_await(request);
        send_request_sum(request, request->out.size);
        fin.sum = request->sum;
    }
    /* Relaxed: the steps order. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    control_send_owned(used->lane, request->is_summed ? WIRE_FIN_SUMMED : WIRE_FIN, &fin,
                       request->is_summed ? sizeof(fin) : sizeof(fin.fin), 0, bytes_reported,
                       request);
}

/* Behind the last bytes on the only lane, where none is lost without the peer and that keeps the
 * order, the FIN need not wait until they are there. */
static bool fin_follows(const struct rma *rma)
{
    const struct lane *lane = rma->lanes[0].lane;
    return rma->count == 1 && lane->keeps_order && !lane->returns;
}

/* Behind each summed piece but the last the receiver hears how much is there, and sums that while
 * the next one comes. */
static int rndv_put_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    struct rma_lane *used = &request->rma.lanes[0];
    bool is_device;
    int rc = rma_put(&request->rma, send_request_place(request, &is_device), offset,
                     request->out.size, size);
    if (rc != OMPI_SUCCESS || !fin_follows(&request->rma))
        return rc;
    if (offset + *size == transfer->end)
        fin_send(request, used);
    else if (OPAL_UNLIKELY(request->is_summed))
        bytes_report(used->lane, WIRE_SO_FAR, request->receiver, offset + *size, NULL);
    return rc;
}

/* Once the fence holds, sends all as messages: the same bytes to the same places. */
static int rndv_put_again(struct pending *pending)
{
    struct send_request *request =
        (struct send_request *) ((char *) pending - offsetof(struct send_request, pending));
    /* A lost peer never confirms the fence; then none is needed. */
    if (rma_fence(&request->rma) == LANE_AGAIN && !peer_is_lost(request->out.peer))
        return LANE_AGAIN;
    rma_release(&request->rma);
    rndv_am_move(request, request->transfer.end);
    return OMPI_SUCCESS;
}

static void rndv_put_finish(struct transfer *transfer, int status)
{
    struct send_request *request = send_request_of_transfer(transfer);
    if (status != OMPI_SUCCESS) {
        atomic_store_explicit(&request->is_putting, false, memory_order_relaxed);
        request->pending.retry = rndv_put_again;
        pending_add(&request->pending);
        return;
    }
    for (uint32_t i = 0; i < request->rma.count; i++)
        fin_send(request, &request->rma.lanes[i]);
    atomic_store_explicit(&request->is_putting, false, memory_order_release); /* ..._again */
    send_request_step(request);
}

static const struct transfer_steps rndv_put_way = {.start = rndv_put_piece,
                                                   .finish = rndv_put_finish};

static void rndv_put_ready(struct send_request *request, struct lane *lane,
                           const struct wire_rtr *rtr, const unsigned char *key)
{
    struct rma *rma = &request->rma;
    char *place = send_request_place(request, &rma->is_device);
    rma_release(rma); /* of a get that the receiver did not choose */
    rma_read_keys(rma, request->out.peer, lane, &rtr->key, key);
    rma->transfer = &request->transfer;
    if (rma_can_put(rma, place, rtr->size)) {
        atomic_store_explicit(&request->is_putting, request->is_summed, memory_order_relaxed);
        transfer_begin(&request->transfer, &rndv_put_way, rtr->size, PIECES_IN_FLIGHT * rma->count);
    } else {
        rma_release(rma);
        rndv_am_move(request, rtr->size);
    }
}

/* The FIN of one lane: so many bytes are there. */
static bool rndv_put_fin(struct recv_request *request, const struct wire_fin *fin)
{
    if (request->rma.count == 0 || !recv_request_promise(request, fin))
        return false;
    atomic_store_explicit(&request->rma.landed, true, memory_order_relaxed); /* device_sink_end */
    recv_request_received(request, fin->size);
    return true;
}

const struct protocol rndv_put = {
    .name = "rndv-put",
    .method = WIRE_BY_PUT,
    .post = post_by_request,
    .start = rndv_put_start,
    .ready = rndv_put_ready,
    .receive = rndv_put_receive,
    .fin = rndv_put_fin,
    .puts = true,
    .over_device_lane = &rndv_device,
};
