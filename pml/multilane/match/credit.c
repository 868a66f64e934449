/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells senders their limits. */
#include "match/credit.h"

#include "base/pending.h"
#include "base/clock.h"
#include "match/comm.h"
#include "delivery/control.h"
#include "base/multilane.h"

/* How long a receive waits before a sender without room gets some more. */
#define STARVED_NS UINT64_C(2000000)

static void due(struct peer *peer)
{
    atomic_store_explicit(&peer->credit_due, true, memory_order_relaxed); /* credit_tell_if_due */
}

void credit_look(struct peer *peer)
{
    if (OPAL_UNLIKELY(!peer->starved && flow_is_exhausted(&peer->in))) {
        peer->starved = true;
        pending_add(&peer->starved_pending);
    }
}

void credit_hold(struct peer *peer, uint32_t cost)
{
    if (OPAL_UNLIKELY(flow_hold(&peer->in, &multilane.pool, cost)))
        due(peer);
    credit_look(peer);
}

void credit_release(struct peer *peer, uint32_t cost)
{
    if (cost && flow_release(&peer->in, cost))
        due(peer);
}

void credit_tell(struct peer *peer)
{
    struct wire_credit credit;
    biased_lock(&peer->lock);
    bool is_due = atomic_load_explicit(&peer->credit_due, memory_order_relaxed);
    if (is_due) {
        flow_tell(&peer->in, &multilane.pool, &credit.limit, &credit.headers);
        atomic_store_explicit(&peer->credit_due, false, memory_order_relaxed);
    }
    biased_unlock(&peer->lock);
    if (!is_due)
        return;
    control_send(peer_control_lane(peer), WIRE_CREDIT, &credit, sizeof(credit));
}

/* Looks in each communicator for a receive or probe that waits for the peer. */
struct search {
    const struct peer *peer;
    bool found;
};

static void one_waits(struct mca_pml_comm_t *comm, void *with)
{
    struct search *search = with;
    if (search->found)
        return;
    biased_lock(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask && !search->found; i++)
        for (const struct match_node *head = comm->posted.buckets[i]; head && !search->found;
             head = head->next_head)
            search->found = comm_has(comm, head->source, search->peer);
    biased_unlock(&comm->lock);
    /* Relaxed: a probe that this misses will set it again. */
    if (!search->found &&
        atomic_exchange_explicit(&comm->probe_missed, false, memory_order_relaxed))
        search->found = comm_has(
            comm, atomic_load_explicit(&comm->probe_source, memory_order_relaxed), search->peer);
}

static bool receive_waits(const struct peer *peer)
{
    struct search search = {.peer = peer};
    comms_visit(one_waits, &search);
    return search.found;
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
    credit_tell_if_due(peer);
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
