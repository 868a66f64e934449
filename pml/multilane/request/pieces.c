/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends pieces of a message; and what a sender does with the rest that no lane takes now. */
#include "request/pieces.h"

#include <string.h>

#include "base/datatype.h"
#include "base/multilane.h"
#include "peer/peer.h"
#include "plan/stripe.h"
#include "base/offer_word.h"
#include "plan/peer_class.h"

/* What a sender does with the rest of a message that no lane takes now. */

static _Atomic uint64_t *word_of(const struct send_offer *offer)
{
    return &offer->control->words[OFFER_WORD_INDEX];
}

/* Numbers of offers; 0 is no offer's, because it is what a cleared word holds. */
static uint32_t tag_next(void)
{
    static _Atomic uint32_t last;
    const uint32_t mask = (UINT32_C(1) << OFFER_TAG_BITS) - 1;
    uint32_t tag = (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) & mask;
    return tag ? tag : 1;
}

/* The lane by whose words and copies a rest can be taken; null: none. */
static struct lane *offering_lane(struct peer *peer)
{
    const uint32_t needs = MODEL_CAN_CONTROL | MODEL_CAN_COPY;
    const struct peer_class *class = peer_class_now(peer);
    for (int i = 0; i < class->lane_count && i < peer_lane_count(peer); i++)
        if ((class->lanes[i].can & needs) == needs && peer->lanes[i].extension &&
            peer->lanes[i].extension->room && !peer->lanes[i].sums) /* the rest has none */
            return &peer->lanes[i];
    return NULL;
}

/* Pieces have headers, which take a little of the room. */
static size_t with_headers(size_t size)
{
    return size + size / 32 + WIRE_PART_HEADER_MAX;
}

bool offer_is_worth(const struct lane *lane, size_t size)
{
    size_t room = lane_room(lane);
    return room == SIZE_MAX || room < with_headers(size); /* SIZE_MAX: offer_make knows more */
}

void offer_make(struct send_request *request)
{
    struct send_offer *offer = &request->offer;
    const struct outgoing *out = &request->out;
    struct lane *lane;
    if (offer->control || !out->data || out->size >= OFFER_BYTES_MAX ||
        !(lane = offering_lane(out->peer)) ||
        lane->extension->control_obtain(lane->btl, lane->endpoint, &offer->control, &offer->line) !=
            OPAL_SUCCESS)
        return;
    offer->lane = lane;
    offer->is_open = false;
    offer->tag = tag_next();
    offer_begin(word_of(offer), offer->tag);
}

void offer_describe(const struct send_request *request, struct wire_offer *to)
{
    const struct send_offer *offer = &request->offer;
    *to = (struct wire_offer){
        .address = (uintptr_t) request->out.data, .line = offer->line, .tag = offer->tag};
}

void offer_leave(struct send_request *request, size_t offset)
{
    struct send_offer *offer = &request->offer;
    if (offer->is_open)
        return;
    offer->is_open = true;
    offer_open(word_of(offer), offer->tag, offset);
}

/* Many messages may wait for one lane: they leave their words alone until it has room. */
static bool would_wait(const struct send_offer *offer, const struct send_request *request,
                       size_t size)
{
    const struct lane *lane = route_lane(request->route, request->out.peer, 0);
    size_t piece = size < lane->largest ? size : lane->largest;
    return request->route->lane_count == 1 &&
           offer_state_of(offer_look(word_of(offer))) == OFFER_OPEN &&
           lane_room(lane) < with_headers(piece);
}

bool offer_resume(struct send_request *request, struct transfer *transfer, size_t offset,
                  size_t *size, int *rc)
{
    struct send_offer *offer = &request->offer;
    if (OPAL_LIKELY(!offer->control) || !offer->is_open)
        return false;
    *rc = LANE_AGAIN;
    if (peer_is_gone(request->out.peer)) {
        *rc = OMPI_ERR_UNREACH;
        return true;
    }
    if (would_wait(offer, request, *size))
        return true;
    switch (offer_withdraw(word_of(offer), offer->tag, offset)) {
    case OFFER_MINE:
        offer->is_open = false;
        return false;
    case OFFER_TAKEN:
        return true;
    case OFFER_DONE: /* one piece, which the receiver moved */
        offer->is_open = false;
        *size = transfer->end - offset;
        transfer_piece_done(transfer, OMPI_SUCCESS);
        *rc = OMPI_SUCCESS;
        return true;
    default:
        *rc = OMPI_ERR_BAD_PARAM;
        return true;
    }
}

void offer_end(struct send_request *request)
{
    struct send_offer *offer = &request->offer;
    if (OPAL_LIKELY(!offer->control))
        return;
    /* It is open only where the peer is lost: then nothing takes it any more. */
    if (offer->is_open)
        offer_begin(word_of(offer), 0);
    offer->lane->extension->control_release(offer->lane->btl, offer->lane->endpoint, offer->line);
    offer->control = NULL;
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

/* `copy`: where the bytes lie, if not in the user's memory. */
static struct piece piece_of(const struct outgoing *out, const char *copy, size_t offset,
                             size_t size)
{
    const char *users = !copy && out->data ? out->data + offset : NULL;
    return (struct piece){out, copy ? copy : users, users, offset, size};
}

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

/* What goes whole, because its receiver takes it whole, is not cut. */
static size_t piece_most(const struct piece *piece, const struct lane *lane, size_t header_length,
                         bool all)
{
    size_t most = lane->largest - header_length;
    bool is_cut = !all && !piece->data && lane->reserve && most > PACKED_PIECE_BYTES;
    return is_cut ? PACKED_PIECE_BYTES : most;
}

static int piece_send_from(struct send_request *request, struct piece *piece,
                           struct transfer *transfer, struct lane *lane, const void *header,
                           size_t header_length, bool all)
{
    size_t wanted = piece->size;
    piece->size = stripe_fragment(wanted, piece_most(piece, lane, header_length, all));
    if (OPAL_UNLIKELY(peer_is_gone(lane->peer)))
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
        rc = LANE_AGAIN; /* a fragment would keep the bytes from the receiver, see offer_make */
    else if (piece->data)
        rc = lane_send_piece(lane, header, header_length, piece->data, &piece->size, all,
                             piece_left, transfer);
    else
        rc = piece_send_copied(piece, transfer, lane, header, header_length);
    if (rc != LANE_UNDER_WAY)
        return rc;
    if (((const struct wire_base *) header)->traits & WIRE_STRIPED)
        stripe_sent(lane, piece->size);
    return OMPI_SUCCESS;
}

int piece_send(struct send_request *request, struct lane *lane, const void *header,
               size_t header_length, size_t offset, size_t *size, bool all)
{
    struct piece piece = piece_of(&request->out, NULL, offset, *size);
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
        return peer_is_gone(out->peer) ? OMPI_ERR_UNREACH : LANE_AGAIN;
    unsigned char *end = peer_write_base(out->peer, header, WIRE_DATA, 0);
    memcpy(end, &data, sizeof(data));
    stripe_set_counted(request->route, header);
    struct piece piece = piece_of(out, copy, offset, *size);
    int rc = piece_send_from(request, &piece, transfer, lane, header,
                             (size_t) (end + sizeof(data) - header), false);
    if (rc == OMPI_SUCCESS)
        *size = piece.size;
    return rc;
}
