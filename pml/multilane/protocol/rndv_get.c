/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-get: RTS with the key of the data, the receiver gets them, ACK. */
#include "protocol.h"

#include <string.h>

#include "../pieces.h"

#define GET_MAX ((size_t) 1 << 30)

/* Without a registration now, the message goes as rndv-am: the receiver asks for it all the same.
 */
static int rndv_get_start(struct send_request *request)
{
    struct lane *lane = route_lane(request->route, request->out.peer, 0);
    if (!request->registration.lane &&
        lane_register(lane, (void *) request->out.data, request->out.size,
                      MCA_BTL_REG_FLAG_REMOTE_READ, &request->registration) != OMPI_SUCCESS) {
        request->protocol = &rndv_am;
        return request->protocol->start(request);
    }
    struct wire_key key = {.address = (uintptr_t) request->out.data};
    if (request->registration.handle)
        key.length = (uint32_t) lane_key_length(lane);
    return rndv_announce(request, lane, &key, request->registration.handle);
}

static int rndv_get_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    mca_btl_base_module_t *btl = request->lane->btl;
    size_t most = btl->btl_get_limit < GET_MAX ? btl->btl_get_limit : GET_MAX;
    if (*size > most)
        *size = most;
    int rc = btl->btl_get(btl, request->lane->endpoint, request->data + offset,
                          request->remote + offset, request->registration.handle,
                          request->remote_key_length
                              ? (mca_btl_base_registration_handle_t *) request->remote_key
                              : NULL,
                          *size, 0, MCA_BTL_NO_ORDER, piece_copied, transfer, NULL);
    return piece_copy_started(rc);
}

static void rndv_get_finish(struct transfer *transfer, int status)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    lane_deregister(&request->registration);
    if (status != OMPI_SUCCESS) {
        /* Whatever was got is overwritten by the same bytes. */
        recv_request_ask(request, 0);
        return;
    }
    recv_request_finish(request);
}

static const struct transfer_way rndv_get_way = {.start = rndv_get_piece,
                                                 .finish = rndv_get_finish};

static bool rndv_get_is_possible(struct recv_request *request, const struct arrival *arrival)
{
    return request->data && arrival->lane &&
           arrival->key.length ==
               (arrival->lane->btl->btl_register_mem ? lane_key_length(arrival->lane) : 0) &&
           lane_can_get(arrival->lane, arrival->key.address, request->data, request->wanted);
}

static void rndv_get_receive(struct recv_request *request, const struct arrival *arrival)
{
    if (!rndv_get_is_possible(request, arrival)) {
        recv_request_ask(request, 0);
        return;
    }
    request->lane = arrival->lane;
    request->remote = arrival->key.address;
    request->remote_key_length = arrival->key.length;
    memcpy(request->remote_key, arrival->key_bytes, arrival->key.length);
    if (request->wanted > arrival->lane->btl->btl_get_local_registration_threshold &&
        lane_register(arrival->lane, request->data, request->wanted, MCA_BTL_REG_FLAG_LOCAL_WRITE,
                      &request->registration) != OMPI_SUCCESS) {
        recv_request_ask(request, 0);
        return;
    }
    transfer_begin(&request->transfer, &rndv_get_way, 0, request->wanted, PIECES_IN_FLIGHT);
}

const struct protocol rndv_get = {
    .name = "rndv-get",
    .method = WIRE_BY_GET,
    .start = rndv_get_start,
    .receive = rndv_get_receive,
};
