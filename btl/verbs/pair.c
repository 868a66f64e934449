/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: made, connected with one at the other end, and destroyed. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define RECEIVER_NOT_READY_CODE 12 /* the sender tries again after 0.64 ms */
#define HOPS_MAX                64

void verbs_path_fill(struct verbs_module *module, const struct choice_address *address,
                     struct ibv_ah_attr *path)
{
    memset(path, 0, sizeof(*path));
    path->dlid = address->lid;
    path->sl = (uint8_t) verbs.service_level;
    path->port_num = (uint8_t) module->port_number;
    if (!verbs_choice_is_routed(&verbs.record.ports[module->port_index].address, address))
        return;
    path->is_global = 1;
    memcpy(path->grh.dgid.raw, address->gid, CHOICE_GID_BYTES);
    path->grh.sgid_index = (uint8_t) module->gid_index;
    path->grh.hop_limit = HOPS_MAX;
    path->grh.traffic_class = (uint8_t) verbs.traffic_class;
}

/* Once a port: where one peer gets none, many do not. */
static void pair_refused(const verbs_peer_t *peer, int error)
{
    struct verbs_module *module = peer->module;
    uint32_t pairs = atomic_load_explicit(&module->pair_count, memory_order_relaxed);
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    if (atomic_exchange_explicit(&module->refused_said, true, memory_order_relaxed))
        return;
    (void) getrlimit(RLIMIT_MEMLOCK, &limit);
    if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY)
        VERBS_SAY(
            "%s: no queue pair for process %s can be made beside %u others: %s. This process "
            "may lock %llu bytes (ulimit -l): raise that, or lower btl_verbs_queue_depth. The "
            "device has %d queue pairs for all processes.",
            module->device, OPAL_NAME_PRINT(peer->name), pairs, strerror(error),
            (unsigned long long) limit.rlim_cur, module->max_pairs);
    else
        VERBS_SAY(
            "%s: no queue pair for process %s can be made beside %u others: %s. The device has "
            "%d for all processes: use fewer processes for each device, or another lane.",
            module->device, OPAL_NAME_PRINT(peer->name), pairs, strerror(error), module->max_pairs);
}

struct ibv_qp *verbs_pair_make(struct verbs_module *module, uint32_t *inline_bytes)
{
    struct ibv_qp_init_attr init = {
        .send_cq = module->send_cq,
        .recv_cq = module->receive_cq,
        .srq = module->srq,
        .cap = {.max_send_wr = verbs.depth.requests,
                .max_send_sge = 2,
                .max_inline_data = *inline_bytes},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(module->pd, &init);

    if (qp && init.cap.max_inline_data < *inline_bytes)
        *inline_bytes = init.cap.max_inline_data;
    return qp;
}

bool verbs_pair_create(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = module->pkey_index,
        .port_num = (uint8_t) module->port_number,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ |
                           (module->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0),
    };
    uint32_t inline_bytes = module->inline_max;
    struct ibv_qp *qp;

    if (atomic_load_explicit(&module->dead, memory_order_relaxed))
        return false;
    qp = verbs_pair_make(module, &inline_bytes);
    if (!qp ||
        ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
        pair_refused(peer, errno);
        if (qp)
            ibv_destroy_qp(qp);
        return false;
    }
    peer->qp = qp;
    atomic_fetch_add_explicit(&module->pair_count, 1, memory_order_relaxed);
    peer->send_room = verbs.depth.requests;
    peer->unsignaled = 0;
    peer->my_psn = (uint32_t) (verbs.record.nonce ^ qp->qp_num * 2654435761u) & 0xffffff;
    atomic_store_explicit(&peer->qpn, qp->qp_num, memory_order_relaxed);
    return true;
}

void verbs_pair_end(const verbs_peer_t *peer, struct verbs_end *end)
{
    const struct verbs_module *module = peer->module;

    opal_mutex_lock(&verbs.record_lock);
    end->port = verbs.record.ports[module->port_index];
    opal_mutex_unlock(&verbs.record_lock);
    end->qpn = atomic_load_explicit(&peer->qpn, memory_order_relaxed);
    end->psn = peer->my_psn;
    end->index = peer->index;
    end->read_depth = module->read_depth;
}

