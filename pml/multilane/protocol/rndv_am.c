/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-am: RTS, RTR, then the data as active messages. Works on every lane and for every datatype,
 * so it is also what the other rendezvous fall back to. */

#include "protocol/common.h"

#include <string.h>

#include "request/pieces.h"

static int rndv_am_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    int rc;
    if (offer_resume(request, transfer, offset, size, &rc))
        return rc;
    rc = piece_send_data(request, transfer, NULL, offset, size);
    if (OPAL_UNLIKELY(rc == LANE_AGAIN) && offer_is_made(request))
        offer_leave(request, offset);
    return rc;
}

static const struct transfer_steps rndv_am_way = {.start = rndv_am_piece, .finish = pieces_finish};

void rndv_am_move(struct send_request *request, size_t end)
{
    if (OPAL_UNLIKELY(send_request_is_of_device(request))) {
        rndv_staged_move(request, end);
        return;
    }
    transfer_begin(&request->transfer, &rndv_am_way, end,
                   PIECES_IN_FLIGHT * request->route->lane_count);
}

/* Until the receiver asks for the bytes they are on offer. */
static int rndv_am_start(struct send_request *request)
{
    struct lane *lane = route_lane(request->route, request->out.peer, 0);
    struct wire_offer offer;
    if (OPAL_UNLIKELY(send_request_is_of_device(request)))
        return device_announce(request);
    offer_make(request);
    if (!offer_is_made(request))
        return rndv_announce(request, lane, NULL, NULL);
    offer_describe(request, &offer);
    offer_leave(request, 0);
    struct wire_key key = {.address = offer.address, .length = sizeof(offer)};
    return rndv_announce(request, lane, &key, &offer);
}

static void rndv_am_ready(struct send_request *request, struct lane *lane,
                          const struct wire_rtr *rtr, const unsigned char *key)
{
    rndv_am_move(request, rtr->size);
}

static bool rndv_am_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct peer *peer = arrival->peer;
    struct wire_offer offer;
    bool is_offered = arrival->method == WIRE_BY_SEND && arrival->key.length == sizeof(offer);
    if (is_offered) {
        memcpy(&offer, arrival->key_bytes, sizeof(offer));
        taking_offered(request, &offer);
    }
    recv_request_ask(request);
    if (is_offered)
        taking_asked(peer, request, &offer);
    return true;
}

const struct protocol rndv_am = {
    .name = "rndv-am",
    .method = WIRE_BY_SEND,
    .host_only = true,
    .post = post_by_request,
    .start = rndv_am_start,
    .ready = rndv_am_ready,
    .send_end = offer_end,
    .receive = rndv_am_receive,
};
