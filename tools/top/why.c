/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks can go on, and the causes where some cannot. */
#include "tools/top/why.h"

#include <stdlib.h>
#include <string.h>

const char *cause_name(enum cause_kind kind)
{
    static const char *const names[CAUSES] = {
        [CAUSE_STOPPED] = "stopped",
        [CAUSE_GONE] = "gone",
        [CAUSE_LOST_MESSAGE] = "lost-message",
        [CAUSE_WRONG_TAG] = "wrong-tag",
        [CAUSE_WRONG_COMM] = "wrong-communicator",
        [CAUSE_NO_CREDIT] = "no-credit",
        [CAUSE_NO_RECEIVE] = "no-receive",
        [CAUSE_COLLECTIVES] = "collectives",
        [CAUSE_LEFT] = "left",
        [CAUSE_CYCLE] = "cycle",
        [CAUSE_NO_SENDER] = "no-sender",
        [CAUSE_STUCK] = "stuck",
        [CAUSE_COMPUTES] = "computes",
        [CAUSE_SLEEPS] = "sleeps",
        [CAUSE_SWAPPED] = "swapped",
        [CAUSE_LANE_DOWN] = "lane-down",
    };
    return kind < CAUSES ? names[kind] : "";
}

/* --- causes ----------------------------------------------------------------------------------- */

struct search {
    const struct ranks *ranks;
    struct why *why;
    struct cause unused;
    size_t *left_by; /* the walk that has left this rank, from 1; 0: none yet */
};

static const struct rank *rank_at(const struct search *search, int index)
{
    return &search->ranks->list[index];
}

/* A new cause that names this rank first; where there is one already, or no room, one that no
 * report has. */
static struct cause *cause_add(struct search *search, enum cause_kind kind, int culprit)
{
    struct why *why = search->why;
    struct cause *cause = why->cause_count < WHY_CAUSES ? &why->causes[why->cause_count] : NULL;
    for (uint32_t i = 0; i < why->cause_count; i++)
        if (why->causes[i].kind == kind && why->causes[i].ranks[0] == culprit)
            cause = NULL;
    why->cause_count += cause != NULL;
    cause = cause ? cause : &search->unused;
    memset(cause, 0, sizeof(*cause));
    cause->kind = kind;
    cause->ranks[cause->rank_count++] = culprit;
    return cause;
}

static void cause_name_rank(struct cause *cause, int rank)
{
    for (uint32_t i = 0; i < cause->rank_count; i++)
        if (cause->ranks[i] == rank)
            return;
    if (cause->rank_count < WHY_RANKS)
        cause->ranks[cause->rank_count++] = rank;
}

/* "rank 3 waits 41 s in MPI_Recv for ..." */
static void say_rank(struct search *search, struct cause *cause, int index)
{
    const struct rank *rank = rank_at(search, index);
    words_more(&cause->words, "%s %s", rank_name(search->ranks, &rank->second.page.me).text,
               rank_text(rank, search->why->standing.activities[index]).text);
}

static bool has_found(const struct why *why, enum cause_kind last)
{
    for (uint32_t i = 0; i < why->cause_count; i++)
        if (why->causes[i].kind <= last)
            return true;
    return false;
}

/* How many blocked ranks wait, by steps, for this one is not told: the tree shows it. */
static void blame_target(struct search *search, enum cause_kind kind, int culprit, int waiter)
{
    struct cause *cause = cause_add(search, kind, culprit);
    cause_name_rank(cause, waiter);
    say_rank(search, cause, culprit);
    if (kind == CAUSE_STOPPED)
        words_more(&cause->words, " (pid %d on %s)", rank_at(search, culprit)->pid,
                   rank_at(search, culprit)->second.page.host);
    words_more(&cause->words, kind == CAUSE_LEFT ? " and will send and receive no more; " : "; ");
    say_rank(search, cause, waiter);
}

