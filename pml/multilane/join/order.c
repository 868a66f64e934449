/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivers each message in its turn. */
#include "join/order.h"

#include "join/meet.h"
#include "join/posting.h"
#include "match/credit.h"
#include "request/receive_way.h"

static struct mca_pml_comm_t *arrival_comm(const struct arrival *arrival)
{
    if (OPAL_UNLIKELY(arrival->flags & WIRE_CID))
        return comm_of_cid(&arrival->cid);
    return comm_of_index(arrival->match.context);
}

/* Keeps the message for a communicator that is not made yet. Returns the communicator if it has
 * appeared meanwhile. */
static struct mca_pml_comm_t *orphan_keep(const struct arrival *arrival, struct inbound *kept)
{
    multilane_lock();
    struct mca_pml_comm_t *comm = arrival_comm(arrival);
    if (!comm) {
        struct inbound *inbound = kept ? kept : inbound_keep(arrival);
        if (inbound) {
            inbound_hold(inbound);
            opal_list_append(&multilane.orphans, (opal_list_item_t *) inbound);
        }
    }
    multilane_unlock();
    return comm;
}

/* `kept`: the inbound that holds the arrival, or null. The last part frees an assembly. */
static void reject_source(const struct arrival *arrival, struct inbound *kept)
{
    inbound_reject(arrival->btl, "a source rank outside its communicator",
                   (uint64_t) arrival->match.source);
    if (kept && arrival->type == WIRE_PART)
        kept->refused = true;
    else if (kept)
        inbound_free(kept);
}

void order_adopt_orphans(struct mca_pml_comm_t *comm)
{
    struct inbound *inbound, *next;
    OPAL_LIST_FOREACH_SAFE(inbound, next, &multilane.orphans, inbound_t)
    {
        const struct arrival *arrival = &inbound->arrival;
        bool is_ours =
            arrival->flags & WIRE_CID
                ? comm->wire_flags & WIRE_CID && arrival->cid.base == comm->cid.base &&
                      arrival->cid.sub == comm->cid.sub
                : !(comm->wire_flags & WIRE_CID) && arrival->match.context == comm->index;
        if (!is_ours)
            continue;
        opal_list_remove_item(&multilane.orphans, (opal_list_item_t *) inbound);
        if (arrival->match.source < 0 || (uint32_t) arrival->match.source >= comm->size) {
            reject_source(arrival, inbound);
            continue;
        }
        inbound_enqueue(comm, inbound);
    }
}

/* Adds a message to those to refuse when no lock is held. The last part frees an assembly. */
static void refuse_later(const struct arrival *arrival, struct inbound *kept,
                         struct inbound **refused)
{
    bool is_in_parts = kept && arrival->type == WIRE_PART;
    struct inbound *inbound = kept && !is_in_parts ? kept : inbound_refusal(arrival);
    if (is_in_parts)
        kept->refused = true;
    if (!inbound)
        return;
    inbound->next = *refused;
    *refused = inbound;
}

static void refused_answer(struct inbound *refused)
{
    while (refused) {
        struct inbound *next = refused->next;
        refused->next = NULL;
        inbound_refuse(refused);
        refused = next;
    }
}

struct recv_request *order_deliver(struct arrival *arrival, struct inbound *kept,
                                   struct order_rest *rest)
{
    struct mca_pml_comm_t *comm = arrival_comm(arrival);
    if (OPAL_UNLIKELY(!comm) && !(comm = orphan_keep(arrival, kept)))
        return NULL;
    if (OPAL_UNLIKELY((uint32_t) arrival->match.source >= comm->size)) {
        reject_source(arrival, kept);
        return NULL;
    }
    struct recv_request *request = NULL;
    biased_lock(&comm->lock);
    if (OPAL_LIKELY(!compat_comm_refuses(comm->ompi, arrival->match.tag))) {
        request = recv_request_take_posted(comm, &arrival->match);
        if (!request) {
            struct inbound *inbound = kept ? kept : inbound_keep(arrival);
            if (inbound) {
                inbound_hold(inbound);
                inbound_enqueue(comm, inbound);
            }
        }
    } else {
        refuse_later(arrival, kept, &rest->refused);
        credit_matched(arrival->peer, arrival_cost(arrival));
    }
    biased_unlock(&comm->lock);
    if (request)
        credit_matched(arrival->peer, arrival_cost(arrival));
    return request;
}

