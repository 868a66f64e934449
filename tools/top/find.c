/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks through /proc for ranks, reads what they show, and chooses among them. */
#include "tools/top/find.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/model/number.h"
#include "common/lane/kernel_text.h"
#include "common/lock/clock.h"

/* --- one process ------------------------------------------------------------------------------ */

static void stat_sample(int pid, struct sample *sample)
{
    char text[1024], state;
    unsigned long long faults, user, system;
    const char *stat = kernel_process(pid, text, sizeof(text));
    sample->state = '\0';
    if (!stat || sscanf(stat, "%c %*d %*d %*d %*d %*d %*u %*u %*u %llu %*u %llu %llu", &state,
                        &faults, &user, &system) != 4)
        return;
    sample->state = state;
    sample->faults = faults;
    sample->cpu_ticks = user + system;
}

/* What /proc/PID/status says behind that word; empty: nothing. */
static struct words status_of(int pid, const char *word)
{
    char text[4096];
    (void) kernel_text(text, sizeof(text), "/proc/%d/status", pid);
    const char *line = strstr(text, words_of("\n%s:", word).text);
    return words_of("%.*s", line ? (int) strcspn(line + 1, "\n") : 0, line ? line + 1 : "");
}

static void swap_sample(int pid, struct sample *sample)
{
    unsigned long long swapped;
    bool is_known = sscanf(status_of(pid, "VmSwap").text, "VmSwap: %llu", &swapped) == 1;
    sample->swapped_kb = is_known ? swapped : 0;
}

static void threads_sample(int pid, struct sample *sample)
{
    char text[1024];
    DIR *folder = opendir(words_of("/proc/%d/task", pid).text);
    struct dirent *entry;
    sample->running = 0;
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        const char *stat = kernel_process(atoi(entry->d_name), text, sizeof(text));
        sample->running += stat && stat[0] == 'R';
    }
    if (folder)
        closedir(folder);
}

/* A child that a rank has forked has its descriptors too, and is no rank. The last of its numbers
 * is that in its own namespace. */
static bool is_owner(int pid, const struct page *page)
{
    const struct words numbers = status_of(pid, "NSpid");
    const char *last = strrchr(numbers.text, '\t');
    return (last ? atoi(last) : pid) == page->pid;
}

enum page_found sample_read(int pid, struct sample *sample, struct error_text *why)
{
    enum page_found found = page_read(pid, &sample->page, why);
    sample->now_ns = clock_read_ns(CLOCK_MONOTONIC);
    if (found != PAGE_IS_READ)
        return found;
    if (!is_owner(pid, &sample->page))
        return PAGE_NONE;
    stat_sample(pid, sample);
    swap_sample(pid, sample);
    threads_sample(pid, sample);
    return sample->state ? PAGE_IS_READ : PAGE_GONE;
}

/* --- all processes ---------------------------------------------------------------------------- */

struct scan {
    struct ranks *ranks;
    struct error_text refused; /* why a page that is there cannot be used; or empty */
};

static void process_look(struct scan *scan, int pid)
{
    struct error_text why;
    struct rank *rank = ranks_add(scan->ranks, pid);
    if (!rank)
        return;
    enum page_found found = sample_read(pid, &rank->second, &why);
    if (found == PAGE_REFUSED)
        fail_with(&scan->refused, "process %d: %.200s", pid, why.text);
    if (found != PAGE_IS_READ)
        scan->ranks->count--;
    else
        rank->first = rank->second;
}

static void scan_all(struct scan *scan)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (isdigit((unsigned char) entry->d_name[0]))
            process_look(scan, atoi(entry->d_name));
    if (folder)
        closedir(folder);
    ranks_sort(scan->ranks);
}

/* --- the choice ------------------------------------------------------------------------------- */

static bool is_below(int pid, long ancestor)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++, pid = kernel_parent(pid))
        if (pid == ancestor)
            return true;
    return false;
}

/* Keeps the ranks of the job of that number; or, where there is none, of the jobs below the process
 * of that number. */
