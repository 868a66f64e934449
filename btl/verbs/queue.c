/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue of a connection: works are posted at once if there is room, and wait if not. */
#include "btl/verbs/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* --- room --- */

/* Completions must not outnumber the entries of the completion queue, or the device ends every
 * connection. Each posted work may bring one when a connection breaks. */
static bool room_take(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;

    if (peer->send_room == 0)
        return false;
    if (atomic_fetch_sub_explicit(&module->send_cq_room, 1, memory_order_relaxed) <= 0) {
        atomic_fetch_add_explicit(&module->send_cq_room, 1, memory_order_relaxed);
        return false;
    }
    peer->send_room--;
    return true;
}

void verbs_queue_room_give(verbs_peer_t *peer, uint32_t places)
{
    atomic_fetch_add_explicit(&peer->module->send_cq_room, (int32_t) places, memory_order_relaxed);
    peer->send_room += places;
}

static size_t bytes_of(const struct verbs_work *work)
{
    return work->size + (work->kind == WORK_SEND ? work->segments[0].seg_len : 0);
}

void verbs_queue_ended(verbs_peer_t *peer, const struct verbs_work *work)
{
    peer->outstanding--;
    peer->posted_bytes -= bytes_of(work);
    peer->moved_ms = verbs_now_ms();
    /* Also for a broken connection, which may never be renewed. Works that it posted after its last
     * report keep their entries until then, but none while entries are scarce
     * (verbs_queue_post_inline). */
    verbs_queue_room_give(peer, work->frees);
}

static void report_expect(verbs_peer_t *peer)
{
    peer->reports_due++;
    atomic_fetch_add_explicit(&peer->module->reports_due, 1, memory_order_relaxed);
}

void verbs_queue_reported(verbs_peer_t *peer, uint32_t count)
{
    peer->reports_due -= count;
    atomic_fetch_sub_explicit(&peer->module->reports_due, count, memory_order_relaxed);
}

/* --- posting --- */

