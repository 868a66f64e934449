/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the snapshot, asks the system. */
#define _GNU_SOURCE
#include "tools/top/page_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/lane/kernel_text.h"
#include "common/lock/clock.h"

/* --- what it is asked --------------------------------------------------------------------------
 */

/* The lock is between two programs like this one: the process only reads. */
static bool word_change(int fd, uint64_t bits, bool is_set)
{
    uint64_t word = 0; /* also where no lane was ever drained */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || pread(fd, &word, sizeof(word), 0) < 0)
        return false;
    word = is_set ? word | bits : word & ~bits;
    return pwrite(fd, &word, sizeof(word), 0) == (ssize_t) sizeof(word);
}

bool drain_change(int pid, uint64_t lanes, bool is_drain)
{
    enum page_found found;
    int fd = page_descriptor(pid, DRAIN_FILE_NAME, O_RDWR, &found);
    if (fd < 0)
        return false;
    bool is_done = word_change(fd, lanes, is_drain);
    int error = errno;
    close(fd);
    errno = error;
    return is_done;
}

int pages_ask(int pid, const char *folder)
{
    enum page_found found;
    struct page_asked asked = {.number = 0};
    int fd = page_descriptor(pid, DRAIN_FILE_NAME, O_RDWR, &found);
    size_t head = offsetof(struct page_asked, folder);
    snprintf(asked.folder, sizeof(asked.folder), "%s", folder);
    bool is_done = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                   pread(fd, &asked, head, 0) >= 0 &&
                   pwrite(fd, asked.folder, sizeof(asked.folder), (off_t) head) > 0;
    asked.number += asked.number == UINT32_MAX ? 2 : 1; /* never 0 */
    is_done = is_done && pwrite(fd, &asked, head, 0) == (ssize_t) head;
    if (is_done)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

const char *ask_error(int error)
{
    return error == EWOULDBLOCK ? "another multilane-top is asking it" : strerror(error);
}

/* --- the process ------------------------------------------------------------------------------ */

/* What follows the program's name, which may hold anything, in a stat file; null: not there. */
static const char *stat_rest(const char *text)
{
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end + 2 : NULL;
}

int process_parent(int pid)
{
    char text[1024];
    int parent = 0;
    (void) kernel_text(text, sizeof(text), "/proc/%d/stat", pid);
    const char *stat = stat_rest(text);
    return stat && sscanf(stat, "%*c %d", &parent) == 1 ? parent : 0;
}

static void stat_sample(int pid, struct sample *sample)
{
    char text[1024], state;
    unsigned long long faults, user, system;
    (void) kernel_text(text, sizeof(text), "/proc/%d/stat", pid);
    const char *stat = stat_rest(text);
    sample->state = '\0';
    if (!stat || sscanf(stat, "%c %*d %*d %*d %*d %*d %*u %*u %*u %llu %*u %llu %llu", &state,
                        &faults, &user, &system) != 4)
        return;
    sample->state = state;
    sample->faults = faults;
    sample->cpu_ticks = user + system;
}

static void swap_sample(int pid, struct sample *sample)
{
    char text[4096];
    unsigned long long swapped;
    (void) kernel_text(text, sizeof(text), "/proc/%d/status", pid);
    const char *line = strstr(text, "\nVmSwap:");
    sample->swapped_kb = line && sscanf(line, " VmSwap: %llu", &swapped) == 1 ? swapped : 0;
}

static void threads_sample(int pid, struct sample *sample)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    sample->running = 0;
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        (void) kernel_text(text, sizeof(text), "%s/%s/stat", path, entry->d_name);
        const char *stat = stat_rest(text);
        sample->running += stat && stat[0] == 'R';
    }
    if (folder)
        closedir(folder);
}

/* A child that a rank has forked has its descriptors too, and is no rank. */
static bool is_owner(int pid, const struct page *page)
{
    char text[4096];
    int last = pid, length;
    (void) kernel_text(text, sizeof(text), "/proc/%d/status", pid);
    const char *line = strstr(text, "\nNSpid:");
    if (line)
        for (line += strlen("\nNSpid:"); *line && *line != '\n'; line += length)
            if (sscanf(line, " %d%n", &last, &length) != 1)
                break;
    return last == page->pid;
}

enum page_found sample_read(int pid, struct sample *sample, char why[PAGE_COMPLAINT])
{
    enum page_found found;
    int fd = page_descriptor(pid, PAGE_FILE_NAME, O_RDONLY, &found);
    if (fd < 0)
        return found;
    size_t bytes = page_take(fd, &sample->page);
    close(fd);
    sample->now_ns = clock_read_ns(CLOCK_MONOTONIC);
    if (!page_check(&sample->page, bytes, why))
        return PAGE_REFUSED;
    if (!is_owner(pid, &sample->page))
        return PAGE_NONE;
    stat_sample(pid, sample);
    swap_sample(pid, sample);
    threads_sample(pid, sample);
    return sample->state ? PAGE_IS_READ : PAGE_GONE;
}
