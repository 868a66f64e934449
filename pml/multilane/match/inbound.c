/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells senders their limits; the memory of kept messages, and the queue of unexpected ones. */
#include "match/inbound.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/tsan.h"
#include "delivery/control.h"
#include "lane/lane.h"
#include "base/multilane.h"
#include "base/pending.h"
#include "base/clock.h"

/* Tells senders their limits. */

/* How long a receive waits before a sender without room gets some more. */
#define STARVED_NS UINT64_C(2000000)

static void due(struct peer *peer)
{
    atomic_store_explicit(&peer->credit_due, true, memory_order_relaxed); /* credit_send_if_due */
}

void credit_look(struct peer *peer)
{
    if (OPAL_UNLIKELY(!peer->starved && flow_is_exhausted(&peer->in))) {
        peer->starved = true;
        pending_add(&peer->starved_pending);
    }
}

/* The message is kept: it counts against its sender's limits until it is matched. */
static void credit_hold(struct peer *peer, uint32_t cost)
{
    if (OPAL_UNLIKELY(flow_hold(&peer->in, &multilane.pool, cost)))
        due(peer);
    credit_look(peer);
}

void credit_send(struct peer *peer)
{
    struct wire_credit credit;
    biased_lock(&peer->lock);
    bool is_due = atomic_load_explicit(&peer->credit_due, memory_order_relaxed);
    if (is_due) {
        flow_grant(&peer->in, &multilane.pool, &credit.limit, &credit.headers);
        atomic_store_explicit(&peer->credit_due, false, memory_order_relaxed);
    }
    biased_unlock(&peer->lock);
    if (!is_due)
        return;
    control_send(peer_control_lane(peer), WIRE_CREDIT, &credit, sizeof(credit));
}

static bool one_waits(struct mca_pml_comm_t *comm, const struct peer *peer)
{
    bool found = false;
    biased_lock(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask && !found; i++)
        for (const struct match_node *head = comm->posted.buckets[i]; head && !found;
             head = head->next_head)
            found = comm_has(comm, head->source, peer);
    biased_unlock(&comm->lock);
    /* Relaxed: a probe that this misses will set it again. */
    return found ||
           (atomic_exchange_explicit(&comm->probe_missed, false, memory_order_relaxed) &&
            comm_has(comm, atomic_load_explicit(&comm->probe_source, memory_order_relaxed), peer));
}

/* Looks in each communicator for a receive or probe that waits for the peer. */
static bool receive_waits(const struct peer *peer)
{
    bool found = false;
    multilane_lock();
    for (struct mca_pml_comm_t *comm = comm_next(NULL); comm && !found; comm = comm_next(comm))
        found = one_waits(comm, peer);
    multilane_unlock();
    return found;
}

/* From progress, while the peer has used up its limits: does a receive wait for it? */
static int starved_retry(struct pending *pending)
{
    struct peer *peer = (struct peer *) ((char *) pending - offsetof(struct peer, starved_pending));
    uint64_t now = clock_now_ns();
    biased_lock(&peer->lock);
    bool is_over = !peer_is_reachable(peer) || !flow_is_exhausted(&peer->in);
    if (is_over) {
        peer->starved = false;
        peer->starved_ns = 0;
    } else if (peer->starved_ns == 0) {
        peer->starved_ns = now;
    }
    bool is_time = !is_over && now - peer->starved_ns >= STARVED_NS;
    biased_unlock(&peer->lock);
    if (is_over)
        return OMPI_SUCCESS;
    if (!is_time)
        return OMPI_ERR_OUT_OF_RESOURCE;
    bool is_wanted = receive_waits(peer);
    biased_lock(&peer->lock);
    peer->starved_ns = now;
    if (is_wanted) {
        flow_extend(&peer->in);
        due(peer);
    }
    biased_unlock(&peer->lock);
    credit_send_if_due(peer);
    return OMPI_ERR_OUT_OF_RESOURCE;
}

