/* SPDX-License-Identifier: BSD-3-Clause */
/* Who makes the others wait: the table of --waited. */
#include <stdlib.h>

#include "common/report/page_text.h"
#include "tools/top/show.h"

struct waiter {
    const struct page *page;
    double kinds_s[PAGE_WAITED_KINDS];
    double all_s, others_s; /* it has waited, and others for it */
    double most_s;          /* for the one that it has waited for longest */
    struct page_process most;
};

static void waiter_sum(struct waiter *waiter, const struct page *page)
{
    waiter->page = page;
    waiter->most.rank = PAGE_ANY_RANK;
    for (uint32_t i = 0; i < page->waited_count; i++) {
        const struct page_waited *row = &page->waited[i];
        double row_s = (double) page_waited_ns(row) * 1e-9;
        for (uint32_t kind = 0; kind < PAGE_WAITED_KINDS; kind++)
            waiter->kinds_s[kind] += (double) row->ns[kind] * 1e-9;
        waiter->all_s += row_s;
        if (row_s > waiter->most_s) {
            waiter->most_s = row_s;
            waiter->most = row->peer;
        }
    }
}

static void others_add(struct waiter *waiters, const struct ranks *ranks, const struct page *page)
{
    for (uint32_t i = 0; i < page->waited_count; i++) {
        int index = ranks_find(ranks, &page->waited[i].peer);
        if (index >= 0)
            waiters[index].others_s += (double) page_waited_ns(&page->waited[i]) * 1e-9;
    }
}

/* One that is waited for and does not wait itself holds the others up: it comes first. */
static int holds_up_first(const void *one, const void *other)
{
    const struct waiter *left = one, *right = other;
    double difference = (right->others_s - right->all_s) - (left->others_s - left->all_s);
    return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static void waiter_print(FILE *file, const struct waiter *waiter, const struct view *view)
{
    char most[32] = "", line[256];
    if (waiter->most_s > 0 && waiter->most.rank == PAGE_ANY_RANK)
        snprintf(most, sizeof(most), "any rank");
    else if (waiter->most_s > 0)
        snprintf(most, sizeof(most), "rank %u", waiter->most.rank);
    snprintf(line, sizeof(line), "%5u %9.2f %9.2f %8.2f %8.2f %8.2f %8.2f  %s",
             waiter->page->me.rank, waiter->others_s, waiter->all_s,
             waiter->kinds_s[PAGE_FOR_SENDER], waiter->kinds_s[PAGE_FOR_RECEIVER],
             waiter->kinds_s[PAGE_IN_COLLECTIVE], waiter->kinds_s[PAGE_FOR_BYTES], most);
    fprintf(file, "%.*s\n", (int) view->columns, line);
}

void show_waited(FILE *file, const struct ranks *ranks, const struct view *view)
{
    struct waiter *waiters = calloc(ranks->count + 1, sizeof(*waiters));
    if (!waiters)
        return;
    for (size_t i = 0; i < ranks->count; i++)
        waiter_sum(&waiters[i], &ranks->list[i].second.page);
    for (size_t i = 0; i < ranks->count; i++)
        others_add(waiters, ranks, &ranks->list[i].second.page);
    qsort(waiters, ranks->count, sizeof(*waiters), holds_up_first);
    fprintf(file, "%.*s\n", (int) view->columns,
            " rank  for it s  waited s   sender receiver  collect.    bytes  most for");
    for (size_t i = 0; i < ranks->count && (!view->lines || i < view->lines); i++)
        waiter_print(file, &waiters[i], view);
    free(waiters);
}
