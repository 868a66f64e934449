/* SPDX-License-Identifier: BSD-3-Clause */
/* When a receiver takes the rest of a message, and how. */
#include "request/pieces.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/offer_word.h"
#include "base/pending.h"
#include "lane/waiting.h"

/* A sender that is in MPI goes on within this time. A call that waits loses little by waiting for
 * it; one that only looks would come back late. Where processors are short the sender may need the
 * one on which this process waits. */
#define PATIENCE_WAITING_NS 20000u
#define PATIENCE_LOOKING_NS 3000u

/* So long a call that only looks brings a message on, at most; and so long without a byte. */
#define DRIVE_MOST_NS  20000000u
#define DRIVE_QUIET_NS 20000u

/* What is not in one piece at the receiver is copied by way of so many bytes. */
#define BOUNCE_BYTES ((size_t) 64 << 10)

/* Null: it is not matched or not asked for yet, or nothing receives it any more. */
static struct recv_request *receiver_of(const struct offered *offered)
{
    const struct inbound *assembly = offered->assembly;
    if (assembly)
        return assembly->refused ? NULL : assembly->receiver;
    return offered->receiver;
}

/* The bytes from `from` on are copied now: the receive must not end meanwhile. With the peer's lock
 * held. False: it has ended. */
static bool receiver_hold(struct offered *offered, uint64_t from)
{
    if (offered->assembly)
        offered->assembly->copying++;
    return offered->assembly || recv_request_hold(offered->receiver, offered->size - from);
}

static _Atomic uint64_t *word_of(const struct offered *offered)
{
    const struct lane *lane = offered->lane;
    struct multilane_control *control =
        lane->extension->control_find(lane->btl, lane->endpoint, offered->offer.line);
    return control ? &control->words[OFFER_WORD_INDEX] : NULL;
}

/* --- taking ----------------------------------------------------------------------------------- */

static bool rest_bounce(const struct offered *offered, struct recv_request *receiver, uint64_t from,
                        uint64_t end)
{
    const struct lane *lane = offered->lane;
    unsigned char *bounce = malloc(BOUNCE_BYTES);
    bool good = bounce;
    while (good && from < end) {
        struct iovec part = {.iov_base = bounce,
                             .iov_len = end - from < BOUNCE_BYTES ? end - from : BOUNCE_BYTES};
        good =
            lane->extension->copy_from(lane->btl, lane->endpoint, bounce,
                                       offered->offer.address + from, part.iov_len) == OPAL_SUCCESS;
        if (good)
            recv_request_write(receiver, from, &part, 1);
        from += part.iov_len;
    }
    free(bounce);
    return good;
}

/* What the receive has no room for need not be copied. */
static bool rest_copy(const struct offered *offered, struct recv_request *receiver, uint64_t from)
{
    const struct lane *lane = offered->lane;
    uint64_t end = offered->size < receiver->wanted ? offered->size : receiver->wanted;
    if (from >= end)
        return true;
    if (!receiver->data)
        return rest_bounce(offered, receiver, from, end);
    return lane->extension->copy_from(lane->btl, lane->endpoint, receiver->data + from,
                                      offered->offer.address + from, end - from) == OPAL_SUCCESS;
}

/* With the peer's lock held, which it releases if (true) it took something. */
static bool offered_take(struct offered *offered, uint64_t from)
{
    struct peer *peer = offered->peer;
    _Atomic uint64_t *word = word_of(offered);
    uint32_t tag = (uint32_t) offered->offer.tag;
    if (from >= offered->size || !offer_take(word, tag, from))
        return false;
    if (OPAL_UNLIKELY(!receiver_hold(offered, from))) {
        offer_open(word, tag, from);
        return false;
    }
    struct recv_request *receiver = receiver_of(offered);
    offered->is_busy = true;
    biased_unlock(&peer->lock);
    bool good = rest_copy(offered, receiver, from);
    if (good)
        offer_finish(word, tag, from);
    else
        offer_open(word, tag, from);
    biased_lock(&peer->lock);
    offered->is_busy = false;
    offered->is_futile = !good;
    counter_add(&multilane.taken_rests, good);
    offered->taken(offered, from, good);
    return true;
}

/* --- when ------------------------------------------------------------------------------------- */

static uint64_t bytes_arrived(const struct offered *offered)
{
    if (offered->assembly)
        return offered->assembly->assembled;
    return offered->receiver
               ? atomic_load_explicit(&offered->receiver->received, memory_order_relaxed)
               : 0;
}

static bool is_open_to_take(const struct offered *offered)
{
    return receiver_of(offered) && !offered->is_busy && !offered->is_futile;
}

