/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and trees as text. */
#include "tools/top/show.h"

#include <stdlib.h>
#include <string.h>

/* --- one rank --------------------------------------------------------------------------------- */

uint64_t rank_since_ns(const struct rank *rank, enum activity activity)
{
    const struct sample *now = &rank->second;
    uint64_t since = now->page.progressed_ns;
    if (activity == ACTIVITY_IN_MPI || activity == ACTIVITY_STARTS || activity == ACTIVITY_GONE)
        return 0;
    for (uint32_t i = 0; i < now->page.wait_count; i++)
        if (i == 0 || now->page.waits[i].since_ns < since)
            since = now->page.waits[i].since_ns;
    return since && since < now->now_ns ? now->now_ns - since : 0;
}

const char *rank_word(const struct rank *rank, enum activity activity)
{
    static const char *const words[] = {
        [ACTIVITY_STARTS] = "MPI_Init", [ACTIVITY_COMPUTES] = "computes",
        [ACTIVITY_SLEEPS] = "sleeps",   [ACTIVITY_IN_MPI] = "in MPI",
        [ACTIVITY_WAITS] = "waits",     [ACTIVITY_STUCK] = "waits",
        [ACTIVITY_ENDS] = "ends",       [ACTIVITY_STOPPED] = "stopped",
        [ACTIVITY_GONE] = "gone",
    };
    bool waits = activity_waits(activity);
    if ((waits || activity == ACTIVITY_ENDS) && rank->second.page.wait_count)
        return page_call_name(&rank->second.page.waits[0]);
    return words[activity];
}

uint64_t rank_queued_bytes(const struct rank *rank)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rank->second.page.peer_count; i++)
        sum += rank->second.page.peers[i].queued_bytes;
    return sum;
}

/* A second, between the two looks. */
static double rate(const struct rank *rank, uint64_t then, uint64_t now)
{
    double seconds = (double) (rank->second.now_ns - rank->first.now_ns) * 1e-9;
    return seconds > 0 && now > then ? (double) (now - then) / seconds : 0;
}

static double rank_rate(const struct rank *rank)
{
    return rate(rank, rank->first.page.sent_bytes, rank->second.page.sent_bytes);
}

/* "rank 7, tag 12": the whole is in --why. */
static struct words target_short(const struct rank *rank, enum activity activity)
{
    const struct page *page = &rank->second.page;
    if (!activity_waits(activity) || !page->wait_count || !page->waits[0].row_count)
        return (struct words){""};
    const struct page_request *row = &page->waits[0].rows[0];
    if (row->kind == PAGE_OTHER)
        return words_of("%s", row->collective ? "nonblocking coll." : "other request");
    struct words words = page_rank_text(row->peer.rank);
    if (!row->collective && row->tag != PAGE_ANY)
        words_more(&words, ", tag %d", row->tag);
    return words;
}

static struct words bytes_text(double bytes)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    return words_of(unit && bytes < 10 ? "%.1f%s" : "%.0f%s", bytes, units[unit]);
}

/* --- the table -------------------------------------------------------------------------------- */

/* What qsort compares by; it takes no argument. */
static struct {
    const struct ranks *ranks;
    const struct why *why;
    enum sort_key key;
} order;

static double key_of(int index)
{
    const struct rank *rank = &order.ranks->list[index];
    switch (order.key) {
    case SORT_SINCE:
        return (double) rank_since_ns(rank, order.why->standing.activities[index]);
    case SORT_BYTES:
        return rank_rate(rank);
    case SORT_QUEUED:
        return (double) rank_queued_bytes(rank);
    case SORT_UNEXPECTED:
        return rank->second.page.unexpected_total;
    default:
        return 0;
    }
}

static int order_compare(const void *one, const void *other)
{
    int first = *(const int *) one, second = *(const int *) other;
    double difference = key_of(second) - key_of(first);
    return difference > 0 ? 1 : difference < 0 ? -1 : first - second;
}

/* As much of it as the terminal has room for. */
static void line_print(FILE *file, const struct view *view, struct words line)
{
    fprintf(file, "%.*s\n", (int) view->columns, line.text);
}

static void row_print(FILE *file, const struct ranks *ranks, const struct why *why, int index,
                      const struct view *view)
{
    const struct rank *rank = &ranks->list[index];
    enum activity activity = why->standing.activities[index];
    line_print(file, view,
               words_of("%5u %7d %c %-14.14s %7s %-20.20s %6s %6s %6u", rank->second.page.me.rank,
                        rank->pid, rank_state(rank), rank_word(rank, activity),
                        page_time_text(rank_since_ns(rank, activity)).text,
                        target_short(rank, activity).text, bytes_text(rank_rate(rank)).text,
                        bytes_text((double) rank_queued_bytes(rank)).text,
                        rank->second.page.unexpected_total));
}

