/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a peer: in the order in which the messages were numbered. */
#include "request/send_queue.h"

#include "base/multilane.h"
#include "base/pending.h"
#include "match/credit.h"

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
    __atomic_store_n(at, request, __ATOMIC_RELAXED); /* send_queue_any */
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

enum flow_verdict send_queue_admit(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    if (OPAL_LIKELY(
            !send_queue_any(peer) &&
            flow_is_within(request->out.mark, atomic_load_explicit(&peer->out.limit, memory_order_relaxed))))
        return FLOW_GO;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    enum flow_verdict verdict = FLOW_WAIT;
    bool is_behind = lane_is_awaited(peer);
    if (!is_behind)
        verdict = flow_try(&peer->out, request->out.mark, request->out.cost);
    request->is_admitted = false;
    if (verdict == FLOW_WAIT) {
        waiting_insert(peer, request);
        if (!is_behind)
            counter_add(&multilane.waited_messages, 1);
    }
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        send_queue_lost(peer); /* it may have come too late to be found */
    return verdict;
}

void send_queue_await_lane(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    request->is_admitted = true;
    waiting_insert(peer, request);
    bool is_due = !peer->waiting_is_pending;
    peer->waiting_is_pending = true;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
    if (is_due)
        pending_add(&peer->waiting_pending);
    if (OPAL_UNLIKELY(peer_is_lost(peer)))
        send_queue_lost(peer); /* as above */
}

bool send_queue_withdraw(struct send_request *request)
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

void send_queue_lost(struct peer *peer)
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
static struct send_request *waiting_take(struct peer *peer, enum flow_verdict *verdict)
{
    struct send_request *request = NULL;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    *verdict = FLOW_WAIT;
    if (lane_is_awaited(peer))
        *verdict = FLOW_GO;
    else if (peer->waiting)
        *verdict = flow_try(&peer->out, peer->waiting->out.mark, peer->waiting->out.cost);
    if (*verdict == FLOW_WAIT)
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
    enum flow_verdict verdict;
    struct send_request *request;
    while ((request = waiting_take(peer, &verdict))) {
        if (!request->is_admitted) {
            send_request_admitted(request, verdict);
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

bool send_queue_credit(struct peer *peer, const struct wire_credit *credit)
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
        pending_add(&peer->waiting_pending);
    return good;
}

void send_queue_begin(struct peer *peer, uint32_t promised)
{
    peer->out = (struct flow_out){.limit = promised, .headers = promised + flow_headers(promised)};
    peer->waiting_pending = (struct pending){.retry = waiting_retry, .is_unsent = true};
}
