/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what ranks left, and shows it. */
#include "tools/top/left.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"
#include "common/report/page_text.h"

/* What is not an event in its place is none. */
static void events_check(struct page_event *events)
{
    for (uint32_t i = 0; i < PAGE_EVENTS; i++)
        if (events[i].number % PAGE_EVENTS != i || events[i].kind >= PAGE_EVENT_KINDS ||
            events[i].collective >= PAGE_COLLECTIVES ||
            (events[i].kind == PAGE_EVENT_LANE && events[i].first >= PAGE_CHANGES))
            memset(&events[i], 0, sizeof(events[i]));
}

/* As another process saw it that looked for no messages; or as it was at its end: it was at work
 * where it did not wait, and looked for messages where it did. */
static void rank_fill(struct rank *rank, const struct page *page)
{
    char state = page->state ? (char) page->state : page->wait_count ? 'S' : 'R';
    rank->second = (struct sample){.page = *page, .state = state, .running = state == 'R'};
    rank->first = rank->second;
    if (page->wait_count && !page->state)
        rank->first.page.rounds--;
}

/* The ranks of a node have one clock, and ended at about one time. */
static void ends_fill(struct ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++) {
        struct sample *sample = &ranks->list[i].second;
        for (size_t j = 0; j < ranks->count; j++) {
            const struct page *page = &ranks->list[j].second.page;
            if (strcmp(page->host, sample->page.host) == 0 && page->progressed_ns > sample->now_ns)
                sample->now_ns = page->progressed_ns;
        }
        ranks->list[i].first.now_ns = sample->now_ns;
    }
}

static bool left_add(struct left *left, const struct page_file *file)
{
    struct left_rank *rank = malloc(sizeof(*rank));
    struct left_rank **list = realloc(left->list, (left->count + 1) * sizeof(struct left_rank *));
    if (list)
        left->list = list;
    if (!rank || !list) {
        free(rank);
        return false;
    }
    rank->me = file->page.me;
    rank->ended_ns = file->page.progressed_ns;
    memcpy(rank->events, file->events, sizeof(rank->events));
    events_check(rank->events);
    left->list[left->count++] = rank;
    return true;
}

static bool file_take(struct page_file *file, size_t bytes, struct ranks *ranks, struct left *left,
                      struct error_text *why)
{
    size_t of_page = bytes < sizeof(file->page) ? bytes : sizeof(file->page);
    if (!page_check(&file->page, of_page, why))
        return false;
    if (bytes != sizeof(*file))
        return fail_with(why, "it has %zu bytes and should have %zu", bytes, sizeof(*file));
    struct rank *rank = ranks_add(ranks, file->page.pid);
    if (!rank || !left_add(left, file))
        return fail_with(why, "no memory");
    rank_fill(rank, &file->page);
    return true;
}

static bool file_load(const char *path, struct ranks *ranks, struct left *left,
                      struct error_text *error)
{
    struct error_text why;
    size_t bytes;
    /* Room for that of another version, of which page_check says that it is one. */
    struct page_file *file =
        (void *) whole_file_read(path, 16 * sizeof(*file), WHOLE_FILE, &bytes, NULL, error);
    bool is_good = file && (file_take(file, bytes, ranks, left, &why) ||
                            fail_with(error, "%.700s: %.300s", path, why.text));
    free(file);
    return is_good;
}

/* A file that cannot be used is named, and hides no other. */
static void folder_load(DIR *folder, const char *path, struct ranks *ranks, struct left *left)
{
    char name[PATH_MAX];
    struct error_text error;
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (strncmp(entry->d_name, PAGE_FILE_NAME, strlen(PAGE_FILE_NAME)) != 0)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (!file_load(name, ranks, left, &error))
            fprintf(stderr, "multilane-top: %s\n", error.text);
    }
}

bool left_load(const char *path, struct ranks *ranks, struct left *left, struct error_text *error)
{
    DIR *folder = opendir(path);
    bool is_good = folder || file_load(path, ranks, left, error);
    if (folder) {
        folder_load(folder, path, ranks, left);
        closedir(folder);
    }
    ends_fill(ranks);
    ranks_sort(ranks);
    return is_good;
}

void left_free(struct left *left)
{
    for (size_t i = 0; i < left->count; i++)
        free(left->list[i]);
    free(left->list);
    *left = (struct left){.list = NULL};
}

static void call_show(FILE *out, const struct page_event *event)
{
    fprintf(out, "%s, %u bytes", page_collective_name(event->collective), event->bytes);
    if (event->rank != PAGE_ANY)
        fprintf(out, ", root %d", event->rank);
}

