/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of the send queues. */
#include "btl/verbs/verbs.h"

#include <stdio.h>

#define BATCH 16

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

    /* Ignore completions of a replaced queue pair. A work that was flushed does not always follow
     * one that says why: the device may report only signaled works. */
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
    if (wc->qp_num == atomic_load_explicit(&peer->qpn, memory_order_relaxed)) {
        verbs_queue_room_give(peer, frees);
        if (frees != 0) /* the device also reports what did not ask for it, once it is broken */
            verbs_queue_reported(peer, 1);
    }
    verbs_queue_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

void verbs_work_completed(struct verbs_module *module, const struct ibv_wc *wc)
{
    bool good = wc->status == IBV_WC_SUCCESS;

    if ((wc->wr_id & 3) == GREETING_ID_MARK) {
        verbs_greeting_sent(module, GREETING_ID_INDEX(wc->wr_id), good);
        return;
    }
    if ((wc->wr_id & INLINE_ID_MARK) != 0) {
        inline_reported(wc);
        return;
    }
    struct verbs_work *work = (struct verbs_work *) (uintptr_t) wc->wr_id;
    verbs_peer_t *peer = work->peer;
    OPAL_THREAD_LOCK(&peer->lock);
    opal_list_remove_item(&peer->posted, (opal_list_item_t *) work);
    verbs_queue_ended(peer, work);
    verbs_queue_reported(peer, 1);
    /* The other end's word counts for more: its device may have died behind the acknowledgement. */
    bool lost = !good || (work->number > peer->returns.arrived && work->kind == WORK_SEND);
    bool kept = OPAL_UNLIKELY(lost) && verbs_returns_keep(peer, work);
    if (good && !kept && work->kind == WORK_SEND)
        peer->returns.reported = work->number;
    if (OPAL_UNLIKELY(verbs_peer_state(peer) == PEER_FAILED))
        verbs_returns_look(peer);
    else if (!opal_list_is_empty(&peer->pending) && verbs_peer_state(peer) == PEER_READY)
        verbs_queue_wake(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (OPAL_UNLIKELY(!good))
        work_broken(peer, wc, kind_in_words(work->kind));
    if (OPAL_LIKELY(!kept))
        verbs_work_complete(work, good ? OPAL_SUCCESS : OPAL_ERR_UNREACH);
}

int verbs_completions_poll(struct verbs_module *module)
{
    struct ibv_wc completions[BATCH];
    int count = ibv_poll_cq(module->send_cq, BATCH, completions);

    for (int i = 0; i < count; i++)
        verbs_work_completed(module, &completions[i]);
    return count < 0 ? 0 : count;
}