bool order_insert_early(struct peer *peer, struct inbound *inbound)
{
    uint32_t sequence = inbound->arrival.match.sequence;
    struct inbound **at = &peer->early;
    /* Early messages mostly come in order. */
    if (*at && (int32_t) (peer->early_last->arrival.match.sequence - sequence) < 0)
        at = &peer->early_last->next;
    while (*at && (int32_t) ((*at)->arrival.match.sequence - sequence) < 0)
        at = &(*at)->next;
    if (*at && (*at)->arrival.match.sequence == sequence)
        return false;
    inbound->next = *at;
    *at = inbound;
    if (!inbound->next)
        peer->early_last = inbound;
    counter_add(&multilane.early_messages, 1);
    return true;
}

void order_deliver_early(struct peer *peer, struct order_rest *rest)
{
    struct inbound **last = &rest->ready;
    while (peer->early && peer->early->arrival.match.sequence == peer_next_sequence(peer)) {
        struct inbound *inbound = peer->early;
        peer->early = inbound->next;
        inbound->next = NULL;
        peer_sequence_came(peer);
        struct recv_request *receiver = order_deliver(&inbound->arrival, inbound, rest);
        if (!receiver)
            continue;
        if (inbound->arrival.type == WIRE_PART) {
            inbound_attach(inbound, receiver);
            continue;
        }
        inbound->receiver = receiver;
        *last = inbound;
        last = &inbound->next;
    }
}

static void ready_take(struct inbound *ready)
{
    while (ready) {
        struct inbound *next = ready->next;
        struct recv_request *receiver = ready->receiver;
        ready->next = NULL;
        ready->receiver = NULL;
        (void) inbound_take(ready, receiver);
        ready = next;
    }
}

static void reject_sequence(const struct arrival *arrival, int32_t ahead)
{
    inbound_reject(arrival->btl, "a message further ahead of its turn than can be",
                   (uint64_t) ahead);
}

void order_finish(struct order_rest *rest)
{
    if (OPAL_UNLIKELY(rest->ready != NULL))
        ready_take(rest->ready);
    if (OPAL_UNLIKELY(rest->refused != NULL))
        refused_answer(rest->refused);
}

void message_arrived(struct arrival *arrival)
{
    struct peer *peer = arrival->peer;
    struct recv_request *receiver = NULL;
    struct order_rest rest = {.ready = NULL};

    awaited_post();
    biased_lock(&peer->lock);
    int32_t ahead = (int32_t) (arrival->match.sequence - peer_next_sequence(peer));
    if (OPAL_LIKELY(ahead == 0)) {
        peer_sequence_came(peer);
        receiver = order_deliver(arrival, NULL, &rest);
        if (OPAL_UNLIKELY(peer->early != NULL))
            order_deliver_early(peer, &rest);
    } else if (ahead > 0) {
        struct inbound *inbound = ahead <= EARLY_MAX ? inbound_keep(arrival) : NULL;
        if (inbound && !order_insert_early(peer, inbound))
            inbound_free(inbound); /* a duplicate */
    }                              /* else a duplicate */
    biased_unlock(&peer->lock);

    /* User requests complete from here on, with no lock held. */
    if (OPAL_LIKELY(receiver != NULL))
        recv_request_take(receiver, arrival);
    order_finish(&rest);
    credit_tell_if_due(peer);
    if (OPAL_UNLIKELY(ahead > EARLY_MAX))
        reject_sequence(arrival, ahead);
}