static const enum ibv_wr_opcode opcodes[] = {
    [WORK_SEND] = IBV_WR_SEND_WITH_IMM,
    [WORK_PUT] = IBV_WR_RDMA_WRITE,
    [WORK_GET] = IBV_WR_RDMA_READ,
    [WORK_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [WORK_SWAP_IF] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* The processor reads inline data, and it cannot read device memory. */
static bool is_of_device(const struct verbs_work *work)
{
    return work->kind == WORK_PUT && work->request.local_handle &&
           work->request.local_handle->device;
}

/* `parts`: room for two. */
static void request_fill(verbs_peer_t *peer, struct verbs_work *work, struct ibv_send_wr *request,
                         struct ibv_sge *parts)
{
    const struct ibv_sge whole = {.addr = (uint64_t) (uintptr_t) work->request.local,
                                  .length = (uint32_t) work->size,
                                  .lkey = work->local_key};
    struct ibv_sge *part = &parts[0];

    memset(request, 0, sizeof(*request));
    request->wr_id = (uint64_t) (uintptr_t) work;
    request->opcode = opcodes[work->kind];
    request->send_flags = IBV_SEND_SIGNALED;
    request->sg_list = parts;
    switch ((enum work_kind) work->kind) {
    case WORK_SEND:
        part->addr = (uint64_t) (uintptr_t) work->segments[0].seg_addr.pval;
        part->length = (uint32_t) work->segments[0].seg_len;
        part->lkey = verbs_cache_key(work->base.super.registration);
        request->imm_data = htonl(MESSAGE_WORD(peer->their_index, work->tag));
        break;
    case WORK_PUT:
    case WORK_GET:
        request->wr.rdma.remote_addr = work->remote;
        request->wr.rdma.rkey = work->remote_key;
        break;
    case WORK_FETCH_ADD:
    case WORK_SWAP_IF:
        request->wr.atomic.remote_addr = work->remote;
        request->wr.atomic.rkey = work->remote_key;
        request->wr.atomic.compare_add = work->operands[0];
        request->wr.atomic.swap = work->operands[1];
        break;
    }
    if (work->kind == WORK_SEND && work->size != 0) { /* gathered: the header, and the payload */
        parts[1] = whole;
        request->num_sge = 2;
        return;
    }
    if (work->kind != WORK_SEND)
        *part = whole;
    if ((work->kind == WORK_SEND || work->kind == WORK_PUT) &&
        part->length <= peer->module->inline_max && !is_of_device(work))
        request->send_flags |= IBV_SEND_INLINE;
    request->num_sge = part->length == 0 ? 0 : 1;
}

enum verbs_posting verbs_queue_post(verbs_peer_t *peer, struct verbs_work *work)
{
    struct ibv_send_wr request, *bad;
    struct ibv_sge parts[2];

    if (!room_take(peer))
        return POST_FULL;
    request_fill(peer, work, &request, parts);
    work->frees = (uint8_t) (peer->unsignaled + 1);
    int error = ibv_post_send(peer->qp, &request, &bad);
    if (OPAL_UNLIKELY(error != 0)) {
        verbs_queue_room_give(peer, 1);
        return error == ENOMEM ? POST_FULL : POST_FAILED;
    }
    if (work->kind == WORK_SEND)
        work->number = ++peer->sent;
    peer->unsignaled = 0;
    verbs_returns_given(peer);
    peer->outstanding++;
    peer->posted_bytes += bytes_of(work);
    report_expect(peer);
    opal_list_append(&peer->posted, (opal_list_item_t *) work);
    return POSTED;
}

/* Unsignaled messages keep their entries until a later one is signaled; many peers together must
 * not use up all entries. */
enum verbs_posting verbs_queue_post_inline(verbs_peer_t *peer, struct ibv_send_wr *request)
{
    struct ibv_send_wr *bad;

    if (!opal_list_is_empty(&peer->pending))
        return POST_LATER;
    if (!room_take(peer))
        return POST_FULL;
    bool report = peer->unsignaled == INLINE_UNSIGNALED_MAX ||
                  atomic_load_explicit(&peer->module->send_cq_room, memory_order_relaxed) <
                      peer->module->send_cq_size / 2;
    request->wr_id = INLINE_ID(peer, report ? peer->unsignaled + 1u : 0u);
    request->send_flags = IBV_SEND_INLINE | (report ? IBV_SEND_SIGNALED : 0);
    int error = ibv_post_send(peer->qp, request, &bad);
    if (OPAL_UNLIKELY(error != 0)) {
        verbs_queue_room_give(peer, 1);
        return error == ENOMEM ? POST_FULL : POST_FAILED;
    }
    peer->sent++;
    peer->unsignaled = (uint8_t) (report ? 0 : peer->unsignaled + 1);
    if (report)
        report_expect(peer);
    return POSTED;
}

/* --- what waits --- */

void verbs_queue_wake(verbs_peer_t *peer)
{
    if (!opal_list_is_empty(&peer->pending))
        peer_list_add(&peer->module->waiting, &peer->waiting, peer);
}

/* Under peer->lock. */
static struct verbs_work *unkept_take(verbs_peer_t *peer)
{
    struct verbs_work *work;

    OPAL_LIST_FOREACH(work, &peer->pending, struct verbs_work)
    {
        if (verbs_work_is_kept(work))
            continue;
        opal_list_remove_item(&peer->pending, (opal_list_item_t *) work);
        return work;
    }
    return NULL;
}

void verbs_queue_fail_pending(verbs_peer_t *peer)
{
    struct verbs_work *work;

    do {
        OPAL_THREAD_LOCK(&peer->lock);
        work = unkept_take(peer);
        verbs_returns_look(peer);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (work)
            verbs_work_complete(work, OPAL_ERR_UNREACH);
    } while (work);
}