/* --- the last calls --------------------------------------------------------------------------- */

/* A line: an event of a rank. */
struct line {
    const struct left_rank *rank;
    const struct page_event *event;
};

/* The first number that differs decides. */
static int numbers_compare(const uint64_t numbers[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i][0] != numbers[i][1])
            return numbers[i][0] < numbers[i][1] ? -1 : 1;
    return 0;
}

static int line_compare(const void *one, const void *other)
{
    const struct line *a = one, *b = other;
    const uint64_t numbers[][2] = {{a->event->time_ns, b->event->time_ns},
                                   {a->rank->me.rank, b->rank->me.rank}};
    int order = numbers_compare(numbers, sizeof(numbers) / sizeof(numbers[0]));
    return order ? order : (int32_t) (a->event->number - b->event->number) < 0 ? -1 : 1;
}

/* The number of the last event; modulo 2^32 later ones may be smaller. 0: there is none. */
static uint32_t number_last(const struct left_rank *rank)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < PAGE_EVENTS; i++) {
        const struct page_event *event = &rank->events[i];
        if (event->kind && (!last || (int32_t) (event->number - last) > 0))
            last = event->number;
    }
    return last;
}

static size_t lines_add(struct line *lines, const struct left_rank *rank, size_t most)
{
    uint32_t last = number_last(rank);
    size_t count = 0;
    for (uint32_t i = 0; i < PAGE_EVENTS; i++)
        if (rank->events[i].kind && last - rank->events[i].number < most)
            lines[count++] = (struct line){rank, &rank->events[i]};
    return count;
}

/* A change of a lane, by its number, or of a peer. */
static void change_show(FILE *out, const struct page_event *event)
{
    static const char *const what[PAGE_CHANGES] = {
        [PAGE_LANE_LOST] = "is lost",
        [PAGE_LANE_RETURNED] = "is used again",
        [PAGE_LANE_WORSE] = "has become worse",
        [PAGE_PEER_SUSPECTED] = "is asked for signs of life",
        [PAGE_PLAN_CHANGED] = "has another plan",
    };
    if (event->tag >= 0)
        fprintf(out, "lane %d to ", event->tag);
    fprintf(out, "rank %d of the job %s\n", event->rank, what[event->first]);
}

/* What names no rank of a communicator. */
static void other_show(FILE *out, const struct page_event *event)
{
    const struct page_wait wait = {.call = (uint32_t) event->tag};
    switch (event->kind) {
    case PAGE_EVENT_CALL:
        fputs("calls ", out);
        call_show(out, event);
        fprintf(out, ", communicator %u\n", event->comm);
        break;
    case PAGE_EVENT_WAIT:
        fprintf(out, "waits in %s\n", page_call_name(&wait));
        break;
    case PAGE_EVENT_MATCH:
        fprintf(out, "has a receive for a message of rank %d of the job, tag %d, %u bytes\n",
                event->rank, event->tag, event->bytes);
        break;
    default:
        change_show(out, event);
    }
}

static void line_show(FILE *out, const struct line *line, uint64_t end_ns)
{
    static const char *const what[PAGE_EVENT_KINDS] = {
        [PAGE_EVENT_SEND] = "sends to",
        [PAGE_EVENT_RECEIVE] = "receives from",
        [PAGE_EVENT_GOT] = "has received from",
        [PAGE_EVENT_SENT] = "has sent to",
    };
    const struct page_event *event = line->event;
    double before = end_ns > event->time_ns ? (double) (end_ns - event->time_ns) * 1e-9 : 0;
    fprintf(out, "%9.3f s  rank %-5u ", -before, line->rank->me.rank);
    if (!what[event->kind]) {
        other_show(out, event);
        return;
    }
    if (event->collective)
        fprintf(out, "%s: ", page_collective_name(event->collective));
    fprintf(out, "%s ", what[event->kind]);
    fprintf(out, event->rank == PAGE_ANY ? "any rank" : "%d", event->rank);
    if (event->collective)
        ; /* its tag is Open MPI's */
    else if (event->tag == PAGE_ANY)
        fprintf(out, ", any tag");
    else
        fprintf(out, ", tag %d", event->tag);
    fprintf(out, ", communicator %u, %u bytes\n", event->comm, event->bytes);
}

