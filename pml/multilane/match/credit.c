/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that wait for room at their receiver or on a lane, and telling senders of room. */
#include "match/credit.h"

#include <string.h>

#include "base/clock.h"
#include "match/comm.h"
#include "match/inbound.h"
#include "base/multilane.h"

_Static_assert(sizeof(((struct inbound *) NULL)->bytes) == FLOW_INSIDE_BYTES,
               "what lies inside of it is counted with it");
_Static_assert(sizeof(struct inbound) <= FLOW_MESSAGE_UNITS * FLOW_UNIT_BYTES,
               "what keeping a message takes is counted");

/* How long a receive waits for a sender without room before that gets some more. */
#define STARVED_NS UINT64_C(2000000)

/* --- the sender's end ---------------------------------------------------------------------------
 */

/* By mark: threads may come here in another order than that in which they drew their numbers. With
 * the credit lock held. */
static void waiting_insert(struct peer *peer, struct send_request *request)
{
    struct send_request **at = &peer->waiting;
    if (peer->waiting_last && (int32_t) (request->out.mark - peer->waiting_last->out.mark) > 0)
        at = &peer->waiting_last->next_waiting;
    while (*at && (int32_t) ((*at)->out.mark - request->out.mark) < 0)
        at = &(*at)->next_waiting;
    request->next_waiting = *at;
    __atomic_store_n(at, request, __ATOMIC_RELAXED); /* credit_any_waits */
    if (!request->next_waiting)
        peer->waiting_last = request;
    request->is_waiting = true;
}

/* With the credit lock held. */
static struct send_request *waiting_pop(struct peer *peer)
{
    struct send_request *request = peer->waiting;
    __atomic_store_n(&peer->waiting, request->next_waiting, __ATOMIC_RELAXED);
    if (!peer->waiting)
        peer->waiting_last = NULL;
    request->is_waiting = false;
    return request;
}

/* Is there one before it that may go, and that its lane has refused? Then those that come later
 * wait behind it: else they would take its room. With the credit lock held. */
static bool lane_is_awaited(const struct peer *peer)
{
    return peer->waiting && peer->waiting->is_admitted;
}

enum flow_way credit_admit(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    if (OPAL_LIKELY(
            !credit_any_waits(peer) &&
            flow_is_within(request->out.mark, __atomic_load_n(&peer->out.limit, __ATOMIC_RELAXED))))
        return FLOW_GO;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    enum flow_way way = FLOW_WAIT;
    bool is_behind = lane_is_awaited(peer);
    if (!is_behind)
        way = flow_try(&peer->out, request->out.mark, request->out.cost);
    request->is_admitted = false;
    if (way == FLOW_WAIT) {
        waiting_insert(peer, request);
        if (!is_behind)
            counter_add(&multilane.waited_messages, 1);
    }
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        credit_lost(peer); /* it may have come too late to be found */
    return way;
}

void credit_await_lane(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    request->is_admitted = true;
    waiting_insert(peer, request);
    bool is_due = !peer->waiting_is_pending;
    peer->waiting_is_pending = true;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (is_due)
        pending_add(&multilane.pending, &peer->waiting_pending);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        credit_lost(peer); /* as above */
}

bool credit_withdraw(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    bool was_waiting = request->is_waiting;
    if (was_waiting) {
        struct send_request **at = &peer->waiting;
        peer->waiting_last = NULL;
        while (*at) {
            if (*at == request) {
                __atomic_store_n(at, request->next_waiting, __ATOMIC_RELAXED);
                continue;
            }
            peer->waiting_last = *at;
            at = &(*at)->next_waiting;
        }
        request->is_waiting = false;
    }
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    return was_waiting;
}