/* Ranks stand by job. */
static unsigned jobs_count(const struct ranks *ranks)
{
    unsigned jobs = 1;
    for (size_t i = 1; i < ranks->count; i++)
        jobs += ranks->list[i].second.page.me.job != ranks->list[i - 1].second.page.me.job;
    return jobs;
}

/* The first lines: what job this is, or how many there are. */
static void head_print(FILE *file, const struct ranks *ranks, const struct why *why,
                       const struct view *view)
{
    const struct page *page = &ranks->list[0].second.page;
    unsigned jobs = jobs_count(ranks);
    struct words line = jobs == 1 ? words_of("job %u  %s  %zu of %u", page->me.job, page->program,
                                             ranks->count, page->job_size)
                                  : words_of("%u jobs  %zu", jobs, ranks->count);
    words_more(&line, " ranks here (%s)  %u wait, %u cannot go on", page->host, why->waiting,
               why->blocked);
    line_print(file, view, line);
}

/* Lanes of all ranks together, by name. */
struct lane_sum {
    char name[PAGE_NAME];
    uint32_t peers, down, worse, drained;
    double bytes, bytes_s;
};

static void lane_add(struct lane_sum *sums, uint32_t *count, const struct rank *rank, uint32_t lane)
{
    const struct page_lane *now = &rank->second.page.lanes[lane];
    uint64_t then = 0;
    for (uint32_t i = 0; i < rank->first.page.lane_count; i++)
        if (strcmp(rank->first.page.lanes[i].name, now->name) == 0)
            then = rank->first.page.lanes[i].bytes;
    uint32_t i = 0;
    while (i < *count && strcmp(sums[i].name, now->name) != 0)
        i++;
    if (i == PAGE_LANES)
        return;
    if (i == *count) {
        memset(&sums[i], 0, sizeof(sums[i]));
        memcpy(sums[i].name, now->name, PAGE_NAME);
        ++*count;
    }
    sums[i].peers += now->peers;
    sums[i].down += now->down;
    sums[i].worse += now->worse;
    sums[i].drained += now->drained;
    sums[i].bytes += (double) now->bytes;
    sums[i].bytes_s += rate(rank, then, now->bytes);
}

static void lanes_print(FILE *file, const struct ranks *ranks, const struct view *view)
{
    struct lane_sum sums[PAGE_LANES];
    uint32_t count = 0;
    for (size_t i = 0; i < ranks->count; i++)
        for (uint32_t lane = 0; lane < ranks->list[i].second.page.lane_count; lane++)
            lane_add(sums, &count, &ranks->list[i], lane);
    for (uint32_t i = 0; i < count; i++) {
        const struct words line =
            words_of("lane %-24.24s %6s B/s  %6s B sent  %u ways%s", sums[i].name,
                     bytes_text(sums[i].bytes_s).text, bytes_text(sums[i].bytes).text,
                     sums[i].peers, sums[i].down ? "" : ", all up");
        fprintf(file, "%.*s", (int) view->columns, line.text);
        if (sums[i].down)
            fprintf(file, ", %u DOWN", sums[i].down);
        if (sums[i].worse)
            fprintf(file, ", %u worse", sums[i].worse);
        if (sums[i].drained)
            fprintf(file, ", %u drained", sums[i].drained);
        fputc('\n', file);
    }
}

void show_table(FILE *file, const struct ranks *ranks, const struct why *why,
                const struct view *view)
{
    int *indices = calloc(ranks->count + 1, sizeof(*indices));
    unsigned printed = 0;
    if (!indices || !ranks->count) {
        free(indices);
        return;
    }
    for (size_t i = 0; i < ranks->count; i++)
        indices[i] = (int) i;
    order.ranks = ranks;
    order.why = why;
    order.key = view->sort;
    qsort(indices, ranks->count, sizeof(indices[0]), order_compare);
    head_print(file, ranks, why, view);
    lanes_print(file, ranks, view);
    line_print(file, view,
               words_of(" rank     pid S does             since waits for               B/s "
                        "queued unexp."));
    for (size_t i = 0; i < ranks->count && (!view->lines || printed < view->lines); i++) {
        if (view->waiting_only && !activity_waits(why->standing.activities[indices[i]]))
            continue;
        row_print(file, ranks, why, indices[i], view);
        printed++;
    }
    free(indices);
}

/* --- why -------------------------------------------------------------------------------------- */

#define TREE_LINES 60u
#define TREE_DEPTH 12u

struct tree {
    FILE *file;
    const struct ranks *ranks;
    const struct why *why;
    bool *done;
    unsigned lines;
};

