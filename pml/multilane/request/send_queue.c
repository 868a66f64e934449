/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a peer, in the order of the messages' numbers. */
#include "request/send_queue.h"

#include "base/multilane.h"
#include "base/pending.h"
#include "match/credit.h"

/* The first in the queue. Relaxed: the credit lock, which is held, orders it. */
static struct send_request *waiting_first(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed);
}

/* Links a request, or null, behind `before`; null: at the front. Relaxed: send_queue_any reads
 * it without the lock, as a hint. */
static void waiting_link(struct peer *peer, struct send_request *before,
                         struct send_request *request)
{
    if (before)
        before->next_waiting = request;
    else
        atomic_store_explicit(&peer->waiting, request, memory_order_relaxed);
}

static bool is_older(const struct send_request *one, const struct send_request *other)
{
    return (int32_t) (one->out.mark - other->out.mark) < 0;
}

/* Sorted by mark: threads come here in any order. With the credit lock held. */
static void waiting_insert(struct peer *peer, struct send_request *request)
{
    struct send_request *before = NULL, *next = waiting_first(peer);
    if (peer->waiting_last && is_older(peer->waiting_last, request)) {
        before = peer->waiting_last;
        next = NULL;
    }
    while (next && is_older(next, request)) {
        before = next;
        next = next->next_waiting;
    }
    request->next_waiting = next;
    waiting_link(peer, before, request);
    if (!next)
        peer->waiting_last = request;
    request->is_waiting = true;
}

/* With the credit lock held. */
static struct send_request *waiting_pop(struct peer *peer)
{
    struct send_request *request = waiting_first(peer);
    waiting_link(peer, NULL, request->next_waiting);
    if (!request->next_waiting)
        peer->waiting_last = NULL;
    request->is_waiting = false;
    return request;
}

/* Does the first message wait for its lane? Then later ones wait behind it, or they would take
 * its room. With the credit lock held. */
static bool lane_is_awaited(const struct peer *peer)
{
    const struct send_request *first = waiting_first(peer);
    return first && first->is_admitted;
}

enum flow_verdict send_queue_admit(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    if (OPAL_LIKELY(!send_queue_any(peer) &&
                    flow_is_within(request->out.mark,
                                   atomic_load_explicit(&peer->out.limit, memory_order_relaxed))))
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
        send_queue_lost(peer); /* the queue may have been emptied before this */
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
        struct send_request *before = NULL, *at = waiting_first(peer);
        for (; at != request; at = at->next_waiting)
            before = at;
        waiting_link(peer, before, request->next_waiting);
        if (!request->next_waiting)
            peer->waiting_last = before;
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
        request = waiting_first(peer) ? waiting_pop(peer) : NULL;
        OPAL_THREAD_UNLOCK(&peer->credit_lock);
        if (request)
            send_request_fail(request, COMPAT_ERR_PROC_FAILED);
    } while (request);
}

/* Removes and returns the next message that may go now; null: new limits will bring this
 * function back. */
static struct send_request *waiting_take(struct peer *peer, enum flow_verdict *verdict)
{
    struct send_request *request = NULL;
    OPAL_THREAD_LOCK(&peer->credit_lock);
    const struct send_request *first = waiting_first(peer);
    *verdict = FLOW_WAIT;
    if (lane_is_awaited(peer))
        *verdict = FLOW_GO;
    else if (first)
        *verdict = flow_try(&peer->out, first->out.mark, first->out.cost);
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
    uint32_t drawn = (uint32_t) (atomic_load_explicit(&peer->drawn, memory_order_relaxed) >> 32);
    OPAL_THREAD_LOCK(&peer->credit_lock);
    bool good = flow_is_possible(&peer->out, drawn, credit->limit, credit->headers);
    bool is_due = good && flow_moved(&peer->out, drawn, credit->limit, credit->headers) &&
                  waiting_first(peer) && !peer->waiting_is_pending;
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
