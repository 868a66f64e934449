/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks, and what each does. */
#include "tools/top/rank.h"

#include <stdlib.h>
#include <string.h>

struct rank *ranks_add(struct ranks *ranks, int pid)
{
    if (ranks->count == ranks->room) {
        size_t room = ranks->room ? 2 * ranks->room : 16;
        struct rank *list = realloc(ranks->list, room * sizeof(*list));
        if (!list)
            return NULL;
        ranks->list = list;
        ranks->room = room;
    }
    struct rank *rank = &ranks->list[ranks->count++];
    memset(rank, 0, sizeof(*rank));
    rank->pid = pid;
    return rank;
}

static int name_compare(const struct page_process *one, const struct page_process *other)
{
    if (one->job != other->job)
        return one->job < other->job ? -1 : 1;
    return (one->rank > other->rank) - (one->rank < other->rank);
}

static int rank_compare(const void *one, const void *other)
{
    return name_compare(&((const struct rank *) one)->second.page.me,
                        &((const struct rank *) other)->second.page.me);
}

void ranks_sort(struct ranks *ranks)
{
    if (ranks->count)
        qsort(ranks->list, ranks->count, sizeof(ranks->list[0]), rank_compare);
}

void ranks_free(struct ranks *ranks)
{
    free(ranks->list);
    memset(ranks, 0, sizeof(*ranks));
}

int ranks_find(const struct ranks *ranks, const struct page_process *name)
{
    size_t low = 0, high = ranks->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = name_compare(&ranks->list[middle].second.page.me, name);
        if (order == 0)
            return (int) middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

bool ranks_have_jobs(const struct ranks *ranks)
{
    return ranks->count &&
           ranks->list[0].second.page.me.job != ranks->list[ranks->count - 1].second.page.me.job;
}

/* --- what one does, from two looks ------------------------------------------------------------ */

static bool is_in(const struct page *page, uint64_t number)
{
    for (uint32_t i = 0; i < page->wait_count; i++)
        if (page->waits[i].number == number)
            return true;
    return false;
}

/* A wait that both looks have seen; null: none. */
static const struct page_wait *steady_wait(const struct rank *rank)
{
    const struct page *page = &rank->second.page;
    for (uint32_t i = 0; i < page->wait_count; i++)
        if (is_in(&rank->first.page, page->waits[i].number))
            return &page->waits[i];
    return NULL;
}

char rank_state(const struct rank *rank)
{
    char then = rank->first.state, now = rank->second.state;
    if (!now || !strchr("RSDTtZXI", now)) /* it may come from a file */
        return '-';
    return then == 'S' && now == 'R' ? 'S' : now;
}

static enum activity outside(const struct rank *rank)
{
    const struct sample *then = &rank->first, *now = &rank->second;
    if (now->page.rounds != then->page.rounds)
        return now->page.flags & PAGE_STARTED ? ACTIVITY_IN_MPI : ACTIVITY_STARTS;
    return now->cpu_ticks != then->cpu_ticks || now->state == 'R' ? ACTIVITY_COMPUTES
                                                                  : ACTIVITY_SLEEPS;
}

enum activity rank_activity(const struct rank *rank)
{
    const struct sample *then = &rank->first, *now = &rank->second;
    if (!now->state || now->state == 'Z' || now->state == 'X')
        return ACTIVITY_GONE;
    if (now->state == 'T' || now->state == 't')
        return ACTIVITY_STOPPED;
    const struct page_wait *wait = steady_wait(rank);
    if (!wait)
        return now->page.wait_count ? ACTIVITY_IN_MPI : outside(rank);
    if (wait->call == PAGE_FINALIZE)
        return ACTIVITY_ENDS;
    bool moves = now->page.rounds != then->page.rounds || now->cpu_ticks != then->cpu_ticks ||
                 now->state == 'R';
    return moves ? ACTIVITY_WAITS : ACTIVITY_STUCK;
}

/* Since the last round of progress: "3.0 s". */
static struct words since_text(const struct rank *rank)
{
    const struct sample *now = &rank->second;
    uint64_t last = now->page.progressed_ns;
    return page_time_text(last && last < now->now_ns ? now->now_ns - last : 0);
}

static struct words waits_text(const struct rank *rank)
{
    const struct page *page = &rank->second.page;
    struct words words = {""};
    for (uint32_t i = 0; i < page->wait_count && i < 2; i++)
        words_more(&words, "%s%s", i ? "; another of its threads " : "",
                   page_wait_text(&page->waits[i], rank->second.now_ns).text);
    return words;
}

struct words rank_text(const struct rank *rank, enum activity activity)
{
    const struct words since = since_text(rank);
    struct words waits;
    switch (activity) {
    case ACTIVITY_STARTS:
        return words_of("is in MPI_Init");
    case ACTIVITY_COMPUTES:
        return words_of("computes since %s (not in MPI)", since.text);
    case ACTIVITY_SLEEPS:
        return words_of("sleeps since %s outside MPI (a lock, a file or a pause)", since.text);
    case ACTIVITY_IN_MPI:
        return words_of("is in and out of MPI");
    case ACTIVITY_STOPPED:
        return words_of("is stopped (by a signal or a debugger) since about %s", since.text);
    case ACTIVITY_GONE:
        return words_of("has ended");
    case ACTIVITY_STUCK:
        waits = waits_text(rank);
        words_more(&waits, ", without progress since %s (a lock, or another thread?)", since.text);
        return waits;
    default:
        return waits_text(rank);
    }
}
