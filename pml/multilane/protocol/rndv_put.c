/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-put: RTS, RTR with the key of the receive buffer, the sender puts, FIN after its puts. */
#include "protocol.h"

#include <string.h>

#include "../pieces.h"

#define PUT_MAX ((size_t) 1 << 30)

static int rndv_put_start(struct send_request *request)
{
    return rndv_announce(request, route_lane(request->route, request->out.peer, 0), NULL, NULL);
}

static void rndv_put_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct lane *lane = arrival->lane;
    if (!request->data || !lane || !lane_can_put(lane) ||
        lane_register(lane, request->data, request->wanted,
                      MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_WRITE,
                      &request->registration) != OMPI_SUCCESS) {
        recv_request_ask(request, 0);
        return;
    }
    struct wire_key key = {.address = (uintptr_t) request->data};
    if (request->registration.handle)
        key.length = (uint32_t) lane_key_length(lane);
    recv_request_send_rtr(request, lane, 0, WIRE_BY_PUT, &key, request->registration.handle);
}

static int rndv_put_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    struct lane *lane = request->put_lane;
    mca_btl_base_module_t *btl = lane->btl;
    size_t most = btl->btl_put_limit < PUT_MAX ? btl->btl_put_limit : PUT_MAX;
    if (*size > most)
        *size = most;
    int rc = btl->btl_put(
        btl, lane->endpoint, (void *) (request->out.data + offset),
        request->remote + (offset - request->remote_offset), request->registration.handle,
        request->remote_key_length ? (mca_btl_base_registration_handle_t *) request->remote_key
                                   : NULL,
        *size, 0, MCA_BTL_NO_ORDER, piece_copied, transfer, NULL);
    return piece_copy_started(rc);
}

static void rndv_put_finish(struct transfer *transfer, int status)
{
    struct send_request *request = send_request_of_transfer(transfer);
    size_t from = request->remote_offset, end = transfer->end;
    if (status != OMPI_SUCCESS) {
        /* Whatever was put is overwritten by the same bytes. */
        rndv_am_move(request, from, end);
        return;
    }
    unsigned char bytes[WIRE_CONTROL_MAX];
    struct wire_fin fin = {.receiver = request->receiver, .size = end - from};
    unsigned char *at = peer_write_base(request->out.peer, bytes, WIRE_FIN, 0);
    memcpy(at, &fin, sizeof(fin));
    /* On the lane of the puts: it is ordered behind them. */
    lane_send_control(request->put_lane, bytes, (size_t) (at + sizeof(fin) - bytes));
    send_request_step(request);
}

static const struct transfer_way rndv_put_way = {.start = rndv_put_piece,
                                                 .finish = rndv_put_finish};

static void rndv_put_ready(struct send_request *request, struct lane *lane,
                           const struct wire_rtr *rtr, const unsigned char *key)
{
    request->put_lane = lane;
    request->remote = rtr->key.address;
    request->remote_offset = rtr->offset;
    request->remote_key_length = rtr->key.length;
    memcpy(request->remote_key, key, rtr->key.length);
    bool is_possible = lane && lane_can_put(lane) && rtr->key.length == lane_key_length(lane);
    if (is_possible && rtr->size > lane->btl->btl_put_local_registration_threshold)
        is_possible = lane_register(lane, (void *) (request->out.data + rtr->offset), rtr->size, 0,
                                    &request->registration) == OMPI_SUCCESS;
    if (is_possible)
        transfer_begin(&request->transfer, &rndv_put_way, rtr->offset, rtr->offset + rtr->size,
                       PIECES_IN_FLIGHT);
    else
        rndv_am_move(request, rtr->offset, rtr->offset + rtr->size);
}

const struct protocol rndv_put = {
    .name = "rndv-put",
    .method = WIRE_BY_PUT,
    .start = rndv_put_start,
    .ready = rndv_put_ready,
    .receive = rndv_put_receive,
};