/* What a receive waits for has come with another tag, or on another communicator. */
static void blame_mismatch(struct search *search, const struct edge *edge)
{
    const struct page *page = &rank_at(search, edge->from)->second.page;
    for (uint32_t i = 0; i < page->unexpected_count; i++) {
        const struct page_message *message = &page->unexpected[i];
        enum mismatch mismatch = edge_mismatch(edge->row, message);
        int sender = ranks_find(search->ranks, &message->peer);
        if (mismatch == MISMATCH_NONE || sender < 0)
            continue;
        struct cause *cause = cause_add(
            search, mismatch == MISMATCH_TAG ? CAUSE_WRONG_TAG : CAUSE_WRONG_COMM, edge->from);
        cause_name_rank(cause, sender);
        say_rank(search, cause, edge->from);
        words_more(
            &cause->words,
            "; but %s has sent it a message (tag %d, %s, %llu bytes) that no receive matches: "
            "the %s differ",
            rank_name(search->ranks, &message->peer).text, message->tag,
            page_comm_text(&message->comm).text, (unsigned long long) message->bytes,
            mismatch == MISMATCH_TAG ? "tags" : "communicators");
        return;
    }
}

/* A send whose receiver has no room, or has posted no receive. */
static void blame_receiver(struct search *search, const struct edge *edge)
{
    const struct rank *receiver = rank_at(search, edge->to);
    const struct page *sender = &rank_at(search, edge->from)->second.page;
    enum activity activity = search->why->standing.activities[edge->to];
    bool has_credit = !edge_lacks_credit(receiver, rank_at(search, edge->from), edge->row);
    if (has_credit && (!edge_is_unexpected(&receiver->second.page, sender, edge->row) ||
                       rank_only_sends(receiver, activity)))
        return;
    struct cause *cause =
        cause_add(search, has_credit ? CAUSE_NO_RECEIVE : CAUSE_NO_CREDIT, edge->to);
    const struct page_peer *row = page_peer_of(&receiver->second.page, &sender->me);
    cause_name_rank(cause, edge->from);
    say_rank(search, cause, edge->from);
    words_more(&cause->words, "; ");
    say_rank(search, cause, edge->to);
    if (has_credit)
        words_more(&cause->words, " and has posted no receive for that message");
    else
        words_more(
            &cause->words,
            " and has taken none of %llu KiB of messages from it, which is all that it promised to "
            "keep (pml_multilane_unexpected_max)",
            row ? (unsigned long long) row->kept * 64 / 1024 : 0ull);
}

static void blame_lost(struct search *search, const struct edge *edge)
{
    uint32_t sent, come;
    if (!edge_has_lost(search->ranks, edge, &sent, &come))
        return;
    struct cause *cause = cause_add(search, CAUSE_LOST_MESSAGE, edge->to);
    cause_name_rank(cause, edge->from);
    say_rank(search, cause, edge->from);
    words_more(
        &cause->words,
        "; %s has sent it %u messages, %u have come, and it makes progress: a lane between them "
        "has "
        "lost the next one, or is cut",
        rank_name(search->ranks, &edge->row->peer).text, sent, come);
}

static bool goes_on(const struct search *search, const struct edge *edge)
{
    const struct standing *standing = &search->why->standing;
    return standing->goes_on[edge->from] || edge_can_come(search->ranks, standing, edge);
}

/* What one blocked rank waits for, from another rank that cannot bring it. */
static void edge_blame(struct search *search, const struct edge *edge)
{
    if (edge->to >= 0 && search->why->standing.activities[edge->to] == ACTIVITY_STOPPED)
        blame_target(search, CAUSE_STOPPED, edge->to, edge->from);
    else if (edge->to >= 0 && search->why->standing.activities[edge->to] == ACTIVITY_GONE)
        blame_target(search, CAUSE_GONE, edge->to, edge->from);
    else if (edge->row->kind == PAGE_SENDING && edge->to >= 0)
        blame_receiver(search, edge);
    else
        blame_mismatch(search, edge);
    if (edge->to >= 0)
        blame_lost(search, edge);
}

