/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the descriptor, takes the snapshot, asks the system. */
#define _GNU_SOURCE
#include "tools/top/page_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/lane/kernel_text.h"
#include "common/lock/clock.h"

#define TRIES 10 /* of a snapshot that the owner does not change meanwhile */

/* --- the page --------------------------------------------------------------------------------- */

/* In memory, or the beginning of a file (pml_multilane_blackbox). */
static bool is_page_link(int folder, const char *name)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(folder, name, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    const char *file = strrchr(target, '/');
    return strncmp(target, "/memfd:" PAGE_FILE_NAME, strlen("/memfd:" PAGE_FILE_NAME)) == 0 ||
           (file && strncmp(file, "/" PAGE_FILE_NAME ".", strlen("/" PAGE_FILE_NAME ".")) == 0);
}

/* A descriptor of the page, for reading; -1: none, with *found. */
static int page_open(int pid, enum page_found *found)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    if (!folder) {
        *found = errno == EACCES || errno == EPERM ? PAGE_FORBIDDEN : PAGE_GONE;
        return -1;
    }
    int fd = -1;
    struct dirent *entry;
    while (fd < 0 && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && is_page_link(dirfd(folder), entry->d_name))
            fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    closedir(folder);
    *found = PAGE_NONE;
    return fd;
}

static uint64_t sequence_read(int fd)
{
    uint64_t sequence = 1;
    ssize_t got = pread(fd, &sequence, sizeof(sequence), offsetof(struct page, sequence));
    return got == (ssize_t) sizeof(sequence) ? sequence : 1;
}

/* The bytes read. Where the owner changes the page all the time, or was stopped in the middle of a
 * change, the last snapshot is as good as any: each member is checked. The fences keep the two
 * looks at the sequence around the copy. Partner: own_page_change and own_page_changed of the PML.
 */
static size_t page_read(int fd, struct page *page)
{
    ssize_t got = 0;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        uint64_t before = sequence_read(fd);
        atomic_thread_fence(memory_order_acquire);
        got = pread(fd, page, sizeof(*page), 0);
        atomic_thread_fence(memory_order_acquire);
        if (got <= 0 || (before % 2 == 0 && sequence_read(fd) == before))
            break;
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    return got > 0 ? (size_t) got : 0;
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
    int fd = page_open(pid, &found);
    if (fd < 0)
        return found;
    size_t bytes = page_read(fd, &sample->page);
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
