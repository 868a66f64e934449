/* SPDX-License-Identifier: BSD-3-Clause */
/* What a sender does with the rest of a message that no lane takes now. */
#include "request/offer.h"

#include "base/offer_word.h"
#include "plan/peer_class.h"

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

void offer_tell(const struct send_request *request, struct wire_offer *told)
{
    const struct send_offer *offer = &request->offer;
    *told = (struct wire_offer){
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
    if (lost_or_dead(request->out.peer)) {
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