static void edge_blame_left(struct search *search, const struct edge *edge)
{
    if (edge->to >= 0 && search->why->standing.activities[edge->to] == ACTIVITY_ENDS)
        blame_target(search, CAUSE_LEFT, edge->to, edge->from);
}

static void edge_blame_any(struct search *search, const struct edge *edge)
{
    if (edge->to >= 0)
        return;
    struct cause *cause = cause_add(search, CAUSE_NO_SENDER, edge->from);
    say_rank(search, cause, edge->from);
    words_more(&cause->words,
               "; no rank is left that could send it anything: all wait or have ended");
}

static void busy_blame(struct search *search, int rank, int waiter)
{
    enum activity activity = search->why->standing.activities[rank];
    if (activity == ACTIVITY_COMPUTES)
        blame_target(search, CAUSE_COMPUTES, rank, waiter);
    else if (activity == ACTIVITY_SLEEPS)
        blame_target(search, CAUSE_SLEEPS, rank, waiter);
    else if (activity == ACTIVITY_STUCK && search->why->standing.goes_on[rank])
        blame_target(search, CAUSE_STUCK, rank, waiter);
}

/* Computing and sleeping ranks that others wait for, where nothing else holds them up. A wait for
 * any rank, as the first step of a barrier, may wait for each of the job's. */
static void edge_blame_busy(struct search *search, const struct edge *edge)
{
    uint32_t job = rank_at(search, edge->from)->second.page.me.job;
    if (edge->to >= 0)
        busy_blame(search, edge->to, edge->from);
    for (size_t i = 0; edge->is_any && i < search->ranks->count; i++)
        if ((int) i != edge->from && rank_at(search, (int) i)->second.page.me.job == job)
            busy_blame(search, (int) i, edge->from);
}

/* --- collectives ------------------------------------------------------------------------------ */

/* The collective that a blocked rank is in, by its first request; null: none. */
static const struct page_request *collective_of(const struct search *search, size_t index)
{
    const struct page *page = &rank_at(search, (int) index)->second.page;
    if (search->why->standing.goes_on[index] || !page->wait_count || !page->waits[0].row_count)
        return NULL;
    const struct page_request *row = &page->waits[0].rows[0];
    bool is_blocking = row->collective && row->collective < PAGE_NONBLOCKING;
    return is_blocking ? row : NULL;
}

static bool is_in(const struct search *search, size_t index, const struct page_request *like)
{
    const struct page_request *row = collective_of(search, index);
    return row && row->collective == like->collective && page_comm_is(&row->comm, &like->comm);
}

static uint32_t how_many_in(const struct search *search, const struct page_request *like)
{
    uint32_t count = 0;
    for (size_t i = 0; i < search->ranks->count; i++)
        count += is_in(search, i, like);
    return count;
}

/* All ranks in this collective, as "ranks 0-2, 5". */
static void say_collective(struct search *search, struct cause *cause,
                           const struct page_request *like)
{
    const char *between = "rank ";
    for (size_t first = 0, next; first < search->ranks->count; first = next) {
        bool is_there = is_in(search, first, like);
        for (next = first + 1; next < search->ranks->count && is_in(search, next, like) == is_there;
             next++)
            ;
        if (!is_there)
            continue;
        words_more(&cause->words, "%s%u", between,
                   rank_at(search, (int) first)->second.page.me.rank);
        if (next > first + 1)
            words_more(&cause->words, "-%u", rank_at(search, (int) next - 1)->second.page.me.rank);
        between = ", ";
    }
    words_more(&cause->words, " in %s", page_collective_name(like->collective));
}

