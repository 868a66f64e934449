/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a message whose header was read: MPI's order restored, matched or kept. */
#include "inbound.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/tsan.h"
#include "credit.h"
#include "delivery.h"
#include "errors.h"
#include "multilane.h"
#include "peer_class.h"
#include "recv_request.h"
#include "send_request.h"
#include "stripe.h"

static void inbound_construct(struct inbound *inbound)
{
    inbound->receiver = NULL;
    inbound->next = NULL;
    inbound->claimed = (struct spans){0};
    tsan_release(inbound); /* tsan_list_get */
}

OBJ_CLASS_INSTANCE(inbound_t, opal_free_list_item_t, inbound_construct, NULL);

void inbound_free(struct inbound *inbound)
{
    if (inbound->data && inbound->data != inbound->bytes) {
        tsan_release(inbound->data); /* inbound_make_room */
        multilane.payloads->alc_free(multilane.payloads, inbound->data);
    }
    if (OPAL_UNLIKELY(inbound->assembled)) {
        inbound->receiver = NULL;
        spans_clear(&inbound->claimed);
    }
    tsan_list_return(&multilane.inbound, &inbound->super);
}

void inbound_reject(mca_btl_base_module_t *btl, const char *what, uint64_t value)
{
    char text[256];
    if (__atomic_fetch_add(&multilane.bad_headers, 1, __ATOMIC_RELAXED) != 0)
        return; /* said once; the lane is given up already */
    snprintf(text, sizeof(text), "received %s (%llu)", what, (unsigned long long) value);
    btl_failed(btl, text, OMPI_ERR_BAD_PARAM);
}

static size_t payload_copy(unsigned char *to, const struct arrival *arrival)
{
    size_t copied = 0;
    for (int i = 0; i < arrival->payload_count; i++) {
        memcpy(to + copied, arrival->payload[i].iov_base, arrival->payload[i].iov_len);
        copied += arrival->payload[i].iov_len;
    }
    return copied;
}

static void say_no_memory(size_t bytes)
{
    opal_output(0,
                "multilane: out of memory for an unexpected message of %zu bytes; fewer or smaller "
                "messages must be sent before their receives are posted",
                bytes);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
}

/* An inbound without a payload; null without memory. */
static inline struct inbound *inbound_new(void)
{
    struct inbound *inbound = (struct inbound *) tsan_list_get(&multilane.inbound);
    if (OPAL_UNLIKELY(!inbound))
        return NULL;
    inbound->data = NULL;
    inbound->assembled = 0;
    inbound->held = 0;
    inbound->refused = false;
    inbound->is_plain = false;
    return inbound;
}

/* Room for a payload. False without memory. */
static inline bool inbound_make_room(struct inbound *inbound, size_t bytes)
{
    inbound->data = inbound->bytes;
    if (bytes > sizeof(inbound->bytes)) {
        inbound->data = multilane.payloads->alc_alloc(multilane.payloads, bytes, 0);
        if (inbound->data)
            tsan_acquire(inbound->data);
    }
    return inbound->data != NULL;
}

/* A copy of the arrival that outlives the receive callback, for a part without its payload. Null
 * without memory, which was said. */
static struct inbound *inbound_keep(const struct arrival *arrival)
{
    struct inbound *inbound = inbound_new();
    if (!inbound) {
        say_no_memory(sizeof(*inbound));
        return NULL;
    }
    inbound->arrival = *arrival;
    inbound->is_plain = arrival->type == WIRE_EAGER && !handle_is_set(arrival->sender);
    if (arrival->type == WIRE_PART)
        return inbound;
    bool is_rts = arrival->type == WIRE_RTS;
    if (!inbound_make_room(inbound, is_rts ? wire_keys_length(&arrival->key) : arrival->length)) {
        say_no_memory(arrival->length);
        inbound_free(inbound);
        return NULL;
    }
    if (is_rts) {
        memcpy(inbound->data, arrival->key_bytes, wire_keys_length(&arrival->key));
        inbound->arrival.key_bytes = inbound->data;
    } else {
        payload_copy(inbound->data, arrival);
    }
    return inbound;
}

