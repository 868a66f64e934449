/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the page of another process, takes a snapshot of it, and checks it. */
#include "common/report/page_take.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/model/number.h"

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
    DIR *folder = opendir(words_of("/proc/%d/fd", pid).text);
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

/* The bytes read, which page_check has to look at. Where the owner changes the page all the time,
 * or was stopped in the middle of a change, the last snapshot is as good as any. The fences keep
 * the two looks at the sequence around the copy. Partner: own_page_change and own_page_changed of
 * the PML. */
static size_t page_take(int fd, struct page *page)
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

/* --- looks at each member of a page ----------------------------------------------------------- */

static void limit(uint32_t *value, uint32_t most)
{
    if (*value > most)
        *value = most;
}

static void unknown_from(uint32_t *value, uint32_t first_unknown)
{
    if (*value >= first_unknown)
        *value = 0;
}

static void unknown_from8(uint8_t *value, uint8_t first_unknown)
{
    if (*value >= first_unknown)
        *value = 0;
}

/* Ends the text, and leaves in it only what every terminal prints. */
static void text_check(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            *text = '?';
}

static void wait_check(struct page_wait *wait)
{
    unknown_from(&wait->call, PAGE_CALLS);
    limit(&wait->row_count, PAGE_REQUESTS);
    for (uint32_t i = 0; i < wait->row_count; i++) {
        struct page_request *row = &wait->rows[i];
        unknown_from8(&row->kind, PAGE_REQUEST_KINDS);
        unknown_from8(&row->stage, PAGE_STAGES);
        unknown_from8(&row->collective, PAGE_COLLECTIVES);
        text_check(row->comm.name, sizeof(row->comm.name));
    }
}

static void messages_check(struct page_message *rows, uint32_t *count)
{
    limit(count, PAGE_MESSAGES);
    for (uint32_t i = 0; i < *count; i++) {
        unknown_from(&rows[i].collective, PAGE_COLLECTIVES);
        text_check(rows[i].comm.name, sizeof(rows[i].comm.name));
    }
}

static bool is_page(const struct page *page, size_t bytes, struct error_text *why)
{
    size_t least = offsetof(struct page, sequence);
    if (bytes < least || page->magic != PAGE_MAGIC)
        return fail_with(why, "its page is none of Multilane's");
    if (page->version != PAGE_VERSION)
        return fail_with(why,
                         "its page has version %u and this program reads version %u: use the "
                         "program of the Multilane that runs there",
                         page->version, PAGE_VERSION);
    return (bytes == sizeof(*page) && page->bytes == sizeof(*page)) ||
           fail_with(why, "its page has %zu bytes and should have %zu", bytes, sizeof(*page));
}

bool page_check(struct page *page, size_t bytes, struct error_text *why)
{
    if (!is_page(page, bytes, why))
        return false;
    text_check(page->host, sizeof(page->host));
    text_check(page->program, sizeof(page->program));
    limit(&page->wait_count, PAGE_WAITS);
    limit(&page->peer_count, PAGE_PEERS);
    limit(&page->lane_count, PAGE_LANES);
    limit(&page->trouble_count, PAGE_TROUBLES);
    limit(&page->waited_count, PAGE_WAITED);
    for (uint32_t i = 0; i < page->wait_count; i++)
        wait_check(&page->waits[i]);
    for (uint32_t i = 0; i < page->lane_count; i++)
        text_check(page->lanes[i].name, sizeof(page->lanes[i].name));
    for (uint32_t i = 0; i < page->trouble_count; i++) {
        unknown_from(&page->troubles[i].kind, PAGE_TROUBLES_KNOWN);
        text_check(page->troubles[i].lane, sizeof(page->troubles[i].lane));
        text_check(page->troubles[i].why, sizeof(page->troubles[i].why));
    }
    messages_check(page->posted, &page->posted_count);
    messages_check(page->unexpected, &page->unexpected_count);
    return true;
}

enum page_found page_read(int pid, struct page *page, struct error_text *why)
{
    enum page_found found;
    int fd = page_descriptor(pid, PAGE_FILE_NAME, O_RDONLY, &found);
    if (fd < 0)
        return found;
    size_t bytes = page_take(fd, page);
    close(fd);
    return page_check(page, bytes, why) ? PAGE_IS_READ : PAGE_REFUSED;
}
