/* SPDX-License-Identifier: BSD-3-Clause */
/* From the requests of a wait to other ranks, and what can still come over these edges. */
#include "tools/top/edges.h"

#include "common/model/flow.h"

bool page_comm_is(const struct page_comm *one, const struct page_comm *other)
{
    return one->id[0] == other->id[0] && one->id[1] == other->id[1] && one->size == other->size &&
           page_process_is(&one->first, &other->first);
}

struct words rank_name(const struct ranks *ranks, const struct page_process *name)
{
    return ranks_have_jobs(ranks) ? words_of("rank %u of job %u", name->rank, name->job)
                                  : words_of("rank %u", name->rank);
}

/* --- one edge --------------------------------------------------------------------------------- */

static const struct page *page_at(const struct ranks *ranks, int index)
{
    return &ranks->list[index].second.page;
}

static const struct page_peer *row_of(const struct page *page, const struct page *other)
{
    return page_peer_of(page, &other->me);
}

/* Has anything moved between the two, from one look to the other? */
static bool has_moved(const struct ranks *ranks, const struct edge *edge)
{
    const struct rank *rank = &ranks->list[edge->from];
    const struct page *other = page_at(ranks, edge->to);
    const struct page_peer *then = row_of(&rank->first.page, other);
    const struct page_peer *now = row_of(&rank->second.page, other);
    if (!now || !then)
        return now != then;
    return now->sent != then->sent || now->received != then->received ||
           now->early != then->early || now->queued_bytes != then->queued_bytes ||
           now->waiting != then->waiting;
}

/* How many bytes were left at the first look? UINT64_MAX: it has no such request. */
static uint64_t left_then(const struct page *page, const struct page_request *row)
{
    for (uint32_t i = 0; i < page->wait_count; i++)
        for (uint32_t j = 0; j < page->waits[i].row_count; j++) {
            const struct page_request *old = &page->waits[i].rows[j];
            if (old->tag == row->tag && old->rank == row->rank && old->kind == row->kind &&
                old->bytes == row->bytes && page_comm_is(&old->comm, &row->comm))
                return old->left;
        }
    return UINT64_MAX;
}

/* Messages that the other rank had sent at the first look, and that had not come at the second. A
 * rank that makes no progress takes none, and what a lost lane carried is sent again. */
bool edge_has_lost(const struct ranks *ranks, const struct edge *edge, uint32_t *sent,
                   uint32_t *come)
{
    const struct rank *from = &ranks->list[edge->from], *to = &ranks->list[edge->to];
    const struct page_peer *ours = row_of(&from->second.page, &to->first.page);
    const struct page_peer *theirs = row_of(&to->first.page, &from->second.page);
    if (!theirs || from->second.page.refreshes - from->first.page.refreshes < 2)
        return false;
    *come = ours ? ours->received : 0;
    *sent = theirs->sent - theirs->waiting;
    return (int32_t) (*sent - *come) > 0 && theirs->unacknowledged == 0 &&
           theirs->queued_bytes == 0;
}

/* Is something on its way to the waiter that may have to be given some time? */
static bool is_on_its_way(const struct ranks *ranks, const struct edge *edge)
{
    const struct rank *from = &ranks->list[edge->from], *to = &ranks->list[edge->to];
    const struct page_peer *ours = row_of(&from->second.page, &to->second.page);
    const struct page_peer *theirs = row_of(&to->second.page, &from->second.page);
    uint32_t come = ours ? ours->received : 0, sent = 0, come_then;
    if (theirs)
        sent = theirs->sent - theirs->waiting;
    return (int32_t) (sent - come) > 0 && !edge_has_lost(ranks, edge, &sent, &come_then);
}

bool edge_can_come(const struct ranks *ranks, const struct standing *standing,
                   const struct edge *edge)
{
    if (edge->is_any) {
        for (size_t i = 0; i < ranks->count; i++)
            if ((int) i != edge->from && standing->goes_on[i])
                return true;
        return page_at(ranks, edge->from)->job_size > ranks->count; /* others are not seen */
    }
    if (edge->to < 0)
        return true; /* it is not seen */
    uint64_t left = left_then(&ranks->list[edge->from].first.page, edge->row);
    return standing->goes_on[edge->to] || has_moved(ranks, edge) || is_on_its_way(ranks, edge) ||
           (left != UINT64_MAX && left != edge->row->left);
}

enum mismatch edge_mismatch(const struct page_request *row, const struct page_message *message)
{
    bool is_receive = row->kind == PAGE_RECEIVE || row->kind == PAGE_PROBING;
    bool is_sender = row->peer.rank == PAGE_ANY_RANK || page_process_is(&row->peer, &message->peer);
    if (!is_receive || !is_sender || row->collective || message->collective)
        return MISMATCH_NONE;
    bool tag = row->tag == PAGE_ANY || row->tag == message->tag;
    if (page_comm_is(&row->comm, &message->comm))
        return tag ? MISMATCH_NONE : MISMATCH_TAG;
    return tag ? MISMATCH_COMM : MISMATCH_NONE;
}

