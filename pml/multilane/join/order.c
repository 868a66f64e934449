/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivers each message in its turn, and joins those in parts. */

#include <stdlib.h>

#include "join/posting.h"
#include "delivery/control.h"
#include "request/pieces.h"

/* Work to do when no lock is held. */
struct order_rest {
    struct inbound *ready;   /* matched messages, in order */
    struct inbound *refused; /* messages to refuse */
};

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
        if ((uint32_t) arrival->match.source >= comm->size) {
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

/* With the peer's lock held, as the next two. Finds the receive for an arrival, or keeps it;
 * `kept`: the inbound that holds it already, or null. */
static struct recv_request *order_deliver(struct arrival *arrival, struct inbound *kept,
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

/* Adds a message before its turn. False: a duplicate. */
static bool order_insert_early(struct peer *peer, struct inbound *inbound)
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

/* Delivers early messages whose turn has come. */
static void order_deliver_early(struct peer *peer, struct order_rest *rest)
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

/* Does the rest. No lock is held. */
static void order_finish(struct order_rest *rest)
{
    if (OPAL_UNLIKELY(rest->ready != NULL))
        ready_take(rest->ready);
    if (OPAL_UNLIKELY(rest->refused != NULL))
        inbounds_refuse(rest->refused);
}

void message_arrived(struct arrival *arrival)
{
    struct peer *peer = arrival->peer;
    struct recv_request *receiver = NULL;
    struct order_rest rest = {.ready = NULL};

    direct_post();
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
    credit_send_if_due(peer);
    if (OPAL_UNLIKELY(ahead > EARLY_MAX))
        inbound_reject(arrival->btl, "a message further ahead of its turn than can be",
                       (uint64_t) ahead);
}

/* --- messages in parts ------------------------------------------------------------------------ */

/* Messages in parts. Each part describes its message, so any may come first. An assembly is the
 * inbound that stands for the message, in a list of its peer until the last part has come.
 * Without a receive its bytes gather on the heap; with one each part goes to the buffer. The
 * peer's lock guards all members of an assembly. */

static struct inbound *assembly_find(struct peer *peer, uint32_t sequence)
{
    struct inbound *assembly = peer->assemblies ? *assembly_bucket(peer, sequence) : NULL;
    while (assembly && assembly->arrival.match.sequence != sequence)
        assembly = assembly->next_assembly;
    return assembly;
}

static void assembly_remove(struct peer *peer, struct inbound *assembly)
{
    if (OPAL_UNLIKELY(assembly->offered != NULL)) {
        offered_end(assembly->offered);
        assembly->offered = NULL;
    }
    struct inbound **at = assembly_bucket(peer, assembly->arrival.match.sequence);
    while (*at != assembly)
        at = &(*at)->next_assembly;
    *at = assembly->next_assembly;
}

static void assembly_insert(struct peer *peer, struct inbound *assembly)
{
    struct inbound **first = assembly_bucket(peer, assembly->arrival.match.sequence);
    assembly->next_assembly = *first;
    *first = assembly;
}

static bool assemblies_make(struct peer *peer)
{
    if (OPAL_UNLIKELY(!peer->assemblies))
        peer->assemblies = calloc(ASSEMBLY_BUCKETS, sizeof(struct inbound *));
    return peer->assemblies;
}

/* The first part of a message: delivers it like any other message. Null: a duplicate, or refused
 * (*wrong says why). */
static struct inbound *assembly_start(struct arrival *part, struct order_rest *rest,
                                      const char **wrong)
{
    struct peer *peer = part->peer;
    int32_t ahead = (int32_t) (part->match.sequence - peer_next_sequence(peer));
    if (ahead < 0)
        return NULL;
    if (ahead > EARLY_MAX) {
        *wrong = "a part further ahead of its turn than can be, sequence";
        return NULL;
    }
    if (!flow_may_come(&peer->in, part->size)) { /* room would be made for all of it */
        *wrong = "a part of a message that is larger than its sender was given room for, sequence";
        return NULL;
    }
    if (OPAL_UNLIKELY(!assemblies_make(peer))) {
        *wrong = "a part of a message for which there is no memory, sequence";
        return NULL;
    }
    struct inbound *assembly = inbound_keep(part);
    if (!assembly)
        return NULL;
    assembly->arrival.offer = NULL;
    if (ahead > 0 && !order_insert_early(peer, assembly)) {
        inbound_free(assembly);
        *wrong = "a part of a message that came whole, sequence";
        return NULL;
    }
    assembly_insert(peer, assembly);
    if (ahead > 0)
        return assembly;
    peer_sequence_came(peer);
    struct recv_request *receiver = order_deliver(&assembly->arrival, assembly, rest);
    if (receiver)
        inbound_attach(assembly, receiver);
    if (peer->early)
        order_deliver_early(peer, rest);
    return assembly;
}

/* All parts must describe the message alike. */
static bool assembly_fits(const struct inbound *assembly, const struct arrival *part)
{
    const struct arrival *whole = &assembly->arrival;
    return whole->size == part->size && whole->flags == part->flags &&
           whole->match.context == part->match.context &&
           whole->match.source == part->match.source && whole->match.tag == part->match.tag;
}

/* Copies a part of a message without a receive. */
static bool assembly_gather(struct inbound *assembly, const struct arrival *part)
{
    if (assembly->refused)
        return true;
    if (!assembly->data && !inbound_make_room(assembly, part->size))
        return false;
    arrival_copy(part, assembly->data + part->offset);
    return true;
}

/* No thread copies to its receive, and it is whole, or a lost peer or a cancel has ended it. */
static bool assembly_is_over(const struct inbound *assembly)
{
    return assembly->copying == 0 && (assembly->assembled >= assembly->arrival.size ||
                                      (assembly->refused && assembly->receiver));
}

/* Counts copied bytes. True: the caller ends its receive by assembly_finish. */
static bool assembly_count(struct peer *peer, struct inbound *assembly, size_t bytes)
{
    assembly->assembled += bytes;
    if (!assembly_is_over(assembly))
        return false;
    assembly_remove(peer, assembly);
    assembly->arrival.type = WIRE_EAGER; /* from here on like a message that came whole */
    if (assembly->receiver)
        return true;
    if (assembly->refused)
        inbound_free(assembly);
    return false;
}

/* Copies a part to its place. True: as for assembly_count. With the peer's lock held. */
static bool assembly_add(struct peer *peer, struct inbound *assembly, const struct arrival *part,
                         const char **wrong)
{
    size_t fresh = 0;
    if (!assembly_fits(assembly, part))
        *wrong = "a part that does not fit the message it belongs to, offset";
    else if (!spans_add(&assembly->claimed, part->offset, part->offset + part->length, &fresh))
        *wrong = "a part of a message with too many gaps, offset";
    if (fresh == 0) /* or a duplicate */
        return false;
    if (assembly->receiver && !assembly->refused) {
        assembly->copying++; /* without the lock: the assembly stays, and its receive */
        biased_unlock(&peer->lock);
        recv_request_write(assembly->receiver, part->offset, part->payload, part->payload_count);
        biased_lock(&peer->lock);
        assembly->copying--;
    } else if (!assembly_gather(assembly, part)) {
        *wrong = "a part of a message for which there is no memory, offset";
        return false;
    }
    return assembly_count(peer, assembly, fresh);
}

/* All of it has come, or no more will: ends its receive. No lock is held. */
static void assembly_finish(struct peer *peer, struct inbound *assembly)
{
    if (OPAL_LIKELY(!assembly->refused)) {
        received_flush(peer);
        recv_request_finish(assembly->receiver);
    } else {
        recv_request_fail(assembly->receiver, COMPAT_ERR_PROC_FAILED);
    }
    inbound_free(assembly);
}

/* The bytes from `from` on came by the receiver's own copy, or (not good) will come in parts. With
 * the peer's lock held, which it releases. */
static void assembly_taken(struct offered *offered, uint64_t from, bool good)
{
    struct peer *peer = offered->peer;
    struct inbound *assembly = offered->assembly;
    size_t fresh = 0;
    assembly->copying--;
    if (good)
        (void) spans_add(&assembly->claimed, from, offered->size, &fresh);
    bool is_complete = assembly_count(peer, assembly, fresh);
    biased_unlock(&peer->lock);
    if (is_complete)
        assembly_finish(peer, assembly);
}

/* The part that says what the sender offers may come behind others. */
static void assembly_offered(struct inbound *assembly, const struct arrival *part)
{
    struct offered *offered =
        offered_new(part->peer, part->offer, assembly->arrival.size, assembly_taken);
    if (!offered)
        return;
    assembly->offered = offered;
    offered->assembly = assembly;
    if (assembly->receiver)
        taking_begin(offered);
}

bool part_is_awaited(struct peer *peer, uint32_t sequence)
{
    biased_lock(&peer->lock);
    const struct inbound *assembly = assembly_find(peer, sequence);
    bool is_awaited = assembly && assembly->receiver && !assembly->refused;
    biased_unlock(&peer->lock);
    return is_awaited;
}

void part_arrived(struct arrival *part)
{
    struct peer *peer = part->peer;
    struct order_rest rest = {.ready = NULL};
    const char *wrong = NULL;
    bool is_complete = false;

    direct_post();
    biased_lock(&peer->lock);
    struct inbound *assembly = assembly_find(peer, part->match.sequence);
    if (!assembly)
        assembly = assembly_start(part, &rest, &wrong);
    if (assembly && OPAL_UNLIKELY(part->offer != NULL) && !assembly->offered)
        assembly_offered(assembly, part);
    if (assembly)
        is_complete = assembly_add(peer, assembly, part, &wrong);
    biased_unlock(&peer->lock);

    if (is_complete)
        assembly_finish(peer, assembly);
    order_finish(&rest);
    credit_send_if_due(peer);
    if (OPAL_UNLIKELY(wrong != NULL))
        inbound_reject(part->btl, wrong, part->offset);
}

/* One whose receive ends now; null: there is none. The others get no receive any more. */
static struct inbound *assembly_take_lost(struct peer *peer)
{
    struct inbound *at;
    for (at = assembly_next(peer, NULL); at; at = assembly_next(peer, at)) {
        at->refused = true;
        if (assembly_is_over(at))
            break;
    }
    if (at)
        assembly_remove(peer, at);
    return at;
}

void assemblies_lost(struct peer *peer)
{
    struct inbound *ended;
    do {
        biased_lock(&peer->lock);
        ended = assembly_take_lost(peer);
        biased_unlock(&peer->lock);
        if (ended)
            assembly_finish(peer, ended);
    } while (ended);
}

/* Those that are before their turn are among the early ones too, which has them freed. */
void assemblies_fini(void)
{
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        for (struct inbound *at = assembly_next(peer, NULL), *next; at; at = next) {
            next = assembly_next(peer, at);
            if ((int32_t) (at->arrival.match.sequence - peer_next_sequence(peer)) >= 0)
                continue;
            assembly_remove(peer, at);
            inbound_free(at);
        }
}
