/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the descriptor, and takes the snapshot. */
#define _GNU_SOURCE
#include "common/report/page_take.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 10 /* of a snapshot that the owner does not change meanwhile */

/* In memory, or, the page, the beginning of a file (pml_multilane_blackbox). */
static bool is_link_to(const char *file, int folder, const char *name)
{
    char target[PATH_MAX];
    const char *const before = "/memfd:";
    ssize_t length = readlinkat(folder, name, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    const char *last = strrchr(target, '/');
    size_t length_of_file = strlen(file);
    if (strncmp(target, before, strlen(before)) == 0)
        return strncmp(target + strlen(before), file, length_of_file) == 0;
    return last && strncmp(last + 1, file, length_of_file) == 0 && last[1 + length_of_file] == '.';
}

int page_descriptor(int pid, const char *file, int mode, enum page_found *found)
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
    errno = 0;
    while (fd < 0 && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && is_link_to(file, dirfd(folder), entry->d_name))
            fd = openat(dirfd(folder), entry->d_name, mode | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 && errno == 0 ? ENOENT : errno;
    closedir(folder);
    errno = error;
    *found = PAGE_NONE;
    return fd;
}

static uint64_t sequence_read(int fd)
{
    uint64_t sequence = 1;
    ssize_t got = pread(fd, &sequence, sizeof(sequence), offsetof(struct page, sequence));
    return got == (ssize_t) sizeof(sequence) ? sequence : 1;
}

/* The fences keep the two looks at the sequence around the copy. Partner: own_page_change and
 * own_page_changed of the PML. */
size_t page_take(int fd, struct page *page)
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