bool left_show(FILE *out, const struct left *left, size_t most)
{
    size_t count = 0;
    uint64_t end_ns = 0;
    most = most < PAGE_EVENTS ? most : PAGE_EVENTS;
    struct line *lines = calloc(left->count * most + 1, sizeof(*lines));
    if (!lines)
        return false;
    for (size_t i = 0; i < left->count; i++) {
        count += lines_add(lines + count, left->list[i], most);
        if (left->list[i]->ended_ns > end_ns)
            end_ns = left->list[i]->ended_ns;
    }
    qsort(lines, count, sizeof(*lines), line_compare);
    fprintf(out, "the last calls of each rank, by the time before a rank was last seen in MPI; the "
                 "ranks they name are those in the communicator:\n");
    for (size_t i = 0; i < count; i++)
        line_show(out, &lines[i], end_ns);
    free(lines);
    return true;
}

/* --- collective operations -------------------------------------------------------------------- */

/* A collective operation that a rank called. */
struct call {
    struct page_process rank;
    const struct page_event *event;
};

/* By communicator, turn and rank. */
static int call_compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    const uint64_t numbers[][2] = {{a->rank.job, b->rank.job},
                                   {a->event->comm, b->event->comm},
                                   {a->event->first, b->event->first},
                                   {(uint32_t) a->event->tag, (uint32_t) b->event->tag},
                                   {a->rank.rank, b->rank.rank}};
    return numbers_compare(numbers, sizeof(numbers) / sizeof(numbers[0]));
}

/* By what is called, and by rank. */
static int alike_compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    const uint64_t numbers[][2] = {{a->event->collective, b->event->collective},
                                   {(uint32_t) a->event->rank, (uint32_t) b->event->rank},
                                   {a->event->bytes, b->event->bytes},
                                   {a->rank.rank, b->rank.rank}};
    return numbers_compare(numbers, sizeof(numbers) / sizeof(numbers[0]));
}

static bool is_same_comm(const struct call *one, const struct call *other)
{
    return one->rank.job == other->rank.job && one->event->comm == other->event->comm &&
           one->event->first == other->event->first;
}

static bool is_alike(const struct page_event *one, const struct page_event *other)
{
    return one->collective == other->collective && one->rank == other->rank &&
           one->bytes == other->bytes;
}

static size_t calls_gather(const struct left *left, struct call *calls)
{
    size_t count = 0;
    for (size_t i = 0; i < left->count; i++)
        for (uint32_t j = 0; j < PAGE_EVENTS; j++)
            if (left->list[i]->events[j].kind == PAGE_EVENT_CALL)
                calls[count++] = (struct call){left->list[i]->me, &left->list[i]->events[j]};
    qsort(calls, count, sizeof(*calls), call_compare);
    return count;
}

/* A line for all that call the same. */
static void turn_show(FILE *out, struct call *calls, size_t count)
{
    const struct page_event *event = calls[0].event;
    qsort(calls, count, sizeof(*calls), alike_compare);
    fprintf(out, "the collective operations on communicator %u differ first at number %u:\n",
            event->comm, (uint32_t) event->tag + 1);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && is_alike(calls[next].event, calls[i].event); next++)
            ;
        fprintf(out, "  rank %u", calls[i].rank.rank);
        if (next - i > 1)
            fprintf(out, " and %zu more", next - i - 1);
        fputs(next - i > 1 ? " call " : " calls ", out);
        call_show(out, calls[i].event);
        fputc('\n', out);
    }
}

/* Has a later communicator the same number? Then a rank has a turn twice. */
static bool is_used_again(const struct call *calls, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (calls[i].event->tag == calls[i - 1].event->tag &&
            calls[i].rank.rank == calls[i - 1].rank.rank)
            return true;
    return false;
}

/* Of the calls on one communicator. */
static void comm_show(FILE *out, struct call *calls, size_t count)
{
    if (is_used_again(calls, count))
        return;
    for (size_t i = 0, next; i < count; i = next) {
        bool differs = false;
        for (next = i + 1; next < count && calls[next].event->tag == calls[i].event->tag; next++)
            differs |= !is_alike(calls[next].event, calls[i].event);
        if (differs) {
            turn_show(out, &calls[i], next - i);
            return;
        }
    }
}

bool left_differ_show(FILE *out, const struct left *left)
{
    struct call *calls = calloc(left->count * PAGE_EVENTS + 1, sizeof(*calls));
    const bool is_good = calls != NULL;
    size_t count = is_good ? calls_gather(left, calls) : 0;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && is_same_comm(&calls[next], &calls[i]); next++)
            ;
        comm_show(out, &calls[i], next - i);
    }
    free(calls);
    return is_good;
}
