/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of waiting time by peer and kind. Nothing is timed for them: page_keeper.c reads a clock
 * anyway in each eighth round of progress, and a wait that it sees twice has lasted in between.
 * That clock has ticks of some milliseconds, so a short wait counts as none or as a whole tick, as
 * often as its length says: many short ones add up rightly. */
#include "report/waited.h"

#include <string.h>

#include "common/report/page_text.h"

/* Row 0: any process, and those that have no row. */
static struct page_waited rows[PAGE_WAITED];
static uint32_t row_count;

void waited_forget(void)
{
    memset(rows, 0, sizeof(rows));
    rows[0].peer.rank = PAGE_ANY_RANK;
    row_count = 1;
}

/* Where all rows are taken, the peer takes that of the one waited for least. */
static struct page_waited *row_of(const struct page_process *peer)
{
    uint32_t least = 1;
    if (peer->rank == PAGE_ANY_RANK)
        return &rows[0];
    for (uint32_t i = 1; i < row_count; i++) {
        if (rows[i].peer.rank == peer->rank && rows[i].peer.job == peer->job)
            return &rows[i];
        if (page_waited_ns(&rows[i]) < page_waited_ns(&rows[least]))
            least = i;
    }
    if (row_count < PAGE_WAITED)
        least = row_count++;
    for (int kind = 0; kind < PAGE_WAITED_KINDS; kind++) {
        rows[0].ns[kind] += rows[least].ns[kind];
        rows[least].ns[kind] = 0;
    }
    rows[least].peer = *peer;
    return &rows[least];
}

static enum page_waited_kind kind_of(const struct page_request *row)
{
    if (row->collective)
        return PAGE_IN_COLLECTIVE;
    if (row->kind == PAGE_OTHER || row->stage == PAGE_MOVING || row->stage == PAGE_NO_ROOM)
        return PAGE_FOR_BYTES;
    return row->kind == PAGE_SENDING ? PAGE_FOR_RECEIVER : PAGE_FOR_SENDER;
}

void waited_add(const struct page_wait *wait, uint64_t ns)
{
    const struct page_request *first = &wait->rows[0];
    if (wait->row_count) /* else all has come */
        row_of(&first->peer)->ns[kind_of(first)] += ns;
}

void waited_fill(struct page *page)
{
    page->waited_count = row_count;
    memcpy(page->waited, rows, sizeof(rows));
}

static void name_print(FILE *file, const struct page_process *peer)
{
    if (peer->rank == PAGE_ANY_RANK)
        fputs("any rank", file);
    else
        fprintf(file, "rank %u", peer->rank);
}

/* Less than a tick says nothing. */
#define SHOWN_NS 10000000u

void waited_print(FILE *file)
{
    for (uint32_t i = 0; i < row_count; i++) {
        const char *between = ": ";
        if (page_waited_ns(&rows[i]) < SHOWN_NS)
            continue;
        fprintf(file, "  waited %.2f s for ", (double) page_waited_ns(&rows[i]) * 1e-9);
        name_print(file, &rows[i].peer);
        for (uint32_t kind = 0; kind < PAGE_WAITED_KINDS; kind++) {
            if (rows[i].ns[kind] < SHOWN_NS)
                continue;
            fprintf(file, "%s%.2f s %s", between, (double) rows[i].ns[kind] * 1e-9,
                    page_waited_name(kind));
            between = ", ";
        }
        fputc('\n', file);
    }
}

void waited_print_json(FILE *file)
{
    page_waited_print_json(file, rows, row_count);
}