/* What is left of an arrival that is refused: enough to answer it. */
static struct inbound *inbound_refusal(const struct arrival *arrival)
{
    struct inbound *inbound = inbound_new();
    if (!inbound) {
        say_no_memory(sizeof(*inbound));
        return NULL;
    }
    inbound->arrival = *arrival;
    inbound->arrival.type = WIRE_EAGER;
    return inbound;
}

/* Lists the message under the keys with a wildcard. With the communicator's lock held. */
static void inbound_list_wildcards(struct mca_pml_comm_t *comm, struct inbound *inbound)
{
    const struct wire_match *match = &inbound->arrival.match;
    unsigned step = match_key_step(match->tag);
    for (unsigned kind = step; kind < 4; kind += step) {
        struct match_node *node = &inbound->wildcard_keys[kind - 1];
        node->source = kind & 2 ? MATCH_ANY : match->source;
        node->tag = kind & 1 ? MATCH_ANY : match->tag;
        node->stamp = inbound->key.stamp;
        match_add(&comm->unexpected, node);
    }
}

/* With the communicator's lock held. */
static inline void inbound_enqueue(struct mca_pml_comm_t *comm, struct inbound *inbound)
{
    inbound->key.source = inbound->arrival.match.source;
    inbound->key.tag = inbound->arrival.match.tag;
    inbound->key.stamp = comm->stamp++;
    match_add(&comm->unexpected, &inbound->key);
    if (OPAL_UNLIKELY(comm->wildcards))
        inbound_list_wildcards(comm, inbound);
    counter_add(&multilane.unexpected_messages, 1);
}

struct inbound *inbound_of_node(struct match_node *node)
{
    unsigned kind = match_kind(node->source, node->tag);
    if (OPAL_LIKELY(kind == 0))
        return (struct inbound *) ((char *) node - offsetof(struct inbound, key));
    return (struct inbound *) ((char *) (node - (kind - 1)) -
                               offsetof(struct inbound, wildcard_keys));
}

void inbound_remove(struct mca_pml_comm_t *comm, struct inbound *inbound)
{
    match_remove(&comm->unexpected, &inbound->key);
    unsigned step = match_key_step(inbound->arrival.match.tag);
    for (unsigned kind = step; comm->wildcards && kind < 4; kind += step)
        match_remove(&comm->unexpected, &inbound->wildcard_keys[kind - 1]);
}

static int compare_stamps(const void *a, const void *b)
{
    const struct inbound *x = *(struct inbound *const *) a, *y = *(struct inbound *const *) b;
    return (x->key.stamp > y->key.stamp) - (x->key.stamp < y->key.stamp);
}

/* Somebody asks for any source or any tag, for the first time in this communicator: from now on
 * messages are listed under those keys too, and what waits is so now, in its order. Programs that
 * never ask so do not pay for it. With the communicator's lock held. */
static void wildcards_begin(struct mca_pml_comm_t *comm)
{
    struct match_table *table = &comm->unexpected;
    uint32_t count = 0;
    struct inbound **all = malloc(table->count * sizeof(*all));
    if (!all) {
        say_no_memory(table->count * sizeof(*all));
        return;
    }
    for (uint32_t i = 0; i <= table->mask; i++)
        for (struct match_node *head = table->buckets[i]; head; head = head->next_head)
            for (struct match_node *node = head; node; node = node->next)
                all[count++] = inbound_of_node(node);
    qsort(all, count, sizeof(struct inbound *), compare_stamps);
    comm->wildcards = true;
    for (uint32_t i = 0; i < count; i++)
        inbound_list_wildcards(comm, all[i]);
    free(all);
}

struct inbound *inbound_find(struct mca_pml_comm_t *comm, int source, int tag)
{
    if (comm->unexpected.count == 0)
        return NULL;
    if (OPAL_UNLIKELY(match_kind(source, tag) != 0 && !comm->wildcards))
        wildcards_begin(comm);
    struct match_node *node = match_first(&comm->unexpected, source, tag);
    return node ? inbound_of_node(node) : NULL;
}

