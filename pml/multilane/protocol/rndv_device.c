/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-get over the lane of device memory, which carries no messages: RTS with the key of the
 * device memory on the lane for control messages, the receiver gets the bytes, ACK. */
#include "protocol/common.h"

#include <string.h>

extern const struct protocol rndv_device;

/* A sender's own part: the message as its lane of device memory knows it; */
struct offered {
    struct registration key;
};
/* a receiver's: where byte 0 lies at the sender, and the key of its memory. */
struct wanted {
    uint64_t remote;
    unsigned char key[WIRE_KEY_MAX];
};

_Static_assert(sizeof(struct offered) <= SEND_OWN_BYTES && sizeof(struct wanted) <= RECV_OWN_BYTES,
               "they fit the requests");

/* Without a key now (memory that cannot be shared, out of handles) the message is staged. */
static int rndv_device_start(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    struct offered *own = send_request_own(request);
    char *data = view_contiguous(request->source.view);
    if (!own->key.lane && lane_register(peer->device_lane, data, request->out.size,
                                        MCA_BTL_REG_FLAG_REMOTE_READ, &own->key) != OMPI_SUCCESS) {
        request->protocol = protocols.for_device;
        return request->protocol->start(request);
    }
    struct wire_key key = {.address = (uintptr_t) data,
                           .length = (uint32_t) lane_key_length(peer->device_lane)};
    return rndv_announce(request, peer_control_lane(peer), &key, own->key.handle);
}

static void rndv_device_end(struct send_request *request)
{
    struct offered *own = send_request_own(request);
    lane_deregister(&own->key);
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
    mca_btl_base_module_t *btl = recv_request_peer(request)->device_lane->btl;
    struct wanted *own = recv_request_own(request);
    bool is_device;
    int rc = btl->btl_get(btl, recv_request_peer(request)->device_lane->endpoint,
                          recv_request_place(request, &is_device) + offset, own->remote + offset,
                          NULL, (mca_btl_base_registration_handle_t *) own->key, *size, 0,
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

static const struct transfer_steps rndv_device_way = {.start = rndv_device_piece,
                                                      .finish = rndv_device_finish};

static void rndv_device_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct lane *lane = recv_request_peer(request)->device_lane;
    bool is_device;
    if (!lane || !recv_request_place(request, &is_device) ||
        arrival->key.length != lane_key_length(lane)) {
        recv_request_ask(request, 0);
        return;
    }
    struct wanted *own = recv_request_own(request);
    own->remote = arrival->key.address;
    memcpy(own->key, arrival->key_bytes, arrival->key.length);
    recv_request_get_begins(request, &rndv_device);
    transfer_begin(&request->transfer, &rndv_device_way, 0, request->wanted, 1);
}

const struct protocol rndv_device = {
    .name = "rndv-get",
    .method = WIRE_BY_DEVICE,
    .post = post_by_request,
    .start = rndv_device_start,
    .send_end = rndv_device_end,
    .receive = rndv_device_receive,
};
