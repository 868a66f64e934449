/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-zcopy: several fragments without a handshake, in place where the lane can. */
#include "protocol/common.h"

#include <string.h>

#include "request/pieces.h"
#include "plan/stripe.h"

/* Each fragment describes the whole message, so the first one to arrive is as good as any. A
 * message in a single fragment looks like any other eager one. */
static size_t eager_zcopy_header(struct send_request *request, size_t offset, bool is_whole,
                                 void *bytes)
{
    const struct outgoing *out = &request->out;
    if (is_whole)
        return comm_write_match(out->comm, out->peer, bytes, WIRE_EAGER, out->sequence, out->tag,
                                out->answer);
    size_t length = comm_write_match(out->comm, out->peer, bytes, WIRE_PART, out->sequence,
                                     out->tag, out->answer);
    struct wire_part part = {.size = out->size, .offset = offset};
    size_t rest = sizeof(part) - sizeof(part.match);
    memcpy((char *) bytes + length, (char *) &part + sizeof(part.match), rest);
    stripe_set_counted(request->route, bytes);
    length += rest;
    if (offset == 0 && offer_is_made(request)) {
        struct wire_offer offer;
        offer_describe(request, &offer);
        memcpy((char *) bytes + length, &offer, sizeof(offer));
        ((struct wire_base *) bytes)->traits |= WIRE_OFFERED;
        length += sizeof(offer);
    }
    return length;
}

static int eager_zcopy_part(struct send_request *request, size_t offset, size_t *size)
{
    struct peer *peer = request->out.peer;
    struct lane *lane = route_lane(request->route, peer, 0);
    unsigned char header[WIRE_PART_HEADER_MAX];
    /* Of the longest a turn holds only a part: see transfer_fill. */
    bool is_whole = *size == request->out.size && request->route->lane_count == 1 &&
                    request->out.size + WIRE_EAGER_HEADER_MAX <= lane->largest;
    if (is_whole)
        lane = stripe_whole(request->route, peer, request->out.size);
    else
        lane = stripe_choose(request->route, peer, request->out.size, size, false);
    if (OPAL_UNLIKELY(!lane)) /* as in piece_send_data */
        return peer_is_gone(peer) ? OMPI_ERR_UNREACH : LANE_AGAIN;
    size_t length = eager_zcopy_header(request, offset, is_whole, header);
    return piece_send(request, lane, header, length, offset, size, is_whole);
}

/* Announces a message that finds the lane full by a first part for which room is kept back: so the
 * receiver knows of it, and may take the rest. */
#define ANNOUNCEMENT_BYTES 64u

static int eager_zcopy_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    struct send_request *request = send_request_of_transfer(transfer);
    int rc;
    if (offer_resume(request, transfer, offset, size, &rc))
        return rc;
    rc = eager_zcopy_part(request, offset, size);
    if (OPAL_LIKELY(rc != LANE_AGAIN) || !offer_is_made(request))
        return rc;
    if (offset == 0) {
        *size = ANNOUNCEMENT_BYTES;
        return eager_zcopy_part(request, 0, size);
    }
    offer_leave(request, offset);
    return LANE_AGAIN;
}

static const struct transfer_steps eager_zcopy_way = {.start = eager_zcopy_piece,
                                                      .finish = pieces_finish};

static int eager_zcopy_start(struct send_request *request)
{
    if (request->out.size == 0) { /* it has no piece, and still must arrive */
        request->protocol = protocols.of_model[MODEL_EAGER_COPY];
        return request->protocol->start(request);
    }
    int rc = eager_expect_ack(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    const struct lane *lane = route_lane(request->route, request->out.peer, 0);
    if (request->out.size > lane->largest && offer_is_worth(lane, request->out.size))
        offer_make(request);
    transfer_begin(&request->transfer, &eager_zcopy_way, request->out.size,
                   PIECES_IN_FLIGHT * request->route->lane_count);
    return OMPI_SUCCESS;
}

const struct protocol eager_zcopy = {
    .name = "eager-zcopy",
    .post = post_by_request,
    .start = eager_zcopy_start,
    .send_end = offer_end,
    .host_only = true,
};
