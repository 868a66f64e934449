/* SPDX-License-Identifier: BSD-3-Clause */
/* Work on its way through a queue pair: posted at once where there is room, by a list where there
 * is not, and ended by its completion. */
#include "btl/verbs/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void work_construct(struct verbs_work *work)
{
    work->base.des_segments = &work->segment;
    work->base.des_segment_count = 1;
    work->base.order = MCA_BTL_NO_ORDER;
}

OBJ_CLASS_INSTANCE(struct_verbs_work, mca_btl_base_descriptor_t, work_construct, NULL);

/* --- room --- */

/* Completions that are due may not outnumber the places of the completion queue: the device would
 * end every connection. Each thing posted may bring one when a connection breaks. */
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

static void room_give(verbs_peer_t *peer, uint32_t places)
{
    atomic_fetch_add_explicit(&peer->module->send_cq_room, (int32_t) places, memory_order_relaxed);
    peer->send_room += places;
}

/* --- posting --- */

static const enum ibv_wr_opcode opcodes[] = {
    [WORK_SEND] = IBV_WR_SEND_WITH_IMM,
    [WORK_PUT] = IBV_WR_RDMA_WRITE,
    [WORK_GET] = IBV_WR_RDMA_READ,
    [WORK_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [WORK_SWAP_IF] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* What is put into the request itself is read by the processor. */
static bool is_of_device(const struct verbs_work *work)
{
    return work->kind == WORK_PUT && work->local_handle && work->local_handle->device;
}

static void request_fill(verbs_peer_t *peer, struct verbs_work *work, struct ibv_send_wr *request,
                         struct ibv_sge *part)
{
    memset(request, 0, sizeof(*request));
    request->wr_id = (uint64_t) (uintptr_t) work;
    request->opcode = opcodes[work->kind];
    request->send_flags = IBV_SEND_SIGNALED;
    request->sg_list = part;
    switch ((enum work_kind) work->kind) {
    case WORK_SEND:
        part->addr = (uint64_t) (uintptr_t) work->segment.seg_addr.pval;
        part->length = (uint32_t) work->segment.seg_len;
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
    if (work->kind != WORK_SEND) {
        part->addr = (uint64_t) (uintptr_t) work->local;
        part->length = (uint32_t) work->size;
        part->lkey = work->local_key;
    }
    if ((work->kind == WORK_SEND || work->kind == WORK_PUT) &&
        part->length <= peer->module->inline_max && !is_of_device(work))
        request->send_flags |= IBV_SEND_INLINE;
    request->num_sge = part->length == 0 ? 0 : 1;
}

/* POST_FULL: a completion gives room. POST_LATER: there is no connection, or others wait before. */
enum posting { POSTED, POST_FULL, POST_LATER, POST_FAILED };

/* Under peer->lock, in state READY. */
static enum posting work_post(verbs_peer_t *peer, struct verbs_work *work)
{
    struct ibv_send_wr request, *bad;
    struct ibv_sge part;
    int error;

    if (!room_take(peer))
        return POST_FULL;
    request_fill(peer, work, &request, &part);
    work->frees = (uint8_t) (peer->unsignaled + 1);
    error = ibv_post_send(peer->qp, &request, &bad);
    if (OPAL_UNLIKELY(error != 0)) {
        room_give(peer, 1);
        return error == ENOMEM ? POST_FULL : POST_FAILED;
    }
    peer->unsignaled = 0;
    peer->outstanding++;
    return POSTED;
}

/* Under peer->lock. */
void verbs_work_wake(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;

    if (peer->queued || opal_list_is_empty(&peer->pending))
        return;
    opal_mutex_lock(&module->waiting_lock);
    {
        uint32_t count = atomic_load_explicit(&module->waiting_count, memory_order_relaxed);

        if (count < module->waiting_room) {
            module->waiting[count] = peer;
            peer->queued = true;
            atomic_store_explicit(&module->waiting_count, count + 1, memory_order_relaxed);
        }
    }
    opal_mutex_unlock(&module->waiting_lock);
}

/* What a send-immediate says. With no lock held. */
static int posting_status(verbs_peer_t *peer, enum posting posting)
{
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue takes nothing any more");
    return posting == POSTED      ? OPAL_SUCCESS
           : posting == POST_FULL ? OPAL_ERR_RESOURCE_BUSY
                                  : OPAL_ERR_OUT_OF_RESOURCE;
}

int verbs_work_submit_now(verbs_peer_t *peer, struct verbs_work *work)
{
    enum posting posting = POST_LATER;

    work->peer = peer;
    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_LIKELY(peer->state == PEER_READY) && opal_list_is_empty(&peer->pending))
        posting = work_post(peer, work);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return posting_status(peer, posting);
}

int verbs_work_submit(verbs_peer_t *peer, struct verbs_work *work)
{
    enum posting posting = POST_LATER;
    int status = OPAL_SUCCESS;

    work->peer = peer;
    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_LIKELY(peer->state == PEER_READY) && opal_list_is_empty(&peer->pending))
        posting = work_post(peer, work);
    if (posting != POSTED) {
        if (peer->state == PEER_FAILED ||
            (peer->state == PEER_IDLE && !verbs_connect_begin(peer)) || posting == POST_FAILED) {
            status = OPAL_ERR_UNREACH;
        } else {
            opal_list_append(&peer->pending, (opal_list_item_t *) work);
            if (peer->state == PEER_READY)
                verbs_work_wake(peer);
        }
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue takes nothing any more");
    return status;
}

/* Under peer->lock, in state READY. Those that are not reported keep their places until a later one
 * is; many peers that do so may not take all places. */
static enum posting inline_post(verbs_peer_t *peer, struct ibv_send_wr *request)
{
    struct ibv_send_wr *bad;
    bool report;
    int error;

    if (!opal_list_is_empty(&peer->pending))
        return POST_LATER;
    if (!room_take(peer))
        return POST_FULL;
    report = peer->unsignaled == INLINE_UNSIGNALED_MAX ||
             atomic_load_explicit(&peer->module->send_cq_room, memory_order_relaxed) <
                 peer->module->send_cq_size / 2;
    request->wr_id = INLINE_ID(peer, report ? peer->unsignaled + 1u : 0u);
    request->send_flags = IBV_SEND_INLINE | (report ? IBV_SEND_SIGNALED : 0);
    error = ibv_post_send(peer->qp, request, &bad);
    if (OPAL_UNLIKELY(error != 0)) {
        room_give(peer, 1);
        return error == ENOMEM ? POST_FULL : POST_FAILED;
    }
    peer->unsignaled = (uint8_t) (report ? 0 : peer->unsignaled + 1);
    return POSTED;
}

int verbs_work_post_inline(verbs_peer_t *peer, struct ibv_sge *parts, int part_count,
                           mca_btl_base_tag_t tag)
{
    struct ibv_send_wr request;
    enum posting posting = POST_LATER;

    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_UNLIKELY(peer->state == PEER_IDLE))
        (void) verbs_connect_begin(peer);
    if (OPAL_LIKELY(peer->state == PEER_READY)) {
        request = (struct ibv_send_wr){
            .opcode = IBV_WR_SEND_WITH_IMM,
            .imm_data = htonl(MESSAGE_WORD(peer->their_index, tag)),
            .sg_list = parts,
            .num_sge = part_count,
        };
        posting = inline_post(peer, &request);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return posting_status(peer, posting);
}

bool verbs_work_post_write(verbs_peer_t *peer, const void *bytes, size_t length, uint64_t remote,
                           uint32_t key)
{
    struct ibv_sge part = {.addr = (uint64_t) (uintptr_t) bytes, .length = (uint32_t) length};
    struct ibv_send_wr request = {
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = remote, .rkey = key},
        .sg_list = &part,
        .num_sge = 1,
    };

    return inline_post(peer, &request) == POSTED;
}

/* --- completion --- */

/* With no lock held. */
void verbs_work_complete(struct verbs_work *work, int status)
{
    verbs_peer_t *peer = work->peer;
    mca_btl_base_module_t *btl = &peer->module->super;
    /* In the end those who would be called may not be there any more. */
    bool tell = !peer->module->finalized;

    if (work->kind == WORK_SEND) {
        bool ours = (work->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;

        if (tell && work->base.des_cbfunc)
            work->base.des_cbfunc(btl, peer, &work->base, status);
        if (ours)
            verbs_send_free(btl, &work->base);
        return;
    }
    if (tell && work->callback)
        work->callback(btl, peer, work->local, work->local_handle, work->context, work->data,
                       status);
    opal_free_list_return(work->list, &work->base.super);
}

static const char *kind_in_words(uint8_t kind)
{
    static const char *const names[] = {[WORK_SEND] = "a message",
                                        [WORK_PUT] = "a put",
                                        [WORK_GET] = "a get",
                                        [WORK_FETCH_ADD] = "an atomic addition",
                                        [WORK_SWAP_IF] = "an atomic comparison"};

    return names[kind];
}

static __attribute__((noinline)) void work_broken(verbs_peer_t *peer, const struct ibv_wc *wc,
                                                  const char *what)
{
    char why[192];

    /* The completion of a queue pair that is gone says nothing of the one that is there now. One
     * that came back unsent need not be preceded by one that says why: the device may report only
     * what asked to be. */
    if (wc->qp_num != atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        return;
    snprintf(why, sizeof(why), "%s ended with status %d (%s)", what, (int) wc->status,
             ibv_wc_status_str(wc->status));
    verbs_peer_fail_pair(peer, wc->qp_num, why);
}

static void inline_reported(const struct ibv_wc *wc)
{
    verbs_peer_t *peer = INLINE_ID_PEER(wc->wr_id);
    uint32_t frees = INLINE_ID_FREES(wc->wr_id);

    if (OPAL_UNLIKELY(wc->status != IBV_WC_SUCCESS))
        work_broken(peer, wc, "a message");
    OPAL_THREAD_LOCK(&peer->lock);
    if (wc->qp_num == atomic_load_explicit(&peer->qpn, memory_order_relaxed))
        room_give(peer, frees);
    if (!opal_list_is_empty(&peer->pending))
        verbs_work_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

void verbs_completion_handle(struct verbs_module *module, const struct ibv_wc *wc)
{
    struct verbs_work *work;
    verbs_peer_t *peer;
    bool good = wc->status == IBV_WC_SUCCESS;

    if ((wc->wr_id & 3) == GREETING_ID_MARK) {
        verbs_greeting_sent(module, GREETING_ID_INDEX(wc->wr_id));
        return;
    }
    if ((wc->wr_id & INLINE_ID_MARK) != 0) {
        inline_reported(wc);
        return;
    }
    work = (struct verbs_work *) (uintptr_t) wc->wr_id;
    peer = work->peer;
    OPAL_THREAD_LOCK(&peer->lock);
    peer->outstanding--;
    /* Of a broken connection too, as it may never be made anew. What it posted after its last
     * report keeps places until then, but none where they are scarce (inline_post). */
    room_give(peer, work->frees);
    if (!opal_list_is_empty(&peer->pending) && peer->state == PEER_READY)
        verbs_work_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(!good))
        work_broken(peer, wc, kind_in_words(work->kind));
    verbs_work_complete(work, good ? OPAL_SUCCESS : OPAL_ERR_UNREACH);
}

/* --- what waits --- */

static verbs_peer_t *waiting_take(struct verbs_module *module)
{
    verbs_peer_t *peer = NULL;

    opal_mutex_lock(&module->waiting_lock);
    {
        uint32_t count = atomic_load_explicit(&module->waiting_count, memory_order_relaxed);

        if (count > 0) {
            peer = module->waiting[0];
            memmove(module->waiting, module->waiting + 1, (count - 1) * sizeof(peer));
            atomic_store_explicit(&module->waiting_count, count - 1, memory_order_relaxed);
        }
    }
    opal_mutex_unlock(&module->waiting_lock);
    return peer;
}

/* Posts what there is room for; the rest is tried again when a completion gives room. */
static int peer_post_pending(verbs_peer_t *peer)
{
    enum posting posting = POSTED;
    int events = 0;

    OPAL_THREAD_LOCK(&peer->lock);
    peer->queued = false;
    while (peer->state == PEER_READY && !opal_list_is_empty(&peer->pending)) {
        struct verbs_work *work = (struct verbs_work *) opal_list_get_first(&peer->pending);

        /* Off the list first: once it is posted its completion may end it. */
        opal_list_remove_item(&peer->pending, (opal_list_item_t *) work);
        posting = work_post(peer, work);
        if (posting != POSTED) {
            opal_list_prepend(&peer->pending, (opal_list_item_t *) work);
            break;
        }
        events++;
    }
    /* Room in the queue pair comes by its own completions; room in the completion queue, or in the
     * device, may come by those of others. */
    if (posting == POST_FULL && peer->outstanding == 0)
        verbs_work_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue takes nothing any more");
    return events;
}

int verbs_work_post_pending(struct verbs_module *module)
{
    uint32_t peers = atomic_load_explicit(&module->waiting_count, memory_order_relaxed);
    int events = 0;

    while (peers-- > 0) {
        verbs_peer_t *peer = waiting_take(module);

        if (!peer)
            break;
        events += peer_post_pending(peer);
    }
    return events;
}

void verbs_work_fail_pending(verbs_peer_t *peer)
{
    struct verbs_work *work;

    do {
        OPAL_THREAD_LOCK(&peer->lock);
        work = (struct verbs_work *) opal_list_remove_first(&peer->pending);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (work)
            verbs_work_complete(work, OPAL_ERR_UNREACH);
    } while (work);
}