/* `row` is of a collective that fewer ranks of the communicator are in than `other`'s. */
static void collectives_blame(struct search *search, int culprit, const struct page_request *row,
                              const struct page_request *other)
{
    struct cause *cause = cause_add(search, CAUSE_COLLECTIVES, culprit);
    for (size_t i = 0; i < search->ranks->count; i++)
        if (is_in(search, i, row))
            cause_name_rank(cause, (int) i);
    words_more(&cause->words, "on %s ", page_comm_text(&row->comm).text);
    say_collective(search, cause, row);
    words_more(&cause->words, ", and ");
    say_collective(search, cause, other);
    words_more(&cause->words, ": all must call collectives in the same order");
}

/* Of two collectives on one communicator, which have the blocked ranks in different ones, the one
 * with fewer ranks is blamed. */
static void collectives_look(struct search *search)
{
    for (size_t i = 0; i < search->ranks->count; i++) {
        const struct page_request *row = collective_of(search, i);
        for (size_t j = i + 1; row && j < search->ranks->count; j++) {
            const struct page_request *other = collective_of(search, j);
            if (!other || other->collective == row->collective ||
                !page_comm_is(&row->comm, &other->comm))
                continue;
            bool is_first = how_many_in(search, row) < how_many_in(search, other);
            collectives_blame(search, (int) (is_first ? i : j), is_first ? row : other,
                              is_first ? other : row);
            return;
        }
    }
}

/* --- cycles ----------------------------------------------------------------------------------- */

/* What the page of a rank that has ended says of its waits is over. */
static bool is_blocked(const struct search *search, int rank)
{
    const struct standing *standing = &search->why->standing;
    return !standing->goes_on[rank] && activity_waits(standing->activities[rank]);
}

/* The next rank on the way from a blocked one to what blocks it; -1: none. */
static int next_blocked(const struct search *search, int rank)
{
    int targets[WHY_RANKS];
    uint32_t count = rank_targets(search->ranks, rank, targets, WHY_RANKS);
    for (uint32_t i = 0; i < count; i++)
        if (is_blocked(search, targets[i]))
            return targets[i];
    return -1;
}

static void cycle_say(struct search *search, int start)
{
    int lowest = start, length = 0;
    for (int at = next_blocked(search, start); at != start; at = next_blocked(search, at))
        lowest = at < lowest ? at : lowest;
    struct cause *cause = cause_add(search, CAUSE_CYCLE, lowest);
    words_more(&cause->words, "ranks wait for each other in a circle: ");
    int at = lowest;
    do {
        cause_name_rank(cause, at);
        if (length++ < 4) {
            words_more(&cause->words, "%s", length > 1 ? "; " : "");
            say_rank(search, cause, at);
        }
        at = next_blocked(search, at);
    } while (at != lowest);
    if (length > 4)
        words_more(&cause->words, "; and so on, %d ranks in all", length);
}

/* From each blocked rank along the first edge, until there is none, or one that a walk has left
 * before: was it this walk, there is a circle. */
static void cycles_look(struct search *search)
{
    size_t *left_by = search->left_by;
    for (size_t walk = 1; walk <= search->ranks->count; walk++) {
        int at = (int) walk - 1;
        while (at >= 0 && is_blocked(search, at) && !left_by[at]) {
            left_by[at] = walk;
            at = next_blocked(search, at);
        }
        if (at >= 0 && left_by[at] == walk)
            cycle_say(search, at);
    }
}

/* --- all -------------------------------------------------------------------------------------- */

static void troubles_look(struct search *search)
{
    for (size_t i = 0; i < search->ranks->count; i++) {
        const struct page *page = &rank_at(search, (int) i)->second.page;
        if (!page->trouble_count)
            continue;
        const struct page_trouble *trouble = &page->troubles[0];
        struct cause *cause = cause_add(search, CAUSE_LANE_DOWN, (int) i);
        words_more(&cause->words, "lane %s from %s to %s %s%s%s", trouble->lane,
                   rank_name(search->ranks, &page->me).text,
                   rank_name(search->ranks, &trouble->peer).text, page_trouble_name(trouble->kind),
                   trouble->why[0] ? ": " : "", trouble->why);
        if (page->trouble_count > 1)
            words_more(&cause->words, " (and %u more)", page->trouble_count - 1);
    }
}