bool edge_is_unexpected(const struct page *receiver, const struct page *sender,
                        const struct page_request *row)
{
    if (row->stage == PAGE_ANNOUNCED)
        return true;
    for (uint32_t i = 0; i < receiver->unexpected_count; i++) {
        const struct page_message *message = &receiver->unexpected[i];
        if (page_process_is(&message->peer, &sender->me) && message->tag == row->tag &&
            page_comm_is(&message->comm, &row->comm))
            return true;
    }
    return false;
}

bool edge_lacks_credit(const struct rank *receiver, const struct rank *sender,
                       const struct page_request *row)
{
    const struct page_peer *theirs = row_of(&receiver->second.page, &sender->second.page);
    const struct page_peer *ours = row_of(&sender->second.page, &receiver->second.page);
    uint32_t cost = flow_cost(row->bytes < UINT32_MAX ? row->bytes : UINT32_MAX);
    if (row->stage == PAGE_NO_CREDIT)
        return true;
    return row->stage == PAGE_ANNOUNCED && ours && theirs && theirs->kept >= cost &&
           ours->credit < (int32_t) cost;
}

bool rank_only_sends(const struct rank *rank, enum activity activity)
{
    const struct page *page = &rank->second.page;
    if (!activity_waits(activity))
        return false;
    for (uint32_t i = 0; i < page->wait_count; i++)
        for (uint32_t j = 0; j < page->waits[i].row_count; j++)
            if (page->waits[i].rows[j].kind != PAGE_SENDING)
                return false;
    return true;
}

/* --- the edges of a rank ---------------------------------------------------------------------- */

/* The next edge of the request. A nonblocking collective waits for the receives that it has posted.
 */
static bool edge_of_row(const struct ranks *ranks, const struct page *page, struct edge *edge)
{
    const struct page_request *row = edge->row;
    if (row->kind != PAGE_OTHER) {
        edge->is_any = row->peer.rank == PAGE_ANY_RANK && row->rank == PAGE_ANY;
        edge->to = edge->is_any ? -1 : ranks_find(ranks, &row->peer);
        return edge->part++ == 0;
    }
    edge->is_any = false;
    while (edge->part < page->posted_count) {
        const struct page_message *posted = &page->posted[edge->part++];
        edge->to = ranks_find(ranks, &posted->peer);
        if (posted->collective == PAGE_NONBLOCKING && page_comm_is(&posted->comm, &row->comm))
            return true;
    }
    return false;
}

bool edge_next(const struct ranks *ranks, struct edge *edge)
{
    const struct page *page = page_at(ranks, edge->from);
    for (; edge->wait < page->wait_count; edge->wait++, edge->index = 0)
        for (; edge->index < page->waits[edge->wait].row_count; edge->index++, edge->part = 0) {
            edge->row = &page->waits[edge->wait].rows[edge->index];
            if (edge_of_row(ranks, page, edge))
                return true;
        }
    return false;
}

/* Can this wait end? Waits for any of several requests end with the first. */
static bool wait_can_end(const struct ranks *ranks, const struct standing *standing, int from,
                         uint32_t index)
{
    const struct page_wait *wait = &page_at(ranks, from)->waits[index];
    struct edge edge = {.from = from, .wait = index};
    bool is_known = false, all = true, any = false;
    while (edge_next(ranks, &edge) && edge.wait == index) {
        bool comes = edge_can_come(ranks, standing, &edge);
        is_known = true;
        all = all && comes;
        any = any || comes;
    }
    if (!is_known)
        return true;
    return wait->call == PAGE_WAITANY || wait->call == PAGE_WAITSOME
               ? any || wait->outstanding > wait->row_count
               : all;
}

static bool can_go_on(const struct ranks *ranks, const struct standing *standing, int index)
{
    const struct page *page = page_at(ranks, index);
    for (uint32_t i = 0; i < page->wait_count; i++)
        if (page->waits[i].call != PAGE_FINALIZE && wait_can_end(ranks, standing, index, i))
            return true;
    /* Another thread may be what the others wait for. */
    return (page->flags & PAGE_HAS_THREADS) &&
           ranks->list[index].second.running > page->wait_count &&
           ranks->list[index].first.running > page->wait_count;
}

void edges_settle(const struct ranks *ranks, struct standing *standing)
{
    bool changed = true;
    for (size_t i = 0; i < ranks->count; i++)
        standing->goes_on[i] = standing->activities[i] <= ACTIVITY_IN_MPI;
    /* In turn from both ends: ranks often wait for the next one, or for the one before. */
    for (bool up = true; changed; up = !up) {
        changed = false;
        for (size_t i = 0; i < ranks->count; i++) {
            size_t rank = up ? i : ranks->count - 1 - i;
            if (!activity_waits(standing->activities[rank]) || standing->goes_on[rank] ||
                !can_go_on(ranks, standing, (int) rank))
                continue;
            standing->goes_on[rank] = changed = true;
        }
    }
}

uint32_t rank_targets(const struct ranks *ranks, int rank, int *targets, uint32_t most)
{
    uint32_t count = 0, same;
    for (struct edge edge = {.from = rank}; count < most && edge_next(ranks, &edge);) {
        for (same = 0; same < count && targets[same] != edge.to; same++)
            ;
        if (edge.to >= 0 && same == count)
            targets[count++] = edge.to;
    }
    return count;
}
