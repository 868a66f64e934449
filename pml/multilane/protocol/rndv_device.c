/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-get over the lane of device memory, which carries no messages: RTS with the key of the
 * device memory on the lane for control messages, the receiver gets the bytes, ACK. */
#include "protocol/protocol.h"

#include <string.h>

#include "request/device_memory.h"

/* Without a key now (memory that cannot be shared, out of handles) the message is staged. */
static int rndv_device_start(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    char *data = view_contiguous(request->view);
    if (!request->device_key.lane &&
        lane_register(peer->device_lane, data, request->out.size, MCA_BTL_REG_FLAG_REMOTE_READ,
                      &request->device_key) != OMPI_SUCCESS) {
        request->protocol = &rndv_staged;
        return request->protocol->start(request);
    }
    struct wire_key key = {.address = (uintptr_t) data,
                           .length = (uint32_t) lane_key_length(peer->device_lane)};
    return rndv_announce(request, peer_control_lane(peer), &key, request->device_key.handle);
}

static void device_piece_copied(mca_btl_base_module_t *btl,
                                struct mca_btl_base_endpoint_t *endpoint, void *local_address,
                                mca_btl_base_registration_handle_t *local_handle, void *context,
                                void *data, int status)
{
    (void) btl;
    (void) endpoint;
    (void) local_address;
    (void) local_handle;
    (void) data;
    transfer_piece_done(context, status);
}

static int rndv_device_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    mca_btl_base_module_t *btl = request->peer->device_lane->btl;
    bool is_device;
    int rc = btl->btl_get(btl, request->peer->device_lane->endpoint,
                          device_receive_place(request, &is_device) + offset,
                          request->device_remote + offset, NULL,
                          (mca_btl_base_registration_handle_t *) request->device_key, *size, 0,
                          MCA_BTL_NO_ORDER, device_piece_copied, transfer, NULL);
    /* It is busy in two ways. */
    if (rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE || rc == OPAL_ERR_RESOURCE_BUSY)
        return LANE_AGAIN;
    return rc >= 0 ? OMPI_SUCCESS : rc;
}

static void rndv_device_finish(struct transfer *transfer, int status)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    if (status == OMPI_SUCCESS)
        recv_request_finish(request);
    else
        recv_request_get_failed(request); /* the bytes come staged */
}

static const struct transfer_way rndv_device_way = {.start = rndv_device_piece,
                                                    .finish = rndv_device_finish};

static void rndv_device_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct lane *lane = request->peer->device_lane;
    bool is_device;
    if (!lane || !device_receive_place(request, &is_device) ||
        arrival->key.length != lane_key_length(lane)) {
        recv_request_ask(request, 0);
        return;
    }
    request->device_remote = arrival->key.address;
    memcpy(request->device_key, arrival->key_bytes, arrival->key.length);
    recv_request_get_begins(request);
    transfer_begin(&request->transfer, &rndv_device_way, 0, request->wanted, 1);
}

const struct protocol rndv_device = {
    .name = "rndv-get",
    .method = WIRE_BY_DEVICE,
    .post = post_by_request,
    .start = rndv_device_start,
    .receive = rndv_device_receive,
};
