/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a lane to a peer: its works end with an error, and Open MPI is told. */
#include "btl/verbs/verbs.h"

static void peer_break(verbs_peer_t *peer)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};

    peer->was_ready = peer->state == PEER_READY;
    verbs_peer_state_set(peer, PEER_FAILED);
    /* Posted works are flushed with an error, and nothing more is sent or answered. */
    if (peer->qp)
        (void) ibv_modify_qp(peer->qp, &attributes, IBV_QP_STATE);
}

void verbs_peer_fail_pair(verbs_peer_t *peer, uint32_t qpn, const char *why)
{
    struct verbs_module *module = peer->module;

    OPAL_THREAD_LOCK(&peer->lock);
    bool first = peer->state != PEER_FAILED && peer->state != PEER_IDLE &&
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
    if (!quiet && module->error_callback && peer->proc)
        module->error_callback(&module->super, 0, peer->proc, module->device);
}

void verbs_peer_fail(verbs_peer_t *peer, const char *why)
{
    verbs_peer_fail_pair(peer, ANY_PAIR, why);
}