void credit_end(struct peer *peer)
{
    biased_lock(&peer->lock);
    flow_end(&peer->in, &multilane.pool);
    biased_unlock(&peer->lock);
}

void credit_begin(struct peer *peer)
{
    flow_in_init(&peer->in, multilane.window, flow_headers(multilane.window));
    peer->starved_pending.retry = starved_retry;
}

_Static_assert(sizeof(((struct inbound *) NULL)->bytes) == FLOW_INSIDE_BYTES,
               "what lies inside of it is counted with it");
_Static_assert(sizeof(struct inbound) <= FLOW_MESSAGE_UNITS * FLOW_UNIT_BYTES,
               "what keeping a message takes is counted");

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
    if (atomic_fetch_add_explicit(&multilane.bad_headers, 1, memory_order_relaxed) != 0)
        return; /* printed and acted on at the first one */
    snprintf(text, sizeof(text), "received %s (%llu)", what, (unsigned long long) value);
    lane_events.btl_failed(btl, text, OMPI_ERR_BAD_PARAM);
}

size_t arrival_copy(const struct arrival *arrival, unsigned char *to)
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

/* A new inbound without payload; null: no memory. */
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
    inbound->copying = 0;
    inbound->offered = NULL;
    return inbound;
}

bool inbound_make_room(struct inbound *inbound, size_t bytes)
{
    inbound->data = inbound->bytes;
    if (bytes > sizeof(inbound->bytes)) {
        inbound->data = multilane.payloads->alc_alloc(multilane.payloads, bytes, 0);
        if (inbound->data)
            tsan_acquire(inbound->data);
    }
    return inbound->data != NULL;
}

struct inbound *inbound_keep(const struct arrival *arrival)
{
    struct inbound *inbound = inbound_new();
    if (!inbound) {
        say_no_memory(sizeof(*inbound));
        return NULL;
    }
    inbound->arrival = *arrival;
    inbound->is_plain = arrival->type == WIRE_EAGER && !handle_is_set(arrival->sender) &&
                        !handle_is_set(arrival->timer);
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
        arrival_copy(arrival, inbound->data);
    }
    return inbound;
}

struct inbound *inbound_refusal(const struct arrival *arrival)
{
    struct arrival bare = *arrival;
    bare.type = WIRE_PART; /* no payload is kept */
    struct inbound *inbound = inbound_keep(&bare);
    if (inbound)
        inbound->arrival.type = WIRE_EAGER;
    return inbound;
}

void inbound_hold(struct inbound *inbound)
{
    inbound->held = arrival_cost(&inbound->arrival);
    credit_hold(inbound->arrival.peer, inbound->held);
}

void inbound_release(struct inbound *inbound)
{
    struct peer *peer = inbound->arrival.peer;
    if (inbound->held && flow_release(&peer->in, inbound->held))
        due(peer);
    inbound->held = 0;
}

void inbound_unhold(struct inbound *inbound)
{
    struct peer *peer = inbound->arrival.peer;
    biased_lock(&peer->lock);
    inbound_release(inbound);
    biased_unlock(&peer->lock);
}

/* Adds the message under its wildcard keys. With the communicator's lock held. */
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

void inbound_enqueue(struct mca_pml_comm_t *comm, struct inbound *inbound)
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

/* The first receive with a wildcard in this communicator: adds the waiting messages under
 * wildcard keys too, in order; later messages follow. Programs without wildcards do not pay for
 * it. With the communicator's lock held. */
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
    inbound_hold(inbound);
    inbound_enqueue(comm, inbound);
    return true;
}