void credit_end(struct peer *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    flow_end(&peer->in, &multilane.pool);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

void credit_lost(struct peer *peer)
{
    struct send_request *request;
    credit_end(peer);
    do {
        OPAL_THREAD_LOCK(&peer->credit_lock);
        request = peer->waiting ? waiting_pop(peer) : NULL;
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
        if (request)
            send_request_fail(request, COMPAT_ERR_PROC_FAILED);
    } while (request);
}

/* The next one that may go now, taken out of the queue; null: the next limits bring us back. */
static struct send_request *waiting_take(struct peer *peer, enum flow_way *way)
{
    struct send_request *request = NULL;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    *way = FLOW_WAIT;
    if (lane_is_awaited(peer))
        *way = FLOW_GO;
    else if (peer->waiting)
        *way = flow_try(&peer->out, peer->waiting->out.mark, peer->waiting->out.cost);
    if (*way == FLOW_WAIT)
        peer->waiting_is_pending = false;
    else
        request = waiting_pop(peer);
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    return request;
}

/* From progress: sends what may go now. */
static int waiting_retry(struct pending *pending)
{
    struct peer *peer = (struct peer *) ((char *) pending - offsetof(struct peer, waiting_pending));
    enum flow_way way;
    struct send_request *request;
    while ((request = waiting_take(peer, &way))) {
        if (!request->is_admitted) {
            send_request_admitted(request, way);
            request->is_admitted = true;
        }
        if (send_request_try(request) != LANE_AGAIN)
            continue;
        OPAL_THREAD_LOCK(&peer->credit_lock);
        waiting_insert(peer, request);
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
        return LANE_AGAIN;
    }
    return OMPI_SUCCESS;
}

bool credit_arrived(struct peer *peer, const struct wire_credit *credit)
{
    uint32_t drawn = (uint32_t) (__atomic_load_n(&peer->drawn, __ATOMIC_RELAXED) >> 32);
    OPAL_THREAD_LOCK(&peer->credit_lock);
    bool good = flow_is_possible(&peer->out, drawn, credit->limit, credit->headers);
    bool is_due = good && flow_moved(&peer->out, drawn, credit->limit, credit->headers) &&
                  peer->waiting && !peer->waiting_is_pending;
    if (is_due)
        peer->waiting_is_pending = true;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (is_due)
        pending_add(&multilane.pending, &peer->waiting_pending);
    return good;
}

/* --- the receiver's end -------------------------------------------------------------------------
 */

static void due(struct peer *peer)
{
    __atomic_store_n(&peer->credit_due, true, __ATOMIC_RELAXED); /* credit_tell_if_due */
}

void credit_look(struct peer *peer)
{
    if (OPAL_UNLIKELY(!peer->starved && flow_is_exhausted(&peer->in))) {
        peer->starved = true;
        pending_add(&multilane.pending, &peer->starved_pending);
    }
}

void credit_hold(struct peer *peer, struct inbound *inbound)
{
    inbound->held = arrival_cost(&inbound->arrival);
    if (OPAL_UNLIKELY(flow_hold(&peer->in, &multilane.pool, inbound->held)))
        due(peer);
    credit_look(peer);
}

void credit_release(struct inbound *inbound)
{
    if (!inbound->held)
        return;
    if (flow_release(&inbound->arrival.peer->in, inbound->held))
        due(inbound->arrival.peer);
    inbound->held = 0;
}

void credit_tell(struct peer *peer)
{
    struct wire_credit credit;
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_due = __atomic_load_n(&peer->credit_due, __ATOMIC_RELAXED);
    if (is_due) {
        flow_tell(&peer->in, &multilane.pool, &credit.limit, &credit.headers);
        __atomic_store_n(&peer->credit_due, false, __ATOMIC_RELAXED);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!is_due)
        return;
    unsigned char bytes[WIRE_CONTROL_MAX];
    unsigned char *end = peer_write_base(peer, bytes, WIRE_CREDIT, 0);
    memcpy(end, &credit, sizeof(credit));
    lane_send_control(peer_control_lane(peer), bytes, (size_t) (end + sizeof(credit) - bytes));
}

/* What waits is looked for in each communicator. */
struct search {
    const struct peer *peer;
    bool found;
};

static void one_waits(struct mca_pml_comm_t *comm, void *with)
{
    struct search *search = with;
    if (search->found)
        return;
    OPAL_THREAD_LOCK(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask && !search->found; i++)
        for (const struct match_node *head = comm->posted.buckets[i]; head && !search->found;
             head = head->next_head)
            search->found = comm_has(comm, head->source, search->peer);
    OPAL_THREAD_UNLOCK(&comm->lock);
    /* Relaxed: a probe that is missed now will miss its message again. */
    if (!search->found && __atomic_exchange_n(&comm->probe_missed, false, __ATOMIC_RELAXED))
        search->found =
            comm_has(comm, __atomic_load_n(&comm->probe_source, __ATOMIC_RELAXED), search->peer);
}

/* Does a receive or a probe wait that a message of this peer may end? */
static bool anybody_waits(const struct peer *peer)
{
    struct search search = {.peer = peer};
    comms_visit(one_waits, &search);
    return search.found;
}

/* From progress, while the sender has no room left: does anybody wait for what it may have? */
static int starved_retry(struct pending *pending)
{
    struct peer *peer = (struct peer *) ((char *) pending - offsetof(struct peer, starved_pending));
    uint64_t now = clock_now_ns();
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_over = !peer->reachable || !flow_is_exhausted(&peer->in);
    if (is_over) {
        peer->starved = false;
        peer->starved_ns = 0;
    } else if (peer->starved_ns == 0) {
        peer->starved_ns = now;
    }
    bool is_time = !is_over && now - peer->starved_ns >= STARVED_NS;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (is_over)
        return OMPI_SUCCESS;
    if (!is_time)
        return OMPI_ERR_OUT_OF_RESOURCE;
    bool is_wanted = anybody_waits(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    peer->starved_ns = now;
    if (is_wanted) {
        flow_extend(&peer->in);
        due(peer);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    credit_tell_if_due(peer);
    return OMPI_ERR_OUT_OF_RESOURCE;
}

void credit_begin(struct peer *peer, uint32_t promised)
{
    peer->out = (struct flow_out){.limit = promised, .headers = promised + flow_headers(promised)};
    flow_in_init(&peer->in, multilane.window, flow_headers(multilane.window));
    peer->waiting_pending = (struct pending){.retry = waiting_retry, .is_unsent = true};
    peer->starved_pending.retry = starved_retry;
}
