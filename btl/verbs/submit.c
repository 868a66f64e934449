/* SPDX-License-Identifier: BSD-3-Clause */
/* Submits works to a send queue; the first one makes the connection. */
#include "btl/verbs/verbs.h"

#include <arpa/inet.h>

/* The status of a send-immediate. With no lock held. */
static int posting_status(verbs_peer_t *peer, enum verbs_posting posting)
{
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue accepts no more works");
    return posting == POSTED      ? OPAL_SUCCESS
           : posting == POST_FULL ? OPAL_ERR_RESOURCE_BUSY
                                  : OPAL_ERR_OUT_OF_RESOURCE;
}

int verbs_submit_now(verbs_peer_t *peer, struct verbs_work *work)
{
    enum verbs_posting posting = POST_LATER;

    work->peer = peer;
    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_LIKELY(verbs_peer_state(peer) == PEER_READY) && opal_list_is_empty(&peer->pending))
        posting = verbs_queue_post(peer, work);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return posting_status(peer, posting);
}

/* Under peer->lock. Who sent it knows no other lane, but the PML does, which it returns to. */
static bool will_return(const verbs_peer_t *peer, const struct verbs_work *work)
{
    return verbs_peer_state(peer) == PEER_FAILED && verbs_work_is_kept(work) &&
           !multilane_tag_is_of_pml(work->tag);
}

/* Under peer->lock: what cannot be posted now, but later. */
static void work_wait(verbs_peer_t *peer, struct verbs_work *work)
{
    verbs_returns_given(peer);
    opal_list_append(&peer->pending, (opal_list_item_t *) work);
    if (verbs_peer_state(peer) == PEER_READY)
        verbs_queue_wake(peer);
    if (verbs_peer_state(peer) == PEER_FAILED)
        verbs_returns_look(peer);
}

int verbs_submit(verbs_peer_t *peer, struct verbs_work *work)
{
    enum verbs_posting posting = POST_LATER;
    int status = OPAL_SUCCESS;

    work->peer = peer;
    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_LIKELY(verbs_peer_state(peer) == PEER_READY) && opal_list_is_empty(&peer->pending))
        posting = verbs_queue_post(peer, work);
    if (posting != POSTED) {
        if ((verbs_peer_state(peer) == PEER_FAILED && !will_return(peer, work)) ||
            (verbs_peer_state(peer) == PEER_IDLE && !verbs_connect_begin(peer)) ||
            posting == POST_FAILED)
            status = OPAL_ERR_UNREACH;
        else
            work_wait(peer, work);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue accepts no more works");
    return status;
}

int verbs_submit_inline(verbs_peer_t *peer, struct ibv_sge *parts, int part_count,
                        mca_btl_base_tag_t tag)
{
    struct ibv_send_wr request;
    enum verbs_posting posting = POST_LATER;

    OPAL_THREAD_LOCK(&peer->lock);
    if (OPAL_UNLIKELY(verbs_peer_state(peer) == PEER_IDLE))
        (void) verbs_connect_begin(peer);
    if (OPAL_LIKELY(verbs_peer_state(peer) == PEER_READY)) {
        request = (struct ibv_send_wr){
            .opcode = IBV_WR_SEND_WITH_IMM,
            .imm_data = htonl(MESSAGE_WORD(peer->their_index, tag)),
            .sg_list = parts,
            .num_sge = part_count,
        };
        posting = verbs_queue_post_inline(peer, &request);
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return posting_status(peer, posting);
}

int verbs_submit_operation(verbs_peer_t *peer, struct verbs_work *work)
{
    int status;

    if (!work)
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    status = verbs_submit(peer, work);
    if (status != OPAL_SUCCESS)
        opal_free_list_return(work->list, &work->base.super);
    return status;
}

/* --- what waits --- */

/* Posts as many works as fit; a later completion gives room for the others. */
static int peer_post_pending(verbs_peer_t *peer)
{
    enum verbs_posting posting = POSTED;
    int events = 0;

    OPAL_THREAD_LOCK(&peer->lock);
    while (verbs_peer_state(peer) == PEER_READY && !opal_list_is_empty(&peer->pending)) {
        struct verbs_work *work = (struct verbs_work *) opal_list_get_first(&peer->pending);

        /* Off the list first: a completion may end it as soon as it is posted. */
        opal_list_remove_item(&peer->pending, (opal_list_item_t *) work);
        posting = verbs_queue_post(peer, work);
        if (posting != POSTED) {
            opal_list_prepend(&peer->pending, (opal_list_item_t *) work);
            break;
        }
        events++;
    }
    /* Completions of this peer give room in its queue pair. Room in the completion queue, or in the
     * device, may come with completions of other peers. */
    if (posting == POST_FULL && peer->outstanding == 0)
        verbs_queue_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(posting == POST_FAILED))
        verbs_peer_fail(peer, "its send queue accepts no more works");
    return events;
}

int verbs_submit_waiting(struct verbs_module *module)
{
    uint32_t peers = peer_list_count(&module->waiting);
    int events = 0;

    while (peers-- > 0) {
        verbs_peer_t *peer = peer_list_take(&module->waiting);

        if (!peer)
            break;
        events += peer_post_pending(peer);
    }
    return events;
}