static void node_print(struct tree *tree, int index, unsigned depth)
{
    int targets[WHY_RANKS];
    const struct rank *rank = &tree->ranks->list[index];
    enum activity activity = tree->why->standing.activities[index];
    if (tree->lines++ >= TREE_LINES)
        return;
    const struct words name = rank_name(tree->ranks, &rank->second.page.me);
    if (tree->done[index] && depth) {
        fprintf(tree->file, "  %*s%s (above)\n", (int) (2 * depth), "", name.text);
        return;
    }
    tree->done[index] = true;
    fprintf(tree->file, "  %*s%s %s\n", (int) (2 * depth), "", name.text,
            rank_text(rank, activity).text);
    uint32_t count =
        activity_waits(activity) ? rank_targets(tree->ranks, index, targets, WHY_RANKS) : 0;
    for (uint32_t i = 0; i < count && depth < TREE_DEPTH; i++)
        node_print(tree, targets[i], depth + 1);
}

static void targets_mark(const struct tree *tree, bool *is_target)
{
    int targets[WHY_RANKS];
    for (size_t i = 0; i < tree->ranks->count; i++) {
        bool waits = activity_waits(tree->why->standing.activities[i]);
        uint32_t count = waits ? rank_targets(tree->ranks, (int) i, targets, WHY_RANKS) : 0;
        for (uint32_t j = 0; j < count; j++)
            is_target[targets[j]] = true;
    }
}

/* First those that no rank waits for, then what is left: circles. */
static void tree_print(struct tree *tree)
{
    bool *is_target = calloc(tree->ranks->count + 1, sizeof(*is_target));
    if (!is_target)
        return;
    targets_mark(tree, is_target);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < tree->ranks->count; i++)
            if (!tree->done[i] && (round == 1 || !is_target[i]))
                node_print(tree, (int) i, 0);
    if (tree->lines > TREE_LINES)
        fprintf(tree->file, "  ... and %u more lines\n", tree->lines - TREE_LINES);
    free(is_target);
}

/* What is blocked in one thread may be freed by another one, which sleeps outside of MPI now. */
static bool threads_may_help(const struct ranks *ranks, const struct why *why)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (activity_waits(why->standing.activities[i]) && !why->standing.goes_on[i] &&
            (ranks->list[i].second.page.flags & PAGE_HAS_THREADS))
            return true;
    return false;
}

static void verdict_print(FILE *file, const struct ranks *ranks, const struct why *why)
{
    const struct page *page = &ranks->list[0].second.page;
    fprintf(file, "job %u (%s): ", page->me.job, page->program);
    if (why->is_hang)
        fprintf(file, "HUNG. %u of %zu ranks cannot go on.\n", why->blocked, ranks->count);
    else if (why->cause_count)
        fprintf(file, "not hung as far as can be seen; %u of %zu ranks wait.\n", why->waiting,
                ranks->count);
    else
        fprintf(file, "nothing is wrong; %u of %zu ranks wait at this moment.\n", why->waiting,
                ranks->count);
    if (why->is_hang && threads_may_help(ranks, why))
        fprintf(file,
                "  Some of them have threads (MPI_THREAD_MULTIPLE): one that sleeps now may go "
                "on later, and free them.\n");
    if (!ranks_have_jobs(ranks) && ranks->count < page->job_size)
        fprintf(
            file,
            "  %zu of its %u ranks are seen: --job asks those of other nodes; where they do not "
            "answer, look there.\n",
            ranks->count, page->job_size);
}

void show_why(FILE *file, const struct ranks *ranks, const struct why *why)
{
    if (!ranks->count)
        return;
    verdict_print(file, ranks, why);
    for (uint32_t i = 0; i < why->cause_count; i++)
        fprintf(file, "%s%s: %s.\n", why->causes[i].kind < CAUSE_STUCK ? "* " : "- ",
                cause_name(why->causes[i].kind), why->causes[i].words.text);
    struct tree tree = {.file = file, .ranks = ranks, .why = why};
    tree.done = calloc(ranks->count + 1, sizeof(*tree.done));
    if (!tree.done)
        return;
    fprintf(file, "who waits for whom:\n");
    tree_print(&tree);
    free(tree.done);
}

/* --- who makes the others wait: the table of --waited ----------------------------------------- */

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
    struct words most = {""};
    if (waiter->most_s > 0)
        most = page_rank_text(waiter->most.rank);
    line_print(file, view,
               words_of("%5u %9.2f %9.2f %8.2f %8.2f %8.2f %8.2f  %s", waiter->page->me.rank,
                        waiter->others_s, waiter->all_s, waiter->kinds_s[PAGE_FOR_SENDER],
                        waiter->kinds_s[PAGE_FOR_RECEIVER], waiter->kinds_s[PAGE_IN_COLLECTIVE],
                        waiter->kinds_s[PAGE_FOR_BYTES], most.text));
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
    line_print(file, view,
               words_of(" rank  for it s  waited s   sender receiver  collect.    bytes  most "
                        "for"));
    for (size_t i = 0; i < ranks->count && (!view->lines || i < view->lines); i++)
        waiter_print(file, &waiters[i], view);
    free(waiters);
}