static void swap_look(struct search *search)
{
    for (size_t i = 0; i < search->ranks->count; i++) {
        const struct rank *rank = rank_at(search, (int) i);
        bool swaps = rank->second.swapped_kb > 0 && rank->second.faults > rank->first.faults + 8;
        if (!swaps)
            continue;
        struct cause *cause = cause_add(search, CAUSE_SWAPPED, (int) i);
        say_rank(search, cause, (int) i);
        words_more(&cause->words, "; %llu MiB of it are in swap, and it reads them from there",
                   (unsigned long long) rank->second.swapped_kb / 1024);
    }
}

/* A stopped rank is told, also where none waits for it yet. */
static void stopped_look(struct search *search)
{
    for (size_t i = 0; i < search->ranks->count; i++) {
        if (search->why->standing.activities[i] == ACTIVITY_STOPPED)
            say_rank(search, cause_add(search, CAUSE_STOPPED, (int) i), (int) i);
    }
}

static int cause_compare(const void *one, const void *other)
{
    const struct cause *first = one, *second = other;
    return first->kind != second->kind ? (int) first->kind - (int) second->kind
                                       : first->ranks[0] - second->ranks[0];
}

/* All edges of ranks that wait; or those alone that bring nothing (`stuck`). */
static void edges_blame(struct search *search, bool stuck,
                        void (*blame)(struct search *search, const struct edge *edge))
{
    for (size_t i = 0; i < search->ranks->count; i++)
        for (struct edge edge = {.from = (int) i};
             activity_waits(search->why->standing.activities[i]) &&
             edge_next(search->ranks, &edge);)
            if (!stuck || !goes_on(search, &edge))
                blame(search, &edge);
}

static void causes_find(struct search *search)
{
    struct why *why = search->why;
    edges_blame(search, true, edge_blame);
    if (!has_found(why, CAUSE_NO_RECEIVE))
        collectives_look(search);
    if (!has_found(why, CAUSE_COLLECTIVES))
        edges_blame(search, true, edge_blame_left);
    if (!has_found(why, CAUSE_LEFT))
        cycles_look(search);
    if (!has_found(why, CAUSE_CYCLE))
        edges_blame(search, true, edge_blame_any);
    why->is_hang = has_found(why, CAUSE_NO_SENDER);
    stopped_look(search);
    edges_blame(search, false, edge_blame_busy);
    swap_look(search);
    troubles_look(search);
    qsort(why->causes, why->cause_count, sizeof(why->causes[0]), cause_compare);
}

bool why_find(const struct ranks *ranks, struct why *why)
{
    struct search search = {.ranks = ranks, .why = why};
    memset(why, 0, sizeof(*why));
    why->standing.activities = calloc(ranks->count + 1, sizeof(*why->standing.activities));
    why->standing.goes_on = calloc(ranks->count + 1, sizeof(*why->standing.goes_on));
    search.left_by = calloc(ranks->count + 1, sizeof(*search.left_by));
    if (!why->standing.activities || !why->standing.goes_on || !search.left_by) {
        free(search.left_by);
        why_free(why);
        return false;
    }
    for (size_t i = 0; i < ranks->count; i++)
        why->standing.activities[i] = rank_activity(&ranks->list[i]);
    edges_settle(ranks, &why->standing);
    for (size_t i = 0; i < ranks->count; i++) {
        bool waits = activity_waits(why->standing.activities[i]);
        why->waiting += waits;
        why->blocked += waits && !why->standing.goes_on[i];
    }
    causes_find(&search);
    free(search.left_by);
    return true;
}

void why_free(struct why *why)
{
    free(why->standing.activities);
    free(why->standing.goes_on);
    why->standing.activities = NULL;
    why->standing.goes_on = NULL;
}
