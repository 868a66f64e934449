/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a lane to a peer: its works end with an error, and Open MPI is told. */
#include "btl/verbs/verbs.h"

/* So long a broken queue pair may take to use its last buffer. Soft RoCE does not tell before Linux
 * 6.5; it takes nothing away either. */
#define LAST_BUFFER_MS 1000u

static void peer_break(verbs_peer_t *peer)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};

    peer->was_ready = verbs_peer_state(peer) == PEER_READY;
    if (verbs_peer_state(peer) >= PEER_ANSWERED && peer->drain == DRAIN_NONE) {
        peer->drain = DRAIN_WAITING;
        peer->broken_ms = verbs_now_ms();
        atomic_fetch_add_explicit(&peer->module->draining, 1, memory_order_relaxed);
    }
    verbs_peer_state_set(peer, PEER_FAILED);
    /* Posted works are flushed with an error, and nothing more is sent or answered. */
    if (peer->qp)
        (void) ibv_modify_qp(peer->qp, &attributes, IBV_QP_STATE);
}

/* Under peer->lock. */
static void last_buffer_used(verbs_peer_t *peer)
{
    if (peer->drain != DRAIN_WAITING)
        return;
    peer->drain = DRAIN_POLLING;
    peer->drain_round = atomic_load_explicit(&peer->module->empty_rounds, memory_order_relaxed);
    atomic_fetch_sub_explicit(&peer->module->draining, 1, memory_order_relaxed);
}

void verbs_peer_last_buffer(verbs_peer_t *peer, uint32_t qpn)
{
    OPAL_THREAD_LOCK(&peer->lock);
    if (qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        last_buffer_used(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

bool verbs_peer_is_drained(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;

    if (peer->drain == DRAIN_WAITING && verbs_now_ms() - peer->broken_ms > LAST_BUFFER_MS)
        last_buffer_used(peer);
    /* Two rounds: one may have looked before the last buffer was used. Acquire, here and below: the
     * thread that polled has counted what came. */
    if (peer->drain == DRAIN_POLLING &&
        atomic_load_explicit(&module->empty_rounds, memory_order_acquire) - peer->drain_round >= 2)
        peer->drain = DRAIN_NONE;
    return peer->drain == DRAIN_NONE || atomic_load_explicit(&module->dead, memory_order_acquire);
}

/* What a dead device will not report. */
static void posted_fail(verbs_peer_t *peer)
{
    struct verbs_work *work;
    bool kept;

    do {
        OPAL_THREAD_LOCK(&peer->lock);
        work = (struct verbs_work *) opal_list_remove_first(&peer->posted);
        if (work)
            verbs_queue_ended(peer, work);
        kept = work && verbs_returns_keep(peer, work);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (work && !kept)
            verbs_work_complete(work, OPAL_ERR_UNREACH);
    } while (work);
}

void verbs_peer_fail_pair(verbs_peer_t *peer, uint32_t qpn, const char *why)
{
    struct verbs_module *module = peer->module;

    OPAL_THREAD_LOCK(&peer->lock);
    bool first = verbs_peer_state(peer) != PEER_FAILED && verbs_peer_state(peer) != PEER_IDLE &&
                 (qpn == ANY_PAIR || qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed));
    if (first)
        peer_break(peer);
    bool quiet = module->finalized || !peer->known;
    bool tell = first && !quiet && (peer->was_ready || !peer->said);
    peer->said |= tell;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!first)
        return;
    if (tell)
        VERBS_SAY("the lane from process %s by %s to process %s by %s is lost: %s",
                  OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), module->device, OPAL_NAME_PRINT(peer->name),
                  peer->port.address.name, why);
    verbs_queue_fail_pending(peer);
    if (!quiet)
        lane_lost(&module->super, peer->proc, module->device);
}

void verbs_peer_fail(verbs_peer_t *peer, const char *why)
{
    verbs_peer_fail_pair(peer, ANY_PAIR, why);
}

void verbs_module_die(struct verbs_module *module, const char *why)
{
    verbs_peer_t *peer;

    /* Release: see verbs_peer_is_drained. A thread that posts before it sees this has its work in a
     * list below. */
    if (atomic_exchange_explicit(&module->dead, true, memory_order_release))
        return;
    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++) {
        verbs_peer_fail_pair(peer, ANY_PAIR, why);
        posted_fail(peer);
        OPAL_THREAD_LOCK(&peer->lock);
        peer->fence_confirmed = true; /* it sends nothing and writes nothing any more */
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
}
