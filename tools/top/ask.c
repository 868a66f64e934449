/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes what ranks are asked, and waits until they have done it. */
#include "tools/top/ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/lock/clock.h"
#include "common/model/number.h"
#include "common/report/page_take.h"
#include "tools/top/find.h"

/* --- the words of a process ------------------------------------------------------------------- */

/* Closes it, and errno stays. */
static void words_close(int fd)
{
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
}

/* What a process is asked, zeros where it never was, locked until the descriptor is closed; -1 and
 * errno. The lock is between two programs like this one: the process only reads. */
static int words_open(int pid, struct page_asked *asked)
{
    enum page_found found;
    int fd = page_descriptor(pid, DRAIN_FILE_NAME, O_RDWR, &found);
    *asked = (struct page_asked){.number = 0};
    if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                   pread(fd, asked, offsetof(struct page_asked, folder), 0) >= 0))
        return fd;
    words_close(fd);
    return -1;
}

bool drain_change(int pid, uint64_t lanes, bool is_drain)
{
    struct page_asked asked;
    int fd = words_open(pid, &asked);
    uint64_t word = is_drain ? asked.drained | lanes : asked.drained & ~lanes;
    bool is_done = fd >= 0 && pwrite(fd, &word, sizeof(word), 0) == (ssize_t) sizeof(word);
    words_close(fd);
    return is_done;
}

int pages_ask(int pid, const char *folder)
{
    struct page_asked asked;
    int fd = words_open(pid, &asked);
    size_t head = offsetof(struct page_asked, folder);
    snprintf(asked.folder, sizeof(asked.folder), "%s", folder);
    asked.number += asked.number == UINT32_MAX ? 2 : 1; /* never 0 */
    /* The number comes last. */
    if (fd >= 0 && pwrite(fd, asked.folder, sizeof(asked.folder), (off_t) head) > 0 &&
        pwrite(fd, &asked, head, 0) == (ssize_t) head)
        return fd;
    words_close(fd);
    return -1;
}

const char *ask_error(int error)
{
    return error == EWOULDBLOCK ? "another multilane-top is asking it" : strerror(error);
}

/* --- emptying a lane -------------------------------------------------------------------------- */

/* Ranks look ten times a second; what is under way may take longer. */
#define DRAIN_LOOKS   50
#define BUSY_LOOKS    20
#define DRAIN_LOOK_NS 100000000l

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
        printf("rank %u has no connection over it: ask again when it has one\n", rank);
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
static void lanes_say(const struct page *page, const char *lane, struct error_text *error)
{
    fail_with(error, "no rank has a lane %.60s; rank %u has", lane, page->me.rank);
    for (uint32_t i = 0; i < page->lane_count; i++)
        text_more(error->text, sizeof(error->text), "%s %s", i ? "," : "", page->lanes[i].name);
}

/* The same, where another multilane-top asks for its page meanwhile, which takes a second. */
static bool drain_change_in_turn(int pid, uint64_t lanes, bool is_drain)
{
    for (int look = 0; look < BUSY_LOOKS; look++) {
        if (drain_change(pid, lanes, is_drain))
            return true;
        if (errno != EWOULDBLOCK)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_LOOK_NS}, NULL);
    }
    return false;
}

int drain_ask(struct ranks *ranks, const char *lane, bool is_drain, struct error_text *error)
{
    size_t done = 0;
    bool any = false, all = true;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct rank *rank = &ranks->list[i];
        uint64_t bits = standing_of(&rank->second.page, lane, is_drain).bits;
        if (bits && !drain_change_in_turn(rank->pid, bits, is_drain))
            all = fail_with(error, "process %d cannot be asked: %s", rank->pid, ask_error(errno));
        any |= bits != 0;
    }
    if (!any) {
        lanes_say(&ranks->list[0].second.page, lane, error);
        return -1;
    }
    for (int look = 0; look < DRAIN_LOOKS && !is_over(ranks, lane, is_drain); look++) {
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_LOOK_NS}, NULL);
        ranks_look(ranks, false);
    }
    for (size_t i = 0; i < ranks->count; i++)
        done += rank_say(&ranks->list[i].second.page, lane, is_drain);
    printf("lane %s: %s in %zu of %zu ranks here\n", lane, is_drain ? "empty" : "used again", done,
           ranks->count);
    return all ? done < ranks->count : -1;
}

/* --- the pages of a whole job ----------------------------------------------------------------- */

/* A rank looks ten times a second, and reads what it is asked in every fifth look. When so long no
 * page came, those that are missing will not come. */
#define SILENCE_MS 1000u
#define LOOK_NS    20000000l

static uint32_t pages_count(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    uint32_t count = 0;
    while (folder && (entry = readdir(folder)))
        count += strncmp(entry->d_name, PAGE_FILE_NAME, strlen(PAGE_FILE_NAME)) == 0;
    if (folder)
        closedir(folder);
    return count;
}

/* A page may come while others are removed. */
#define REMOVES 10

static void folder_remove(const char *path)
{
    for (int i = 0; i < REMOVES; i++) {
        DIR *folder = opendir(path);
        struct dirent *entry;
        while (folder && (entry = readdir(folder)))
            if (entry->d_name[0] != '.')
                (void) unlinkat(dirfd(folder), entry->d_name, 0);
        if (folder)
            closedir(folder);
        if (rmdir(path) == 0 || errno != ENOTEMPTY)
            return;
    }
}

