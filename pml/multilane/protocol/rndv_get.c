/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-get: RTS with the keys of the data, the receiver gets them over all lanes, ACK. */
#include "protocol/common.h"

extern const struct protocol rndv_get, rndv_device;

/* Without a registration now, it goes as messages. */
static int rndv_get_start(struct send_request *request)
{
    struct rma *rma = &request->rma;
    char *place = send_request_place(request, &rma->is_device);
    if (!rma->count && !rma_offer(rma, request->route, request->out.peer, place, request->out.size,
                                  MCA_BTL_REG_FLAG_REMOTE_READ)) {
        request->protocol = protocol_of_messages();
        return request->protocol->start(request);
    }
    unsigned char bytes[WIRE_KEY_MAX];
    struct wire_key key;
    rma_write_keys(rma, &key, bytes);
    return rndv_announce(request, rma->lanes[0].lane, &key, bytes);
}

static void rndv_get_finish(struct transfer *transfer, int status)
{
    struct recv_request *request = recv_request_of_transfer(transfer);
    if (status != OMPI_SUCCESS || !recv_request_is_right(request, rma_only_lane(&request->rma))) {
        rma_release(&request->rma);
        recv_request_get_failed(request);
        return;
    }
    atomic_store_explicit(&request->rma.landed, true, memory_order_relaxed); /* device_sink_end */
    recv_request_finish(request); /* which gives the registrations back */
}

static const struct transfer_steps rndv_get_way = {.start = get_piece, .finish = rndv_get_finish};

/* From this process's own host memory to its device: one copy by the driver. */
static void rndv_get_pulled(struct device_sink *sink)
{
    recv_request_finish(recv_request_of_sink(sink));
}

static bool rndv_get_pull(struct recv_request *request, const struct arrival *arrival)
{
    return request->sink.view && recv_request_peer(request)->is_self &&
           device_sink_pull(&request->sink, (void *) (uintptr_t) arrival->key.address,
                            rndv_get_pulled);
}

static bool rndv_get_receive(struct recv_request *request, const struct arrival *arrival)
{
    if (OPAL_UNLIKELY(driver_is_loaded) && rndv_get_pull(request, arrival))
        return true;
    struct rma *rma = &request->rma;
    char *place = recv_request_place(request, &rma->is_device);
    rma_read_keys(rma, recv_request_peer(request), arrival->lane, &arrival->key,
                  arrival->key_bytes);
    atomic_store_explicit(&rma->landed, false, memory_order_relaxed);
    if (!rma_can_get(rma, place, request->wanted)) {
        rma_release(rma);
        return false;
    }
    rma->transfer = &request->transfer;
    atomic_store_explicit(&request->held_by, &rndv_get, memory_order_relaxed);
    transfer_begin(&request->transfer, &rndv_get_way, request->wanted,
                   PIECES_IN_FLIGHT * rma->count);
    return true;
}

const struct protocol rndv_get = {
    .name = "rndv-get",
    .method = WIRE_BY_GET,
    .post = post_by_request,
    .start = rndv_get_start,
    .receive = rndv_get_receive,
    .over_device_lane = &rndv_device,
};
