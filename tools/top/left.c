/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what ranks left. */
#define _GNU_SOURCE
#include "tools/top/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file_name(const char *path)
{
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, PAGE_FILE_NAME, strlen(PAGE_FILE_NAME)) == 0;
}

bool left_is_at(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 &&
           (S_ISDIR(found.st_mode) || (S_ISREG(found.st_mode) && is_file_name(path)));
}

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
                      char why[PAGE_COMPLAINT])
{
    size_t of_page = bytes < sizeof(file->page) ? bytes : sizeof(file->page);
    if (!page_check(&file->page, of_page, why))
        return false;
    if (bytes != sizeof(*file)) {
        snprintf(why, PAGE_COMPLAINT, "it has %zu bytes and should have %zu", bytes, sizeof(*file));
        return false;
    }
    struct rank *rank = ranks_add(ranks, file->page.pid);
    if (!rank || !left_add(left, file)) {
        snprintf(why, PAGE_COMPLAINT, "no memory");
        return false;
    }
    rank_fill(rank, &file->page);
    return true;
}

static bool file_load(const char *path, struct ranks *ranks, struct left *left, char *why,
                      size_t size)
{
    char wrong[PAGE_COMPLAINT];
    struct page_file *file = malloc(sizeof(*file) + 1); /* one more byte: it is too long */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = file && fd >= 0 ? read(fd, file, sizeof(*file) + 1) : -1;
    if (got < 0)
        snprintf(wrong, sizeof(wrong), "%s", file ? strerror(errno) : "no memory");
    bool is_good = got >= 0 && file_take(file, (size_t) got, ranks, left, wrong);
    if (!is_good)
        snprintf(why, size, "%s: %s", path, wrong);
    if (fd >= 0)
        close(fd);
    free(file);
    return is_good;
}

/* A file that cannot be used is named, and hides no other. */
static void folder_load(DIR *folder, const char *path, struct ranks *ranks, struct left *left)
{
    char name[PATH_MAX], why[PATH_MAX + PAGE_COMPLAINT];
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (!is_file_name(entry->d_name))
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (!file_load(name, ranks, left, why, sizeof(why)))
            fprintf(stderr, "multilane-top: %s\n", why);
    }
}

bool left_load(const char *path, struct ranks *ranks, struct left *left, char *why, size_t size)
{
    DIR *folder = opendir(path);
    bool is_good = folder || file_load(path, ranks, left, why, size);
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