struct inbound *inbound_take_plain(struct mca_pml_comm_t *comm, int source, int tag, size_t room)
{
    biased_lock(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    if (inbound && !inbound_is_plain(inbound, room))
        inbound = NULL;
    if (inbound)
        inbound_remove(comm, inbound);
    biased_unlock(&comm->lock);
    if (inbound)
        inbound_unhold(inbound);
    return inbound;
}

struct inbound *assembly_next(struct peer *peer, const struct inbound *at)
{
    struct inbound *next = at ? at->next_assembly : NULL;
    uint32_t i = at ? at->arrival.match.sequence % ASSEMBLY_BUCKETS + 1 : 0;
    while (peer->assemblies && !next && i < ASSEMBLY_BUCKETS)
        next = peer->assemblies[i++];
    return next;
}

bool inbound_forget(struct peer *peer, const struct recv_request *receiver)
{
    bool ends = false;
    biased_lock(&peer->lock);
    for (struct inbound *at = assembly_next(peer, NULL); at; at = assembly_next(peer, at))
        if (at->receiver == receiver) {
            ends = at->copying == 0;
            at->receiver = ends ? NULL : at->receiver;
            at->refused = true;
        }
    biased_unlock(&peer->lock);
    return ends;
}

void inbounds_fini(void)
{
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        while (peer->early) {
            struct inbound *inbound = peer->early;
            peer->early = inbound->next;
            inbound_free(inbound);
        }
}

void inbound_drop(struct inbound *inbound)
{
    struct peer *peer = inbound->arrival.peer;
    biased_lock(&peer->lock);
    inbound_release(inbound);
    bool is_in_parts = inbound->arrival.type == WIRE_PART;
    inbound->refused = true; /* the last part frees it */
    biased_unlock(&peer->lock);
    if (!is_in_parts)
        inbound_free(inbound);
    if (peer_is_reachable(peer))
        credit_send_if_due(peer);
}

void inbound_refuse_sender(struct peer *peer, struct wire_handle sender)
{
    struct wire_ack nack = {.sender = sender};
    control_send(peer_control_lane(peer), WIRE_NACK, &nack, sizeof(nack));
}

void inbounds_refuse(struct inbound *refused)
{
    while (refused) {
        struct inbound *next = refused->next;
        struct peer *peer = refused->arrival.peer;
        struct wire_handle sender = refused->arrival.sender;
        refused->next = NULL;
        inbound_drop(refused);
        if (handle_is_set(sender))
            inbound_refuse_sender(peer, sender);
        refused = next;
    }
}

/* --- rests on offer --------------------------------------------------------------------------- */

/* The list of a peer's offered messages. */

/* The lane by which a rest of this peer is taken; null: none. */
static struct lane *taking_lane(struct peer *peer)
{
    for (uint8_t i = 0; i < peer_lane_count(peer); i++) {
        struct lane *lane = &peer->lanes[i];
        if (lane->extension && lane->extension->control_find && lane->extension->copy_from)
            return lane;
    }
    return NULL;
}

static struct peer_offers *offers_of(struct peer *peer)
{
    if (peer->offers)
        return peer->offers;
    peer->offers = calloc(1, sizeof(*peer->offers));
    if (peer->offers)
        peer->offers->peer = peer;
    return peer->offers;
}

struct offered *offered_new(struct peer *peer, const struct wire_offer *offer, uint64_t size,
                            void (*taken)(struct offered *offered, uint64_t from, bool good))
{
    struct lane *lane = taking_lane(peer);
    struct offered *offered = lane && offers_of(peer) ? calloc(1, sizeof(*offered)) : NULL;
    if (OPAL_UNLIKELY(!offered))
        return NULL;
    offered->peer = peer;
    offered->lane = lane;
    offered->offer = *offer;
    offered->size = size;
    offered->taken = taken;
    struct offered **last = &peer->offers->first; /* the older ones first */
    while (*last)
        last = &(*last)->next;
    *last = offered;
    return offered;
}

void offered_end(struct offered *offered)
{
    struct offered **at = &offered->peer->offers->first;
    while (*at != offered)
        at = &(*at)->next;
    *at = offered->next;
    free(offered);
}
