/* SPDX-License-Identifier: BSD-3-Clause */
/* What one rank does, from two looks at it. */
#include "tools/top/activity.h"

#include <stdio.h>
#include <string.h>

#include "common/model/number.h"
#include "common/report/page_text.h"

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

/* "since 3.0 s": by the last round of progress. */
static void since_text(const struct rank *rank, char *text, size_t size)
{
    const struct sample *now = &rank->second;
    uint64_t last = now->page.progressed_ns;
    page_time_text(last && last < now->now_ns ? now->now_ns - last : 0, text, size);
}

static void waits_text(const struct rank *rank, char *text, size_t size)
{
    const struct page *page = &rank->second.page;
    text[0] = '\0';
    for (uint32_t i = 0; i < page->wait_count && i < 2; i++) {
        text_more(text, size, "%s", i ? "; another of its threads " : "");
        size_t length = strlen(text);
        page_wait_text(&page->waits[i], rank->second.now_ns, text + length, size - length);
    }
}

void rank_text(const struct rank *rank, enum activity activity, char *text, size_t size)
{
    char since[32];
    since_text(rank, since, sizeof(since));
    switch (activity) {
    case ACTIVITY_STARTS:
        snprintf(text, size, "is in MPI_Init");
        break;
    case ACTIVITY_COMPUTES:
        snprintf(text, size, "computes since %s (not in MPI)", since);
        break;
    case ACTIVITY_SLEEPS:
        snprintf(text, size, "sleeps since %s outside MPI (a lock, a file or a pause)", since);
        break;
    case ACTIVITY_IN_MPI:
        snprintf(text, size, "is in and out of MPI");
        break;
    case ACTIVITY_STOPPED:
        snprintf(text, size, "is stopped (by a signal or a debugger) since about %s", since);
        break;
    case ACTIVITY_GONE:
        snprintf(text, size, "has ended");
        break;
    case ACTIVITY_STUCK:
        waits_text(rank, text, size);
        text_more(text, size, ", without progress since %s (a lock, or another thread?)", since);
        break;
    default:
        waits_text(rank, text, size);
    }
}
