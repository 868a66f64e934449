/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the word of each rank, and reads in its page what became of it. */
#include "tools/top/drain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/model/number.h"
#include "tools/top/find.h"
#include "tools/top/page_read.h"

/* Ranks look ten times a second; what is under way may take longer. */
#define LOOKS   50
#define LOOK_NS 100000000l

/* What a rank says of its lanes of that name. */
struct standing {
    uint64_t bits;
    uint32_t kept, busy;
    bool is_done; /* what was asked last */
};

static struct standing standing_of(const struct page *page, const char *lane, bool is_drain)
{
    struct standing standing = {.bits = 0};
    for (uint32_t i = 0; i < page->lane_count; i++) {
        const struct page_lane *row = &page->lanes[i];
        if (strncmp(row->name, lane, PAGE_NAME - 1) != 0 || row->number >= DRAIN_LANES)
            continue;
        standing.bits |= UINT64_C(1) << row->number;
        standing.kept += row->kept;
        standing.busy += row->busy;
    }
    standing.is_done = (page->drained & standing.bits) == (is_drain ? standing.bits : 0);
    return standing;
}

static bool is_over(const struct ranks *ranks, const char *lane, bool is_drain)
{
    bool is_over = true;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct sample *sample = &ranks->list[i].second;
        struct standing standing = standing_of(&sample->page, lane, is_drain);
        is_over &= !sample->state || (standing.is_done && (!is_drain || standing.busy == 0));
    }
    return is_over;
}

/* True: the rank has done it. */
static bool rank_say(const struct page *page, const char *lane, bool is_drain)
{
    struct standing standing = standing_of(page, lane, is_drain);
    unsigned rank = page->me.rank;
    if (!standing.bits)
        printf("rank %u has met no other over it: ask again when it has\n", rank);
    else if (!standing.is_done)
        printf("rank %u has not looked yet: it does so in MPI\n", rank);
    else if (standing.kept)
        printf("rank %u goes on using it toward %u rank%s: no other lane leads there\n", rank,
               standing.kept, number_plural(standing.kept));
    else if (is_drain && standing.busy)
        printf("rank %u gives it nothing more, and waits for what is under way to %u rank%s\n",
               rank, standing.busy, number_plural(standing.busy));
    return standing.bits && standing.is_done && !standing.kept && !(is_drain && standing.busy);
}

/* The lanes that there are, for one that is not. */
static void lanes_say(const struct page *page, const char *lane, char *why, size_t size)
{
    snprintf(why, size, "no rank has a lane %.60s; rank %u has", lane, page->me.rank);
    for (uint32_t i = 0; i < page->lane_count; i++)
        text_more(why, size, "%s %s", i ? "," : "", page->lanes[i].name);
}

int drain_ask(struct ranks *ranks, const char *lane, bool is_drain, char *why, size_t size)
{
    size_t done = 0;
    bool any = false;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct rank *rank = &ranks->list[i];
        uint64_t bits = standing_of(&rank->second.page, lane, is_drain).bits;
        if (bits && !drain_change(rank->pid, bits, is_drain)) {
            snprintf(why, size, "process %d cannot be asked: %s", rank->pid, ask_error(errno));
            return -1;
        }
        any |= bits != 0;
    }
    if (!any) {
        lanes_say(&ranks->list[0].second.page, lane, why, size);
        return -1;
    }
    for (int look = 0; look < LOOKS && !is_over(ranks, lane, is_drain); look++) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        ranks_look(ranks, false);
    }
    for (size_t i = 0; i < ranks->count; i++)
        done += rank_say(&ranks->list[i].second.page, lane, is_drain);
    printf("lane %s: %s in %zu of %zu ranks here\n", lane, is_drain ? "empty" : "used again", done,
           ranks->count);
    return done < ranks->count;
}
