/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends pieces of a message. */
#include "request/pieces.h"

#include <string.h>

#include "base/multilane.h"
#include "peer/control_message.h"
#include "common/compat/tsan.h"
#include "delivery/delivery.h"
#include "peer/stripe.h"

static bool is_marked(const void *header)
{
    return ((const struct wire_base *) header)->traits;
}

static void piece_left(void *owner, int status)
{
    transfer_piece_done(owner, status);
}

/* A piece that is sent from the user's memory. */
struct place {
    mca_btl_base_registration_handle_t *registration; /* null: it is copied */
    const char *data;
};

/* The bytes of another convertor are not in the user's memory. */
static struct place place_of(struct send_request *request, const opal_convertor_t *convertor,
                             struct lane *lane, size_t offset)
{
    struct place place = {NULL, NULL};
    if (!request->route->in_place || !lane->in_place || !request->out.data ||
        convertor != &request->base.req_base.req_convertor)
        return place;
    place.registration =
        rma_in_place(&request->rma, lane, (char *) request->out.data, request->out.size);
    place.data = request->out.data + offset;
    return place;
}

/* On a framed lane: the piece is kept, as a copy or in place. */
static int piece_send_kept(opal_convertor_t *convertor, const struct place *place,
                           struct transfer *transfer, struct lane *lane, const void *header,
                           size_t header_length, size_t offset, size_t *size)
{
    int rc;
    size_t copied = place->registration ? 0 : *size;
    struct frame *frame = frame_begin(lane, header_length + copied, &rc);
    if (!frame)
        return rc;
    unsigned char *message = frame_message(frame);
    struct iovec iov = {.iov_base = message + header_length, .iov_len = copied};
    uint32_t iov_count = 1;
    size_t position = offset;
    memcpy(message, header, header_length);
    if (place->registration) {
        frame_refer(frame, place->data, *size, place->registration);
    } else {
        opal_convertor_set_position(convertor, &position);
        if (opal_convertor_pack(convertor, &iov, &iov_count, &copied) < 0 || copied == 0) {
            frame_drop(frame);
            return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
        }
        counter_add(&multilane.copied_bytes, copied);
        *size = copied;
    }
    frame_send(frame, header_length + copied, is_marked(header), piece_left, transfer);
    return OMPI_SUCCESS;
}

static int piece_send_from(struct send_request *request, opal_convertor_t *convertor,
                           struct transfer *transfer, struct lane *lane, const void *header,
                           size_t header_length, size_t offset, size_t *size, bool all)
{
    size_t most = lane_largest_send(lane) - header_length;
    size_t taken = stripe_fragment(*size, most);
    size_t position = offset;

    if (OPAL_UNLIKELY(lost_or_dead(lane->peer)))
        return OMPI_ERR_UNREACH;
    struct place place = place_of(request, convertor, lane, offset);
    if (lane->framed) {
        *size = taken;
        return piece_send_kept(convertor, &place, transfer, lane, header, header_length, offset,
                               size);
    }
    if (place.registration) {
        int rc = lane_send_in_place(lane, place.registration, header, header_length, place.data,
                                    taken, piece_left, transfer);
        if (rc != LANE_UNDER_WAY)
            return rc;
        *size = taken;
        if (is_marked(header))
            stripe_sent(lane, taken);
        return OMPI_SUCCESS;
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
    return piece_send_from(request, &request->base.req_base.req_convertor, &request->transfer, lane,
                           header, header_length, offset, size, all);
}

int piece_send_data(struct send_request *request, struct transfer *transfer,
                    opal_convertor_t *convertor, size_t start, size_t offset, size_t *size)
{
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    struct wire_data data = {.receiver = request->receiver, .offset = start + offset};
    struct lane *lane =
        stripe_choose(request->route, request->out.peer, request->out.size, size, true);
    if (!lane) /* a lost receiver reports nothing: its lanes would stay full for ever */
        return lost_or_dead(request->out.peer) ? OMPI_ERR_UNREACH : LANE_AGAIN;
    unsigned char *end = peer_write_base(request->out.peer, header, WIRE_DATA, 0);
    memcpy(end, &data, sizeof(data));
    stripe_set_counted(request->route, header);
    return piece_send_from(request, convertor, transfer, lane, header,
                           (size_t) (end + sizeof(data) - header), offset, size, false);
}