static uint64_t patience(void)
{
    if (waiting_shares_now())
        return 0;
    return waiting_for_nothing() ? PATIENCE_LOOKING_NS : PATIENCE_WAITING_NS;
}

/* Has nothing of these messages come for some time? A sender that is in MPI is at one of them. With
 * the peer's lock held. */
static bool peer_is_away(struct peer_offers *offers)
{
    uint64_t patience_ns = patience(), arrived = 0;
    if (patience_ns == 0)
        return true;
    for (const struct offered *at = offers->first; at; at = at->next)
        arrived += 1 + bytes_arrived(at);
    uint64_t now = clock_now_ns();
    if (arrived != offers->arrived) {
        offers->arrived = arrived;
        offers->since_ns = now;
    }
    return now - offers->since_ns >= patience_ns;
}

/* With the peer's lock held, which it releases if (true) it took something. */
static bool offered_take_if_open(struct offered *offered)
{
    const _Atomic uint64_t *at = is_open_to_take(offered) ? word_of(offered) : NULL;
    uint64_t word = at ? offer_look(at) : 0;
    return offer_state_of(word) == OFFER_OPEN &&
           offer_tag_of(word) == (uint32_t) offered->offer.tag &&
           offered_take(offered, offer_from_of(word));
}

/* Takes the rest of each message of a peer that is away. True: some. */
static bool offers_look(struct peer *peer)
{
    bool any = false;
    biased_lock(&peer->lock);
    struct offered *at = peer_is_away(peer->offers) ? peer->offers->first : NULL;
    while (at) {
        if (offered_take_if_open(at)) {
            any = true;
            biased_lock(&peer->lock);
            at = peer->offers->first; /* the list may have changed */
        } else {
            at = at->next;
        }
    }
    biased_unlock(&peer->lock);
    return any;
}

/* The lane of the first message that can be brought on; null: there is none. */
static struct lane *offers_lane(struct peer *peer)
{
    biased_lock(&peer->lock);
    const struct offered *at = peer->offers ? peer->offers->first : NULL;
    while (at && !is_open_to_take(at))
        at = at->next;
    struct lane *lane = at ? at->lane : NULL;
    biased_unlock(&peer->lock);
    return lane;
}

void taking_drive(struct peer *peer)
{
    uint64_t began = 0, quiet_since = 0;
    struct lane *lane;
    while ((lane = offers_lane(peer))) {
        bool is_quiet = lane_poll(lane) == 0 && !offers_look(peer);
        uint64_t now = clock_now_ns();
        began = began ? began : now;
        quiet_since = is_quiet && quiet_since ? quiet_since : now;
        if (now - quiet_since > DRIVE_QUIET_NS || now - began > DRIVE_MOST_NS)
            return;
        if (is_quiet)
            ring_relax();
    }
}

static int offers_retry(struct pending *pending)
{
    struct peer_offers *offers =
        (struct peer_offers *) ((char *) pending - offsetof(struct peer_offers, pending));
    struct peer *peer = offers->peer;
    (void) offers_look(peer);
    if (waiting_for_nothing())
        taking_drive(peer);
    biased_lock(&peer->lock);
    const struct offered *at = peer->offers->first;
    while (at && !is_open_to_take(at))
        at = at->next;
    peer->offers->is_pending = at;
    biased_unlock(&peer->lock);
    return at ? LANE_AGAIN : OMPI_SUCCESS;
}

void taking_begin(struct offered *offered)
{
    struct peer *peer = offered->peer;
    if (peer->offers->is_pending)
        return;
    peer->offers->is_pending = true;
    peer->offers->pending = (struct pending){.retry = offers_retry};
    pending_add(&peer->offers->pending);
}

static void receive_taken(struct offered *offered, uint64_t from, bool good)
{
    struct recv_request *request = offered->receiver;
    size_t bytes = offered->size - from;
    biased_unlock(&offered->peer->lock);
    /* For a lost peer they count as received, too: with them the receive ends. */
    if (good || !recv_request_let_go(request, bytes))
        recv_request_received(request, bytes);
}

void taking_offered(struct recv_request *request, const struct wire_offer *offer)
{
    struct peer *peer = recv_request_peer(request);
    biased_lock(&peer->lock);
    request->offered = offered_new(peer, offer, request->wanted, receive_taken);
    biased_unlock(&peer->lock);
}

void taking_asked(struct peer *peer, struct recv_request *request, const struct wire_offer *offer)
{
    biased_lock(&peer->lock);
    struct offered *at = peer->offers ? peer->offers->first : NULL;
    while (at && (at->offer.line != offer->line || at->offer.tag != offer->tag))
        at = at->next;
    if (at) {
        at->receiver = request;
        taking_begin(at);
    }
    biased_unlock(&peer->lock);
}