static void keep(struct ranks *ranks, unsigned long number)
{
    size_t kept = 0;
    bool is_job = false;
    for (size_t i = 0; i < ranks->count; i++)
        is_job |= ranks->list[i].second.page.me.job == number;
    unsigned long rank_job = ULONG_MAX;
    for (size_t i = 0; i < ranks->count; i++)
        if ((unsigned long) ranks->list[i].pid == number)
            rank_job = ranks->list[i].second.page.me.job;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct rank *rank = &ranks->list[i];
        uint32_t job = rank->second.page.me.job;
        bool is_wanted = is_job                  ? job == number
                         : rank_job != ULONG_MAX ? job == rank_job
                                                 : is_below(rank->pid, (long) number);
        if (is_wanted)
            ranks->list[kept++] = *rank;
    }
    ranks->count = kept;
}

/* Is the process in another PID namespace than this program? */
static bool is_elsewhere(long pid)
{
    struct stat own, other;
    return stat("/proc/self/ns/pid", &own) == 0 &&
           stat(words_of("/proc/%ld/ns/pid", pid).text, &other) == 0 && own.st_ino != other.st_ino;
}

static bool is_forbidden(long pid)
{
    struct sample *sample = malloc(sizeof(*sample));
    bool is_one = sample && sample_read((int) pid, sample, NULL) == PAGE_FORBIDDEN;
    free(sample);
    return is_one;
}

static bool none_fail(const struct scan *scan, const char *number, struct error_text *error)
{
    long pid = number ? strtol(number, NULL, 10) : 0;
    if (scan->refused.text[0])
        return fail_with(error, "%s", scan->refused.text);
    if (!number)
        return fail_with(
            error,
            "no process that may be read here is a rank of Multilane: is the job on another "
            "node, in a container, or another user's; does it run with --mca pml multilane?");
    if (access(words_of("/proc/%ld", pid).text, F_OK) != 0)
        return fail_with(error,
                         "there is no job and no process %s here: is it on another node, or on the "
                         "other side of a container's wall?",
                         number);
    if (is_forbidden(pid))
        return fail_with(error,
                         "process %s belongs to another user, or is protected: it cannot be read",
                         number);
    if (is_elsewhere(pid))
        return fail_with(error,
                         "process %s is in a container, and no rank of Multilane as seen from "
                         "outside: start multilane-top in the container",
                         number);
    return fail_with(error,
                     "process %s is no rank of Multilane, and none is below it: does it run with "
                     "--mca pml multilane, and has it come through MPI_Init?",
                     number);
}

static bool several_fail(const struct ranks *ranks, struct error_text *error)
{
    uint32_t last = 0;
    fail_with(error, "there are several jobs; name one, or use --all:");
    for (size_t i = 0; i < ranks->count; i++) {
        const struct page *page = &ranks->list[i].second.page;
        if (i && page->me.job == last)
            continue;
        last = page->me.job;
        text_more(error->text, sizeof(error->text), "%s %u (%s, %u ranks)", i ? "," : "", last,
                  page->program, page->job_size);
    }
    return false;
}

bool ranks_find_all(const struct choice *choice, struct ranks *ranks, struct error_text *error)
{
    struct scan scan = {.ranks = ranks};
    if (choice->number && (!isdigit((unsigned char) choice->number[0]) ||
                           choice->number[strspn(choice->number, "0123456789")] != '\0'))
        return fail_with(error, "\"%s\" is neither a job nor a process: both are numbers",
                         choice->number);
    scan_all(&scan);
    if (choice->number)
        keep(ranks, strtoul(choice->number, NULL, 10));
    if (ranks->count == 0)
        return none_fail(&scan, choice->number, error);
    return choice->all || choice->number || !ranks_have_jobs(ranks) || several_fail(ranks, error);
}

void ranks_look(struct ranks *ranks, bool moves)
{
    for (size_t i = 0; i < ranks->count; i++) {
        struct rank *rank = &ranks->list[i];
        if (moves)
            rank->first = rank->second;
        struct page_process me = rank->second.page.me;
        enum page_found found = sample_read(rank->pid, &rank->second, NULL);
        if (found == PAGE_IS_READ && page_process_is(&rank->second.page.me, &me))
            continue;
        rank->second = rank->first;
        rank->second.state = '\0';
    }
}
