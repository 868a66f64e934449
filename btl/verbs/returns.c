/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a broken connection has not brought to the other end go back to who sent them. Both
 * ends count the messages of a connection, which come in the order in which they were posted; so
 * the other end's count says which have come (fence.c). What the device has reported as sent is not
 * kept any longer: the other device has it, and the other process will poll it. */
#include "btl/verbs/verbs.h"

#include <stdio.h>

void verbs_returns_look(verbs_peer_t *peer)
{
    /* Relaxed: the peer's lock orders what it is about. */
    atomic_store_explicit(&peer->module->returns_due, true, memory_order_relaxed);
}

void verbs_return_to(mca_btl_base_module_t *btl, verbs_peer_t *peer, multilane_returned returned,
                     void *context)
{
    OPAL_THREAD_LOCK(&peer->lock);
    peer->returns.context = context;
    atomic_store_explicit(&peer->returned, returned, memory_order_relaxed);
    verbs_returns_look(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
}

/* Under the peer's lock. */
static bool is_idle(const verbs_peer_t *peer)
{
    return peer->outstanding == 0 && opal_list_is_empty((opal_list_t *) &peer->pending);
}

bool verbs_peer_is_quiet(verbs_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool is_quiet = verbs_peer_state(peer) == PEER_FAILED || is_idle(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    return is_quiet;
}

void verbs_returns_given(verbs_peer_t *peer)
{
    if (is_idle(peer))
        peer->moved_ms = verbs_now_ms();
}

uint64_t verbs_quiet_ms(mca_btl_base_module_t *btl, verbs_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    uint64_t ms = is_idle(peer) ? 0 : verbs_now_ms() - peer->moved_ms;
    OPAL_THREAD_UNLOCK(&peer->lock);
    return ms;
}

void verbs_returns_begin(verbs_peer_t *peer)
{
    peer->sent = peer->returns.reported = 0;
    atomic_store_explicit(&peer->received, 0, memory_order_relaxed);
    peer->returns.arrived = COUNT_UNKNOWN;
    peer->returns.told = false;
    peer->returns.qpn = atomic_load_explicit(&peer->qpn, memory_order_relaxed);
}

bool verbs_returns_keep(verbs_peer_t *peer, struct verbs_work *work)
{
    if (!verbs_work_is_kept(work))
        return false;
    opal_list_append(&peer->returns.unreturned, (opal_list_item_t *) work);
    verbs_returns_look(peer);
    return true;
}

bool verbs_returns_wait(verbs_peer_t *peer)
{
    return peer->returns.busy || !opal_list_is_empty(&peer->returns.unreturned) ||
           !opal_list_is_empty(&peer->pending);
}

void verbs_returns_learn(verbs_peer_t *peer, uint64_t count)
{
    struct verbs_returns *returns = &peer->returns;

    if (returns->arrived != COUNT_UNKNOWN || count == COUNT_UNKNOWN)
        return;
    returns->arrived = count > peer->sent ? COUNT_FALSE : count;
    verbs_returns_look(peer);
    if (atomic_load_explicit(&peer->returned, memory_order_relaxed) == NULL)
        return;
    if (count > peer->sent)
        VERBS_SAY("process %s does not know how many of %llu messages by %s have come: those that "
                  "may not have end with an error.",
                  OPAL_NAME_PRINT(peer->name), (unsigned long long) peer->sent,
                  peer->module->device);
    else if (count < returns->reported)
        returns->lost = returns->reported - count;
}

/* Later messages of ours wait there for the lost ones. */
static void loss_tell(verbs_peer_t *peer)
{
    struct verbs_module *module = peer->module;
    char why[200];

    OPAL_THREAD_LOCK(&peer->lock);
    uint64_t lost = peer->returns.lost;
    peer->returns.lost = 0;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (lost == 0 || module->finalized)
        return;
    snprintf(why, sizeof(why),
             "%llu messages by %s are lost: the device has reported them as sent, and they have "
             "not come",
             (unsigned long long) lost, module->device);
    lane_messages_lost(&module->super, peer->proc, why);
}

/* Under peer->lock. The oldest message, once its fate is known. What was never posted follows what
 * was, so it waits for the last report. */
static struct verbs_work *next_take(verbs_peer_t *peer)
{
    struct verbs_returns *returns = &peer->returns;
    opal_list_t *from =
        opal_list_is_empty(&returns->unreturned) ? &peer->pending : &returns->unreturned;
    bool keeps = atomic_load_explicit(&peer->returned, memory_order_relaxed) != NULL;
    bool waits = peer->outstanding != 0 ||
                 (from == &returns->unreturned && returns->arrived == COUNT_UNKNOWN);

    if (verbs_peer_state(peer) != PEER_FAILED || (keeps && waits))
        return NULL;
    return (struct verbs_work *) opal_list_remove_first(from);
}

/* How it ends. With a false count any of those posted may have come: to return it could deliver it
 * twice, and to call it sent could lose it in silence. */
static int work_return(const struct verbs_work *work, uint64_t arrived, multilane_returned returned,
                       void *context)
{
    bool was_posted = work->number != 0;

    if (!returned || work->peer->module->finalized || (was_posted && arrived == COUNT_FALSE))
        return OPAL_ERR_UNREACH;
    if (was_posted && work->number <= arrived) /* it came, and the report did not */
        return OPAL_SUCCESS;
    return returned(context, work->tag, work->segments[0].seg_addr.pval, work->segments[0].seg_len,
                    work->size == 0 ? NULL : work->request.local, work->size)
               ? OPAL_SUCCESS
               : OPAL_ERR_UNREACH;
}

int verbs_returns_make(verbs_peer_t *peer)
{
    struct verbs_work *work;

    loss_tell(peer);
    for (int events = 0;; events++) {
        OPAL_THREAD_LOCK(&peer->lock);
        work = next_take(peer);
        peer->returns.busy = work != NULL;
        uint64_t arrived = peer->returns.arrived;
        void *context = peer->returns.context;
        multilane_returned returned = atomic_load_explicit(&peer->returned, memory_order_relaxed);
        OPAL_THREAD_UNLOCK(&peer->lock);
        if (!work)
            return events;
        verbs_work_complete(work, work_return(work, arrived, returned, context));
    }
}

int verbs_returns_make_all(struct verbs_module *module)
{
    verbs_peer_t *peer;
    int events = 0;

    /* What becomes ready from here on sets it again. */
    atomic_store_explicit(&module->returns_due, false, memory_order_relaxed);
    for (uint32_t i = 0; (peer = verbs_peer_at(module, i)); i++)
        events += verbs_returns_make(peer);
    return events;
}
