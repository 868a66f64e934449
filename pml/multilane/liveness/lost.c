/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends what waits for a lost peer; and the losses that the progress thread finds. */
#include "liveness/liveness.h"

#include <stdlib.h>
#include <string.h>

#include "base/pending.h"
#include "base/protocol.h"
#include "join/posting.h"
#include "request/recv_request.h"
#include "request/send_request.h"
#include "lane/lane.h"

/* Adds receives that wait for the peer to a list, linked by `next`. */
static void posted_take(struct mca_pml_comm_t *comm, const struct peer *peer,
                        struct match_node **taken)
{
    biased_lock(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask; i++) {
        struct match_node *head = comm->posted.buckets[i];
        while (head) {
            if (!comm_has(comm, head->source, peer)) {
                head = head->next_head;
                continue;
            }
            match_remove(&comm->posted, head);
            recv_request_of_node(head)->matched = true;
            head->next = *taken;
            *taken = head;
            head = comm->posted.buckets[i];
        }
    }
    biased_unlock(&comm->lock);
}

static void posted_end(const struct peer *peer)
{
    struct match_node *taken = NULL;
    multilane_lock();
    for (struct mca_pml_comm_t *comm = comm_next(NULL); comm; comm = comm_next(comm))
        posted_take(comm, peer, &taken);
    multilane_unlock();
    while (taken) {
        struct match_node *node = taken;
        taken = node->next;
        recv_request_fail(recv_request_of_node(node), COMPAT_ERR_PROC_FAILED);
    }
}

/* Ends sends with an RTS out and receives with an RTR out. */
static void handles_end(struct peer *peer)
{
    struct send_request *send;
    struct recv_request *receive;
    struct wire_handle handle;
    uint32_t at = 0;
    while ((send = handle_next(&multilane.handles, HANDLE_SEND, &at, &handle)))
        if (send->out.peer == peer)
            send_request_lost(send, handle);
    at = 0;
    while ((receive = handle_next(&multilane.handles, HANDLE_RECEIVE, &at, &handle)))
        if (recv_request_peer(receive) == peer)
            recv_request_lost(receive, handle);
}

void gone_send(struct lane *lane)
{
    if (lane_sends(lane) && lane_state(lane) != LANE_BROKEN)
        control_send_bare(lane, WIRE_GONE, NULL,
                          0); /* without room now: sent when the peer asks again */
}

/* From progress: no lock is held, and user requests may end. */
static int lost_end(struct pending *pending)
{
    struct peer *peer = (struct peer *) ((char *) pending - offsetof(struct peer, lost_pending));
    for (int i = 0; i < peer_lane_count(peer); i++)
        gone_send(&peer->lanes[i]);
    posted_end(peer);
    handles_end(peer);
    sent_fragments_lost(peer);
    for (int i = 0; i < peer_lane_count(peer); i++) {
        lane_return_none(&peer->lanes[i]); /* it keeps nothing for another one */
        lane_close(&peer->lanes[i]);
    }
    assemblies_lost(peer);
    send_queue_lost(peer);
    return OMPI_SUCCESS;
}

bool lost_would_be_returned(struct peer *peer)
{
    bool wants_errors = false;
    multilane_lock();
    for (const struct mca_pml_comm_t *comm = comm_next(NULL); comm && !wants_errors;
         comm = comm_next(comm))
        wants_errors = !compat_comm_errors_end_job(comm->ompi) && comm_has(comm, MATCH_ANY, peer);
    multilane_unlock();
    return wants_errors;
}

bool lost_is_returned(struct peer *peer)
{
    if (peer_is_lost(peer))
        return true;
    if (!lost_would_be_returned(peer))
        return false;
    if (atomic_exchange_explicit(&peer->lost, true, memory_order_relaxed)) /* peer_is_lost */
        return true;
    atomic_fetch_add_explicit(&multilane.lost_peers, 1, memory_order_relaxed); /* comm_lost */
    peer_reach(peer, false);
    peer->lost_pending.retry = lost_end;
    pending_add(&peer->lost_pending);
    return true;
}

/* --- losses that the progress thread finds ---------------------------------------------------- */

/* One loss to report. */
struct report {
    struct pending pending;
    loss_function lost;
    ompi_proc_t *proc; /* retained, or null */
    char sentence[];
};

_Thread_local bool is_progress_thread;

static int report_deliver(struct pending *pending)
{
    struct report *report = (struct report *) pending;
    if (is_progress_thread)
        return LANE_AGAIN;
    if (!pending_queue.is_closed)
        report->lost(report->proc, report->sentence);
    if (report->proc)
        OBJ_RELEASE(report->proc);
    free(report);
    return OMPI_SUCCESS;
}

bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence)
{
    if (OPAL_LIKELY(!is_progress_thread))
        return false;
    struct report *report = malloc(sizeof(*report) + strlen(sentence) + 1);
    if (!report)
        return false;
    *report = (struct report){
        .pending = {.retry = report_deliver, .frees_itself = true}, .lost = lost, .proc = proc};
    strcpy(report->sentence, sentence);
    if (proc)
        OBJ_RETAIN(proc);
    pending_add(&report->pending);
    return true;
}
