/* SPDX-License-Identifier: BSD-3-Clause */
/* Over the lane of device memory, which carries no messages. From a device: RTS with the key of its
 * memory, the receiver gets the bytes, to wherever they go, ACK. From host memory to a device: RTS,
 * RTR with the key, the sender puts the bytes, FIN. */
#include "protocol/common.h"

extern const struct protocol rndv_device;

/* --- the end that works, by a copy of the driver's ----------------------------------------------
 */

static void rndv_device_get_finish(struct transfer *transfer, int status)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    if (status == OMPI_SUCCESS)
        recv_request_finish(request);
    else
        recv_request_get_failed(request); /* the bytes come staged */
}

static int rndv_device_put_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    bool is_device;
    return rma_put(&request->rma, send_request_place(request, &is_device), offset,
                   request->out.size, size);
}

static void rndv_device_put_finish(struct transfer *transfer, int status)
{
    struct send_request *request = send_request_of_transfer(transfer);
    size_t end = request->transfer.end;
    request->rma.count = 0;
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS)) {
        rndv_am_move(request, end);
        return;
    }
    /* Relaxed: the steps order. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    bytes_report(peer_control_lane(request->out.peer), WIRE_FIN, request->receiver, end, request);
    send_request_step(request);
}

static const struct transfer_steps get_way = {.start = get_piece, .finish = rndv_device_get_finish};
static const struct transfer_steps put_way = {.start = rndv_device_put_piece,
                                              .finish = rndv_device_put_finish};

/* False: this end has no such lane to the peer, or another kind of key. */
static bool key_read(struct rma *rma, struct peer *peer, const struct wire_key *key,
                     const unsigned char *bytes)
{
    rma_release(rma);
    rma_read_keys(rma, peer, peer->device_lane, key, bytes);
    return rma->count == 1 && rma->lanes[0].lane == peer->device_lane;
}

static void rndv_device_ready(struct send_request *request, struct lane *lane,
                              const struct wire_rtr *rtr, const unsigned char *key)
{
    if (!key_read(&request->rma, request->out.peer, &rtr->key, key)) {
        request->rma.count = 0;
        rndv_am_move(request, rtr->size);
        return;
    }
    request->rma.transfer = &request->transfer;
    transfer_begin(&request->transfer, &put_way, rtr->size, 1);
}

/* --- the receiver -------------------------------------------------------------------------------
 */

static bool device_get(struct recv_request *request, const struct arrival *arrival)
{
    struct rma *rma = &request->rma;
    bool is_read = key_read(rma, recv_request_peer(request), &arrival->key, arrival->key_bytes);
    if (!is_read) {
        rma->count = 0;
        return false;
    }
    rma->transfer = &request->transfer;
    atomic_store_explicit(&request->held_by, &rndv_device, memory_order_relaxed);
    transfer_begin(&request->transfer, &get_way, request->wanted, 1);
    return true;
}

static bool device_ask_put(struct recv_request *request)
{
    struct rma *rma = &request->rma;
    struct peer *peer = recv_request_peer(request);
    char *place = recv_request_place(request, &rma->is_device);
    unsigned char bytes[WIRE_KEY_MAX];
    struct wire_key key;
    rma->count = 0; /* what is registered is given back with the receive */
    if (!rma_offer_lane(rma, peer->device_lane, place, request->wanted,
                        MCA_BTL_REG_FLAG_REMOTE_WRITE))
        return false;
    request->is_summed = false; /* the sender waits for no word of it */
    rma_write_keys(rma, &key, bytes);
    recv_request_send_rtr(request, peer_control_lane(peer), WIRE_BY_DEVICE, &key, bytes);
    return true;
}

static bool rndv_device_receive(struct recv_request *request, const struct arrival *arrival)
{
    /* No lane writes there by itself, and none is flushed. Relaxed: device_sink_end. */
    atomic_store_explicit(&request->rma.landed, false, memory_order_relaxed);
    if (!recv_request_peer(request)->device_lane)
        return false;
    return arrival->memory & WIRE_ON_DEVICE ? device_get(request, arrival)
                                            : device_ask_put(request);
}

/* The sender has put its bytes. */
static bool rndv_device_fin(struct recv_request *request, const struct wire_fin *fin)
{
    if (request->rma.count == 0 || !recv_request_promise(request, fin))
        return false;
    recv_request_received(request, fin->size);
    return true;
}

const struct protocol rndv_device = {
    .name = "rndv-get",
    .method = WIRE_BY_DEVICE,
    .post = post_by_request,
    .start = device_announce,
    .ready = rndv_device_ready,
    .receive = rndv_device_receive,
    .fin = rndv_device_fin,
    .puts = true,
};
