/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into the lane, or into one fragment of it. */
#include "protocol.h"

#include <string.h>

#include "common/compat/order.h"

#include "../delivery.h"

/* Of a message that nobody waits for: it is in the fragment, and the sender's buffer is free. */
static void eager_copy_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                            mca_btl_base_descriptor_t *descriptor, int status)
{
    order_acquired(descriptor);
    struct send_request *request = descriptor->des_cbdata;
    order_released(descriptor);
    static const char what[] = "could not deliver a message that it had accepted";
    (void) endpoint;
    if (status == OPAL_SUCCESS) {
        if (request)
            send_request_step(request);
    } else {
        struct lane *lane = request ? peer_lane_of(request->out.peer, btl) : NULL;
        if (lane)
            lane_failed(lane, what, status);
        else
            btl_failed(btl, what, status);
        if (request)
            send_request_broke(request);
    }
}

/* The same over a lane that may lose it: the copy is kept, and the request makes its step now. */
static int eager_copy_send_kept(const struct outgoing *out, struct lane *lane,
                                struct send_request *request)
{
    int rc;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    struct frame *frame = frame_begin(lane, length + out->size, &rc);
    if (!frame)
        return rc;
    memcpy(frame_message(frame), header, length);
    outgoing_copy(out, frame_message(frame) + length);
    frame_send(frame, length + out->size, false);
    send_request_step(request);
    return OMPI_SUCCESS;
}

/* Copies and sends. A request, if there is one, makes a step when the lane has handed it over. */
static int eager_copy_send(const struct outgoing *out, struct lane *lane,
                           struct send_request *request)
{
    if (eager_in_place(out, lane)) {
        if (request)
            send_request_step(request);
        return OMPI_SUCCESS;
    }

    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    uint32_t flags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    if (request)
        flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
    mca_btl_base_descriptor_t *descriptor = lane->btl->btl_alloc(
        lane->btl, lane->endpoint, MCA_BTL_NO_ORDER, length + out->size, flags);
    if (OPAL_UNLIKELY(!descriptor))
        return LANE_AGAIN;
    order_acquired(descriptor);
    if (OPAL_UNLIKELY(descriptor->des_segments[0].seg_len < length + out->size)) {
        lane->btl->btl_free(lane->btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    unsigned char *bytes = descriptor->des_segments[0].seg_addr.pval;
    memcpy(bytes, header, length);
    outgoing_copy(out, bytes + length);
    descriptor->des_segments[0].seg_len = length + out->size;
    descriptor->des_cbfunc = eager_copy_sent;
    descriptor->des_cbdata = request;
    return lane_send_descriptor(lane, descriptor);
}

static int eager_copy_post(const struct outgoing *out, const struct route *route)
{
    struct lane *lane = route_lane(route, out->peer, 0);
    return lane->prompt ? eager_copy_send(out, lane, NULL) : LANE_AGAIN;
}

static int eager_copy_start(struct send_request *request)
{
    int rc = eager_expect_ack(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    struct lane *lane = route_lane(request->route, request->out.peer, 0);
    return lane->framed ? eager_copy_send_kept(&request->out, lane, request)
                        : eager_copy_send(&request->out, lane, request);
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_copy_start,
};
