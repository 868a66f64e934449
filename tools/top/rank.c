/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of ranks. */
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
