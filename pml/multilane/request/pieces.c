/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends pieces of a message. */
#include "request/pieces.h"

#include <string.h>

#include "base/datatype.h"
#include "base/multilane.h"
#include "peer/control_message.h"
#include "plan/stripe.h"

static bool is_marked(const void *header)
{
    return ((const struct wire_base *) header)->traits & WIRE_STRIPED;
}

static void piece_left(void *owner, int status)
{
    transfer_piece_done(owner, status);
}

/* Bytes of a message. */
struct piece {
    const struct outgoing *out;
    const char *data; /* where they lie; null: apart, by the datatype */
    bool is_users;    /* data is in the user's memory */
    size_t offset, size;
};

static inline void piece_copy(const struct piece *piece, void *to,
                              void *(*copy)(void *to, const void *from, size_t size))
{
    const struct outgoing *out = piece->out;
    if (OPAL_LIKELY(piece->data != NULL))
        copy(to, piece->data, piece->size);
    else
        datatype_pack(out->datatype, out->count, out->buffer, piece->offset, to, piece->size);
}

/* Null: the piece is not sent from the user's memory. */
static mca_btl_base_registration_handle_t *
piece_registration(struct send_request *request, struct lane *lane, const struct piece *piece)
{
    if (!request->route->in_place || !lane->in_place || !piece->is_users)
        return NULL;
    return rma_in_place(&request->rma, lane, (char *) request->out.data, request->out.size);
}

/* Into the lane's own memory. */
static bool piece_send_reserved(const struct piece *piece, struct transfer *transfer,
                                struct lane *lane, const void *header, size_t header_length)
{
    unsigned char *bytes = lane_reserve(lane, header_length, piece->size);
    if (OPAL_UNLIKELY(!bytes))
        return false;
    piece_copy(piece, bytes + header_length, lane->copy);
    memcpy(bytes, header, header_length);
    lane_commit(lane, header_length, piece->size);
    transfer_piece_done(transfer, OMPI_SUCCESS);
    return true;
}

/* By a fragment that holds a copy. */
static int piece_send_copied(const struct piece *piece, struct transfer *transfer,
                             struct lane *lane, const void *header, size_t header_length)
{
    mca_btl_base_descriptor_t *descriptor;
    int rc = lane_fragment(lane, header_length + piece->size, &descriptor);
    if (rc != OMPI_SUCCESS)
        return rc;
    unsigned char *bytes = lane_fragment_bytes(descriptor);
    memcpy(bytes, header, header_length);
    piece_copy(piece, bytes + header_length, memcpy);
    counter_add(&multilane.copied_bytes, piece->size);
    return lane_send_descriptor(lane, descriptor, piece_left, transfer);
}

/* Packing takes longer than a piece costs in the lane's own memory: short pieces let the receiver
 * unpack one while the next is packed. Of 1 to 32 KiB, 8 KiB were the best for rows of 512 bytes
 * and blocks of 16 in 64; single numbers would gain another tenth from 4 KiB. */
#define PACKED_PIECE_BYTES ((size_t) 8 << 10)

static size_t piece_most(const struct piece *piece, const struct lane *lane, size_t header_length)
{
    size_t most = lane_largest_send(lane) - header_length;
    return !piece->data && lane->reserve && most > PACKED_PIECE_BYTES ? PACKED_PIECE_BYTES : most;
}

static int piece_send_from(struct send_request *request, struct piece *piece,
                           struct transfer *transfer, struct lane *lane, const void *header,
                           size_t header_length, bool all)
{
    size_t wanted = piece->size;
    piece->size = stripe_fragment(wanted, piece_most(piece, lane, header_length));
    if (OPAL_UNLIKELY(lost_or_dead(lane->peer)))
        return OMPI_ERR_UNREACH;
    mca_btl_base_registration_handle_t *registration = piece_registration(request, lane, piece);
    if (OPAL_UNLIKELY(all && piece->size < wanted))
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    int rc;
    if (registration)
        rc = lane_send_in_place(lane, registration, header, header_length, piece->data, piece->size,
                                piece_left, transfer);
    else if (piece_send_reserved(piece, transfer, lane, header, header_length))
        rc = LANE_UNDER_WAY;
    else if (lane_room(lane) != SIZE_MAX)
        rc = LANE_AGAIN; /* a fragment would keep the bytes from the receiver, see offer.h */
    else if (piece->data)
        rc = lane_send_piece(lane, header, header_length, piece->data, &piece->size, all,
                             piece_left, transfer);
    else
        rc = piece_send_copied(piece, transfer, lane, header, header_length);
    if (rc != LANE_UNDER_WAY)
        return rc;
    if (is_marked(header))
        stripe_sent(lane, piece->size);
    return OMPI_SUCCESS;
}

int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all)
{
    const char *data = request->out.data;
    struct piece piece = {.out = &request->out,
                          .data = data ? data + offset : NULL,
                          .is_users = data != NULL,
                          .offset = offset,
                          .size = *size};
    int rc = piece_send_from(request, &piece, &request->transfer, lane, header, header_length, all);
    if (rc == OMPI_SUCCESS)
        *size = piece.size;
    return rc;
}

int piece_send_data(struct send_request *request, struct transfer *transfer, const char *copy,
                    size_t offset, size_t *size)
{
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    const struct outgoing *out = &request->out;
    struct wire_data data = {.receiver = request->receiver, .offset = offset};
    struct lane *lane = stripe_choose(request->route, out->peer, out->size, size, true);
    if (!lane) /* a lost receiver reports nothing: its lanes would stay full for ever */
        return lost_or_dead(out->peer) ? OMPI_ERR_UNREACH : LANE_AGAIN;
    unsigned char *end = peer_write_base(out->peer, header, WIRE_DATA, 0);
    memcpy(end, &data, sizeof(data));
    stripe_set_counted(request->route, header);
    struct piece piece = {.out = out,
                          .data = copy        ? copy
                                  : out->data ? out->data + offset
                                              : NULL,
                          .is_users = !copy && out->data,
                          .offset = offset,
                          .size = *size};
    int rc = piece_send_from(request, &piece, transfer, lane, header,
                             (size_t) (end + sizeof(data) - header), false);
    if (rc == OMPI_SUCCESS)
        *size = piece.size;
    return rc;
}
