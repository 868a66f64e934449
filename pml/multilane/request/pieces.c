/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a sent message. */
#include "request/pieces.h"

#include <string.h>

#include "peer/control_message.h"
#include "common/compat/tsan.h"
#include "delivery/delivery.h"
#include "peer/stripe.h"

static bool is_marked(const void *header)
{
    return ((const struct wire_base *) header)->mark;
}

static void piece_left(void *owner, int status)
{
    transfer_piece_done(owner, status);
}

/* On a lane that may lose it: the piece is kept, so it is copied. */
static int piece_send_kept(opal_convertor_t *convertor, struct transfer *transfer,
                           struct lane *lane, const void *header, size_t header_length,
                           size_t offset, size_t *size)
{
    int rc;
    struct frame *frame = frame_begin(lane, header_length + *size, &rc);
    if (!frame)
        return rc;
    unsigned char *message = frame_message(frame);
    struct iovec iov = {.iov_base = message + header_length, .iov_len = *size};
    uint32_t iov_count = 1;
    size_t position = offset, taken = *size;
    memcpy(message, header, header_length);
    opal_convertor_set_position(convertor, &position);
    if (opal_convertor_pack(convertor, &iov, &iov_count, &taken) < 0 || taken == 0) {
        frame_drop(frame);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    *size = taken;
    frame_send(frame, header_length + taken, is_marked(header), piece_left, transfer);
    return OMPI_SUCCESS;
}

static int piece_send_from(opal_convertor_t *convertor, struct transfer *transfer,
                           struct lane *lane, const void *header, size_t header_length,
                           size_t offset, size_t *size, bool all)
{
    size_t most = lane_largest_send(lane) - header_length;
    size_t taken = stripe_fragment(*size, most);
    size_t position = offset;

    if (OPAL_UNLIKELY(lost_or_dead(lane->peer)))
        return OMPI_ERR_UNREACH;
    if (lane->framed) {
        *size = taken;
        return piece_send_kept(convertor, transfer, lane, header, header_length, offset, size);
    }
    /* The transfer lets one thread at a time start pieces: the convertor needs no lock. */
    opal_convertor_set_position(convertor, &position);
    mca_btl_base_descriptor_t *descriptor = lane->btl->btl_prepare_src(
        lane->btl, lane->endpoint, convertor, MCA_BTL_NO_ORDER, header_length, &taken,
        MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK |
            MCA_BTL_DES_FLAGS_SIGNAL);
    if (!descriptor)
        return LANE_AGAIN;
    tsan_acquire(descriptor);
    if (taken == 0 || (all && taken < *size)) {
        lane->btl->btl_free(lane->btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    memcpy(descriptor->des_segments[0].seg_addr.pval, header, header_length);
    *size = taken;
    int rc = lane_send_descriptor(lane, descriptor, piece_left, transfer);
    if (rc != LANE_UNDER_WAY)
        return rc;
    if (is_marked(header))
        stripe_sent(lane, taken);
    return OMPI_SUCCESS;
}

int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all)
{
    return piece_send_from(&request->base.req_base.req_convertor, &request->transfer, lane, header,
                           header_length, offset, size, all);
}

int piece_send_data(struct send_request *request, struct transfer *transfer,
                    opal_convertor_t *convertor, size_t start, size_t offset, size_t *size)
{
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    struct wire_data data = {.receiver = request->receiver, .offset = start + offset};
    struct lane *lane =
        stripe_choose(request->route, request->out.peer, request->out.size, size, true);
    if (!lane) /* a lost receiver reports nothing, so that they have enough for ever */
        return lost_or_dead(request->out.peer) ? OMPI_ERR_UNREACH : LANE_AGAIN;
    unsigned char *end = peer_write_base(request->out.peer, header, WIRE_DATA, 0);
    memcpy(end, &data, sizeof(data));
    stripe_mark(request->route, header);
    return piece_send_from(convertor, transfer, lane, header,
                           (size_t) (end + sizeof(data) - header), offset, size, false);
}