bool inbound_keep_plain(struct peer *peer, struct mca_pml_comm_t *comm,
                        const struct wire_match *match, const void *data, size_t size)
{
    struct inbound *inbound = inbound_new();
    if (OPAL_UNLIKELY(!inbound))
        return false;
    if (OPAL_UNLIKELY(!inbound_make_room(inbound, size))) {
        inbound_free(inbound);
        return false;
    }
    inbound->is_plain = true;
    inbound->arrival.peer = peer;
    inbound->arrival.match = *match;
    inbound->arrival.sender = (struct wire_handle){0};
    inbound->arrival.size = size;
    inbound->arrival.type = WIRE_EAGER;
    inbound->arrival.flags = 0;
    memcpy(inbound->data, data, size);
    credit_hold(peer, inbound);
    inbound_enqueue(comm, inbound);
    return true;
}

struct inbound *inbound_take_plain(struct mca_pml_comm_t *comm, int source, int tag, size_t room)
{
    OPAL_THREAD_LOCK(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    if (inbound && (!inbound->is_plain || inbound->arrival.size > room))
        inbound = NULL;
    if (inbound)
        inbound_remove(comm, inbound);
    OPAL_THREAD_UNLOCK(&comm->lock);
    if (!inbound)
        return NULL;
    struct peer *peer = inbound->arrival.peer;
    OPAL_THREAD_LOCK(&peer->lock);
    credit_release(inbound);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return inbound;
}

static struct mca_pml_comm_t *arrival_comm(const struct arrival *arrival)
{
    if (OPAL_UNLIKELY(arrival->flags & WIRE_CID))
        return comm_of_cid(&arrival->cid);
    return comm_of_index(arrival->match.context);
}

/* Keeps the message for a communicator that this process has not made yet. Returns it if the
 * communicator has appeared meanwhile. */
static struct mca_pml_comm_t *orphan_keep(const struct arrival *arrival, struct inbound *kept)
{
    OPAL_THREAD_LOCK(&multilane.lock);
    struct mca_pml_comm_t *comm = arrival_comm(arrival);
    if (!comm) {
        struct inbound *inbound = kept ? kept : inbound_keep(arrival);
        if (inbound) {
            credit_hold(arrival->peer, inbound);
            opal_list_append(&multilane.orphans, (opal_list_item_t *) inbound);
        }
    }
    OPAL_THREAD_UNLOCK(&multilane.lock);
    return comm;
}

/* `kept` is the inbound that holds the arrival, or null. One in parts goes with its last part. */
static void reject_source(const struct arrival *arrival, struct inbound *kept)
{
    inbound_reject(arrival->btl, "a source rank outside its communicator",
                   (uint64_t) arrival->match.source);
    if (kept && arrival->type == WIRE_PART)
        kept->refused = true;
    else if (kept)
        inbound_free(kept);
}

void inbound_adopt_orphans(struct mca_pml_comm_t *comm)
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

/* What will never be received goes to the list of those that are to be answered, which must not be
 * done with a lock held. A message in parts goes with its last part. */
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

/* Called in MPI's order, with the peer's lock held: finds the receive for an arrival, or keeps it.
 * `kept` is the inbound that holds the arrival already, or null. The caller answers *refused when
 * it holds no lock. */
static struct recv_request *deliver(struct arrival *arrival, struct inbound *kept,
                                    struct inbound **refused)
{
    struct mca_pml_comm_t *comm = arrival_comm(arrival);
    if (OPAL_UNLIKELY(!comm) && !(comm = orphan_keep(arrival, kept)))
        return NULL;
    if (OPAL_UNLIKELY((uint32_t) arrival->match.source >= comm->size)) {
        reject_source(arrival, kept);
        return NULL;
    }
    struct recv_request *request = NULL;
    OPAL_THREAD_LOCK(&comm->lock);
    if (OPAL_LIKELY(!compat_comm_refuses(comm->ompi, arrival->match.tag))) {
        request = recv_request_take_posted(comm, &arrival->match);
        if (!request) {
            struct inbound *inbound = kept ? kept : inbound_keep(arrival);
            if (inbound) {
                credit_hold(arrival->peer, inbound);
                inbound_enqueue(comm, inbound);
            }
        }
    } else {
        refuse_later(arrival, kept, refused);
        credit_matched(arrival->peer, arrival_cost(arrival));
    }
    OPAL_THREAD_UNLOCK(&comm->lock);
    if (request)
        credit_matched(arrival->peer, arrival_cost(arrival));
    return request;
}

/* No lane overtakes another by so many messages. */
#define EARLY_MAX (1 << 24)

/* Adds a message that came before its turn. False: one with its number is there. With the peer's
 * lock held. */
static bool early_insert(struct peer *peer, struct inbound *inbound)
{
    uint32_t sequence = inbound->arrival.match.sequence;
    struct inbound **at = &peer->early;
    /* What overtakes mostly comes in order itself. */
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

static void assembly_attach(struct inbound *assembly, struct recv_request *receiver);

/* Delivers the early messages whose turn has come; returns those that found receives, in order.
 * With the peer's lock held. */
static struct inbound *early_deliver(struct peer *peer, struct inbound **refused)
{
    struct inbound *ready = NULL, **last = &ready;
    while (peer->early && peer->early->arrival.match.sequence == peer->next_receive_sequence) {
        struct inbound *inbound = peer->early;
        peer->early = inbound->next;
        inbound->next = NULL;
        peer->next_receive_sequence++;
        struct recv_request *receiver = deliver(&inbound->arrival, inbound, refused);
        if (!receiver)
            continue;
        if (inbound->arrival.type == WIRE_PART) {
            assembly_attach(inbound, receiver);
            continue;
        }
        inbound->receiver = receiver;
        *last = inbound;
        last = &inbound->next;
    }
    return ready;
}

static void ready_take(struct inbound *ready)
{
    while (ready) {
        struct inbound *next = ready->next;
        struct recv_request *receiver = ready->receiver;
        ready->next = NULL;
        ready->receiver = NULL;
        inbound_take(ready, receiver);
        ready = next;
    }
}

static void reject_sequence(const struct arrival *arrival, int32_t ahead)
{
    inbound_reject(arrival->btl, "a message further ahead of its turn than can be",
                   (uint64_t) ahead);
}

void inbound_message(struct arrival *arrival)
{
    struct peer *peer = arrival->peer;
    struct recv_request *receiver = NULL;
    struct inbound *ready = NULL, *refused = NULL;

    OPAL_THREAD_LOCK(&peer->lock);
    int32_t ahead = (int32_t) (arrival->match.sequence - peer->next_receive_sequence);
    if (OPAL_LIKELY(ahead == 0)) {
        peer->next_receive_sequence++;
        receiver = deliver(arrival, NULL, &refused);
        if (OPAL_UNLIKELY(peer->early != NULL))
            ready = early_deliver(peer, &refused);
    } else if (ahead > 0) {
        struct inbound *inbound = ahead <= EARLY_MAX ? inbound_keep(arrival) : NULL;
        if (inbound && !early_insert(peer, inbound))
            inbound_free(inbound); /* a duplicate */
    }                              /* else a duplicate of what was delivered */
    OPAL_THREAD_UNLOCK(&peer->lock);

    /* User requests complete here, where no lock is held. */
    if (OPAL_LIKELY(receiver != NULL))
        recv_request_take(receiver, arrival);
    if (OPAL_UNLIKELY(ready != NULL))
        ready_take(ready);
    if (OPAL_UNLIKELY(refused != NULL))
        refused_answer(refused);
    credit_tell_if_due(peer);
    if (OPAL_UNLIKELY(ahead > EARLY_MAX))
        reject_sequence(arrival, ahead);
}

/* Messages in parts. Each part describes its message, so any may come first; an assembly is the
 * inbound that stands for the message, listed with its peer until the last part is there. While it
 * has no receive its bytes gather on the heap; from then on each part goes where it belongs. All
 * fields of an assembly are guarded by the peer's lock. */

static struct inbound *assembly_find(struct peer *peer, uint32_t sequence)
{
    struct inbound *assembly = peer->assemblies;
    while (assembly && assembly->arrival.match.sequence != sequence)
        assembly = assembly->next_assembly;
    return assembly;
}

static void assembly_remove(struct peer *peer, struct inbound *assembly)
{
    struct inbound **at = &peer->assemblies;
    while (*at != assembly)
        at = &(*at)->next_assembly;
    *at = assembly->next_assembly;
}

/* The message has met its receive; what has gathered goes there. Where parts are missing yet it
 * copies garbage, which they will overwrite. */
static void assembly_attach(struct inbound *assembly, struct recv_request *receiver)
{
    recv_request_match(receiver, &assembly->arrival);
    if (assembly->data) {
        struct iovec whole = {.iov_base = assembly->data, .iov_len = assembly->arrival.size};
        recv_request_write(receiver, 0, &whole, 1);
    }
    receiver->in_get = false; /* what a former life has left, and a cancel would believe */
    assembly->receiver = receiver;
}

/* The first part of a message: queues it like any other message. Null: it is a duplicate of what
 * was delivered, or it was refused (*wrong says why). */
static struct inbound *assembly_start(struct arrival *part, struct inbound **ready,
                                      struct inbound **refused, const char **wrong)
{
    struct peer *peer = part->peer;
    int32_t ahead = (int32_t) (part->match.sequence - peer->next_receive_sequence);
    if (ahead < 0)
        return NULL;
    if (ahead > EARLY_MAX) {
        *wrong = "a part further ahead of its turn than can be, sequence";
        return NULL;
    }
    struct inbound *assembly = inbound_keep(part);
    if (!assembly)
        return NULL;
    if (ahead > 0 && !early_insert(peer, assembly)) {
        inbound_free(assembly);
        *wrong = "a part of a message that came whole, sequence";
        return NULL;
    }
    assembly->next_assembly = peer->assemblies;
    peer->assemblies = assembly;
    if (ahead > 0)
        return assembly;
    peer->next_receive_sequence++;
    struct recv_request *receiver = deliver(&assembly->arrival, assembly, refused);
    if (receiver)
        assembly_attach(assembly, receiver);
    if (peer->early)
        *ready = early_deliver(peer, refused);
    return assembly;
}

/* Every part describes the message in the same words. */
static bool assembly_fits(const struct inbound *assembly, const struct arrival *part)
{
    const struct arrival *whole = &assembly->arrival;
    return whole->size == part->size && whole->flags == part->flags &&
           whole->match.context == part->match.context &&
           whole->match.source == part->match.source && whole->match.tag == part->match.tag;
}

/* Where a part of a message without a receive is kept. */
static bool assembly_gather(struct inbound *assembly, const struct arrival *part)
{
    if (assembly->refused)
        return true;
    if (!assembly->data && !inbound_make_room(assembly, part->size))
        return false;
    payload_copy(assembly->data + part->offset, part);
    return true;
}

/* Counts bytes that are where they belong. True: the message is whole and its receive, if it has
 * one, is the caller's to complete. */
static bool assembly_count(struct peer *peer, struct inbound *assembly, size_t bytes)
{
    assembly->assembled += bytes;
    if (assembly->assembled < assembly->arrival.size)
        return false;
    assembly_remove(peer, assembly);
    assembly->arrival.type = WIRE_EAGER; /* from here on it is as if it had come whole */
    if (!assembly->refused)
        return assembly->receiver;
    inbound_free(assembly);
    return false;
}

/* Puts a part where it belongs. True: the message is complete, as for assembly_count. With the
 * peer's lock held. */
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
    if (assembly->receiver) {
        /* The copy needs no lock: the assembly stays while bytes of it are not counted. */
        struct recv_request *receiver = assembly->receiver;
        OPAL_THREAD_UNLOCK(&peer->lock);
        recv_request_write(receiver, part->offset, part->payload, part->payload_count);
        OPAL_THREAD_LOCK(&peer->lock);
    } else if (!assembly_gather(assembly, part)) {
        *wrong = "a part of a message for which there is no memory, offset";
        return false;
    }
    return assembly_count(peer, assembly, fresh);
}

void inbound_part(struct arrival *part)
{
    struct peer *peer = part->peer;
    struct inbound *ready = NULL, *refused = NULL;
    const char *wrong = NULL;
    bool is_complete = false;

    OPAL_THREAD_LOCK(&peer->lock);
    struct inbound *assembly = assembly_find(peer, part->match.sequence);
    if (!assembly)
        assembly = assembly_start(part, &ready, &refused, &wrong);
    if (assembly)
        is_complete = assembly_add(peer, assembly, part, &wrong);
    OPAL_THREAD_UNLOCK(&peer->lock);

    if (is_complete) {
        stripe_flush(peer);
        recv_request_finish(assembly->receiver);
        inbound_free(assembly);
    }
    if (ready)
        ready_take(ready);
    refused_answer(refused);
    credit_tell_if_due(peer);
    if (OPAL_UNLIKELY(wrong != NULL))
        inbound_reject(part->btl, wrong, part->offset);
}

void inbound_lost(struct peer *peer)
{
    struct recv_request *receiver;
    do {
        receiver = NULL;
        OPAL_THREAD_LOCK(&peer->lock);
        for (struct inbound *at = peer->assemblies; at && !receiver; at = at->next_assembly) {
            receiver = at->receiver;
            at->receiver = NULL;
            at->refused = true;
        }
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (receiver)
            recv_request_fail(receiver, COMPAT_ERR_PROC_FAILED);
    } while (receiver);
}

void inbound_forget(struct peer *peer, const struct recv_request *receiver)
{
    OPAL_THREAD_LOCK(&peer->lock);
    for (struct inbound *at = peer->assemblies; at; at = at->next_assembly)
        if (at->receiver == receiver) {
            at->receiver = NULL;
            at->refused = true;
        }
    OPAL_THREAD_UNLOCK(&peer->lock);
}

void inbound_take(struct inbound *inbound, struct recv_request *receiver)
{
    struct arrival *arrival = &inbound->arrival;
    struct peer *peer = arrival->peer;
    bool is_plain = inbound->is_plain, is_whole = true, is_lost = false;
    OPAL_THREAD_LOCK(&peer->lock);
    credit_release(inbound);
    if (arrival->type == WIRE_PART) { /* which goes with its last part, at any time from here on */
        is_whole = false;
        is_lost = peer_is_lost(peer);
        if (!is_lost)
            assembly_attach(inbound, receiver); /* inbound_part goes on */
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(is_lost))
        recv_request_fail(receiver, COMPAT_ERR_PROC_FAILED);
    if (is_plain) {
        recv_request_take_whole(receiver, peer, &arrival->match, inbound->data, arrival->size);
        inbound_free(inbound);
    } else if (is_whole) {
        struct iovec whole = {.iov_base = inbound->data, .iov_len = arrival->size};
        arrival->payload = &whole;
        arrival->payload_count = 1;
        recv_request_take(receiver, arrival);
        inbound_free(inbound);
    }
    credit_tell_if_due(peer);
}

void inbound_drop(struct inbound *inbound)
{
    struct peer *peer = inbound->arrival.peer;
    OPAL_THREAD_LOCK(&peer->lock);
    credit_release(inbound);
    bool is_in_parts = inbound->arrival.type == WIRE_PART;
    inbound->refused = true; /* it goes with its last part */
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_in_parts)
        inbound_free(inbound);
    if (peer->reachable)
        credit_tell_if_due(peer);
}

void inbound_refuse_sender(struct peer *peer, struct wire_handle sender)
{
    struct wire_ack nack = {.sender = sender};
    unsigned char bytes[WIRE_CONTROL_MAX];
    unsigned char *end = peer_write_base(peer, bytes, WIRE_NACK, 0);
    memcpy(end, &nack, sizeof(nack));
    lane_send_control(peer_control_lane(peer), bytes, (size_t) (end + sizeof(nack) - bytes));
}

void inbound_refuse(struct inbound *inbound)
{
    struct peer *peer = inbound->arrival.peer;
    struct wire_handle sender = inbound->arrival.sender;
    inbound_drop(inbound);
    if (handle_is_set(sender))
        inbound_refuse_sender(peer, sender);
}