bool verbs_pair_connect(verbs_peer_t *peer, const struct verbs_end *other)
{
    struct verbs_module *module = peer->module;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu =
            other->port.mtu < (uint32_t) module->mtu ? (enum ibv_mtu) other->port.mtu : module->mtu,
        .dest_qp_num = other->qpn,
        .rq_psn = other->psn,
        /* Another one than when it was made, if that has changed. */
        .pkey_index = module->pkey_index,
        .max_dest_rd_atomic = (uint8_t) module->read_depth,
        .min_rnr_timer = RECEIVER_NOT_READY_CODE,
    };

    verbs_returns_begin(peer);
    verbs_path_fill(module, &other->port.address, &attributes.ah_attr);
    if (ibv_modify_qp(peer->qp, &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_PATH_MTU |
                          IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                          IBV_QP_MIN_RNR_TIMER) != 0)
        return false;
    attributes = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t) verbs.timeout,
        .retry_cnt = (uint8_t) verbs.retry_count,
        .rnr_retry = 7, /* without end: a receiver without buffers is slow, not lost */
        .sq_psn = peer->my_psn,
        .max_rd_atomic = (uint8_t) (module->read_depth < other->read_depth ? module->read_depth
                                                                           : other->read_depth),
    };
    return ibv_modify_qp(peer->qp, &attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

bool verbs_pair_to_itself(verbs_peer_t *peer)
{
    struct verbs_end own;

    if (!verbs_pair_create(peer))
        return false;
    verbs_pair_end(peer, &own);
    verbs_peer_state_set(peer, verbs_pair_connect(peer, &own) ? PEER_READY : PEER_FAILED);
    return verbs_peer_state(peer) == PEER_READY;
}

/* Under peer->lock. Later completions of the queue pair find no such one. */
static void pair_destroy(verbs_peer_t *peer)
{
    if (!peer->qp)
        return;
    ibv_destroy_qp(peer->qp);
    atomic_fetch_sub_explicit(&peer->module->pair_count, 1, memory_order_relaxed);
    peer->qp = NULL;
    atomic_store_explicit(&peer->qpn, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&peer->module->send_cq_room,
                              (int32_t) (verbs.depth.requests - peer->send_room),
                              memory_order_relaxed);
    verbs_queue_reported(peer, peer->reports_due);
    peer->send_room = 0;
    peer->unsignaled = 0;
}

bool verbs_peer_renew(verbs_peer_t *peer)
{
    if (peer->outstanding != 0 || verbs_returns_wait(peer) || !verbs_peer_is_drained(peer))
        return false;
    pair_destroy(peer);
    verbs_peer_state_set(peer, PEER_IDLE);
    peer->was_ready = peer->fence_confirmed = false;
    peer->fence_next_ms = 0;
    return true;
}

static void peer_destroy(verbs_peer_t *peer)
{
    verbs_return_to(&peer->module->super, peer, NULL, NULL);
    verbs_queue_fail_pending(peer);
    (void) verbs_returns_make(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    pair_destroy(peer);
    if (peer->greeting_path)
        ibv_destroy_ah(peer->greeting_path);
    OPAL_THREAD_UNLOCK(&peer->lock);
    peer_list_remove(&peer->module->waiting, &peer->waiting);
    peer_list_remove(&peer->module->greeting, &peer->greeting);
    OBJ_DESTRUCT(&peer->returns.unreturned);
    OBJ_DESTRUCT(&peer->posted);
    OBJ_DESTRUCT(&peer->pending);
    OBJ_DESTRUCT(&peer->lock);
    free(peer);
}

void verbs_peers_close(struct verbs_module *module)
{
    verbs_peer_t *peer;

    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++)
        peer_destroy(peer);
    atomic_store_explicit(&module->peer_count, 0, memory_order_relaxed);
    memset(&module->names, 0, sizeof(module->names));
    for (uint32_t i = 0; i < PEERS_CHUNKS; i++)
        free(atomic_load_explicit(&module->chunks[i], memory_order_relaxed));
    peer_list_close(&module->greeting);
    peer_list_close(&module->waiting);
    OBJ_DESTRUCT(&module->lock);
}