static volatile sig_atomic_t interrupted; /* by this signal */

static void interrupt(int number)
{
    interrupted = number;
}

static void pages_await(const char *path, uint32_t wanted)
{
    uint64_t since_ms = clock_coarse_ms();
    uint32_t count = 0;
    while (count < wanted && clock_coarse_ms() - since_ms < SILENCE_MS && !interrupted) {
        uint32_t before = count;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        count = pages_count(path);
        if (count != before)
            since_ms = clock_coarse_ms();
    }
}

/* The process that the user names; or one that waits in MPI, which looks soon. */
static const struct rank *asked_of(const struct ranks *ranks, const char *number)
{
    for (size_t i = 0; number && i < ranks->count; i++)
        if (ranks->list[i].pid == atoi(number))
            return &ranks->list[i];
    for (size_t i = 0; i < ranks->count; i++)
        if (ranks->list[i].second.page.wait_count)
            return &ranks->list[i];
    return &ranks->list[0];
}

/* What computes here does not answer, and can be looked at all the same. */
static void own_add(struct ranks *ranks, const struct ranks *here, const struct page *asked)
{
    for (size_t i = 0; i < here->count; i++) {
        const struct page *page = &here->list[i].second.page;
        struct rank *rank = NULL;
        if (page->me.job == asked->me.job && strcmp(page->host, asked->host) == 0 &&
            ranks_find(ranks, &page->me) < 0)
            rank = ranks_add(ranks, here->list[i].pid);
        if (rank)
            *rank = here->list[i];
        ranks_sort(ranks);
    }
}

static bool has_rank(const struct ranks *ranks, const struct page *asked, uint32_t number)
{
    return ranks_find(ranks, &(struct page_process){asked->me.job, number}) >= 0;
}

#define RANGE_CHARS 40 /* of two numbers, and "and 4294967295 more" */

static void missing_say(const struct ranks *ranks, const struct page *asked)
{
    char text[256] = "";
    uint32_t missing = 0, shown = 0;
    for (uint32_t first = 0, next; first < asked->job_size; first = next) {
        bool is_here = has_rank(ranks, asked, first);
        for (next = first + 1; next < asked->job_size && has_rank(ranks, asked, next) == is_here;
             next++)
            ;
        if (is_here)
            continue;
        missing += next - first;
        if (strlen(text) + RANGE_CHARS > sizeof(text))
            continue;
        text_more(text, sizeof(text), next - first > 1 ? "%s%u-%u" : "%s%u", shown ? ", " : "",
                  first, next - 1);
        shown += next - first;
    }
    if (missing > shown)
        text_more(text, sizeof(text), " and %u more", missing - shown);
    if (missing)
        fprintf(stderr, "multilane-top: no answer from rank%s %s: %s outside MPI, or %s lost.\n",
                missing == 1 ? "" : "s", text, missing == 1 ? "it computes" : "they compute",
                missing == 1 ? "is" : "are");
}

/* False: none came. */
static bool pages_take(const char *path, int pid, const struct page *asked, struct ranks *ranks,
                       struct left *left, struct error_text *error)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* By a descriptor of this process: the rank may have another /tmp. */
    const struct words reached = words_of("/proc/%d/fd/%d", (int) getpid(), folder);
    int question = folder >= 0 ? pages_ask(pid, reached.text) : -1;
    bool is_good = false;
    if (question < 0)
        fail_with(error, "process %d cannot be asked: %s", pid, ask_error(errno));
    else
        pages_await(path, asked->job_size);
    if (question >= 0 && pages_count(path) > 0)
        is_good = left_load(path, ranks, left, error);
    else if (question >= 0)
        fail_with(error,
                  "rank %u (process %d) does not answer: it computes outside MPI, or is in a "
                  "container that hides this program; ask another rank, by its process",
                  asked->me.rank, pid);
    if (question >= 0)
        close(question);
    if (folder >= 0)
        close(folder);
    return is_good;
}

bool whole_job_load(const char *number, struct ranks *ranks, struct left *left,
                    struct error_text *error)
{
    const struct rank *rank = asked_of(ranks, number);
    const struct page *asked = &rank->first.page; /* as it was found */
    const char *parent = getenv("TMPDIR");
    struct ranks all = {.list = NULL};
    char path[PAGE_FOLDER];
    snprintf(path, sizeof(path), "%.200s/multilane-top.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(path))
        return fail_with(error, "no folder for the pages: %s: %s", path, strerror(errno));
    void (*before[])(int) = {signal(SIGINT, interrupt), signal(SIGTERM, interrupt)};
    bool is_good = pages_take(path, rank->pid, asked, &all, left, error);
    folder_remove(path);
    (void) signal(SIGINT, before[0]);
    (void) signal(SIGTERM, before[1]);
    if (interrupted)
        (void) raise(interrupted);
    if (is_good) {
        ranks_look(ranks, false);
        own_add(&all, ranks, asked);
        missing_say(&all, asked);
        ranks_free(ranks);
        *ranks = all;
    } else {
        ranks_free(&all);
    }
    return is_good;
}
