/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the page, and its sequence. */
#include "base/own_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/compat/threads.h"
#include "common/lane/host.h"
#include "common/lock/clock.h"
#include "common/compat/tool_event.h"

struct page *own_page;
struct page_event *own_events;
_Atomic uint64_t own_drain;
static _Atomic uint32_t own_asks; /* page_asked.number; relaxed: it is read again */
static _Atomic uint32_t event_count;
static int page_fd = -1, drain_fd = -1;
static char file_path[PATH_MAX]; /* empty: there is no file */

/* Older systems do not know it. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* After the mapping: from then on no other process can write to it, where the kernel knows that
 * seal (5.1). */
static void seal(int fd)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        (void) fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL);
}

/* Maps what was opened as page_fd, or closes it. */
static void *page_fd_map(bool has_room, size_t bytes, const char **why)
{
    void *memory = MAP_FAILED;
    if (has_room)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
    if (memory != MAP_FAILED)
        return memory;
    *why = strerror(errno);
    if (page_fd >= 0)
        close(page_fd);
    page_fd = -1;
    return NULL;
}

static bool page_map(const char **why)
{
    page_fd = host_memory(PAGE_FILE_NAME);
    own_page = page_fd_map(page_fd >= 0 && host_allows_file(sizeof(*own_page)) &&
                               ftruncate(page_fd, sizeof(*own_page)) == 0,
                           sizeof(*own_page), why);
    if (own_page)
        seal(page_fd);
    return own_page;
}

/* Empty until a lane is to be drained; its user alone may write to it. */
static void drain_open(void)
{
    drain_fd = host_memory(DRAIN_FILE_NAME);
}

/* What is not there whole is not asked. */
void own_page_drain_read(void)
{
    struct page_asked asked = {0};
    const size_t head = offsetof(struct page_asked, folder);
    if (drain_fd < 0)
        return;
    ssize_t got = pread(drain_fd, &asked, head, 0);
    if (got < (ssize_t) sizeof(asked.drained))
        asked.drained = 0;
    if (got < (ssize_t) head)
        asked.number = 0;
    atomic_store_explicit(&own_drain, asked.drained, memory_order_relaxed); /* own_page_drain */
    atomic_store_explicit(&own_asks, asked.number, memory_order_relaxed);
}

uint32_t own_page_asks(void)
{
    return atomic_load_explicit(&own_asks, memory_order_relaxed);
}

void own_page_folder(char path[PAGE_FOLDER])
{
    ssize_t got = pread(drain_fd, path, PAGE_FOLDER - 1, offsetof(struct page_asked, folder));
    path[got > 0 ? got : 0] = '\0';
}

/* The file has its blocks from the start: on a full disk a store would end the process. */
static bool file_map(const char *folder, struct page_process me, const char **why)
{
    char absolute[PATH_MAX]; /* the program may change its folder before it ends */
    int length = snprintf(file_path, sizeof(file_path), "%s/" PAGE_FILE_NAME ".%u.%u",
                          realpath(folder, absolute) ? absolute : folder, me.job, me.rank);
    errno = ENAMETOOLONG;
    if (length > 0 && (size_t) length < sizeof(file_path)) {
        (void) unlink(file_path); /* of a job that had the same number */
        page_fd = open(file_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    bool is_made = page_fd >= 0;
    struct page_file *file =
        page_fd_map(is_made && host_allows_file(sizeof(*file)) &&
                        (errno = posix_fallocate(page_fd, 0, sizeof(*file))) == 0,
                    sizeof(*file), why);
    if (file) {
        own_page = &file->page;
        own_events = file->events;
        return true;
    }
    if (is_made)
        (void) unlink(file_path);
    file_path[0] = '\0';
    return false;
}

bool own_page_open(const char *folder, struct page_process me, const char **why)
{
    const char *why_not_read = NULL;
    *why = NULL;
    if (!(folder[0] && file_map(folder, me, why)) && !page_map(&why_not_read))
        own_page = calloc(1, sizeof(*own_page));
    if (why_not_read)
        *why = why_not_read;
    if (!own_page)
        return false;
    if (page_fd >= 0)
        drain_open();
    atomic_store_explicit(&event_count, 0, memory_order_relaxed);
    own_page->magic = PAGE_MAGIC;
    own_page->version = PAGE_VERSION;
    own_page->bytes = sizeof(*own_page);
    return true;
}

void own_page_close(void)
{
    if (page_fd >= 0) {
        munmap(own_page, own_events ? sizeof(struct page_file) : sizeof(*own_page));
        close(page_fd);
    } else {
        free(own_page);
    }
    if (file_path[0])
        (void) unlink(file_path);
    file_path[0] = '\0';
    if (drain_fd >= 0)
        close(drain_fd);
    own_page = NULL;
    own_events = NULL;
    page_fd = drain_fd = -1;
    atomic_store_explicit(&own_drain, 0, memory_order_relaxed);
    atomic_store_explicit(&own_asks, 0, memory_order_relaxed);
}

void own_page_copy(struct page *copy)
{
    const size_t apart = offsetof(struct page, rounds), rest = offsetof(struct page, started_ns);
    memcpy(copy, own_page, apart);
    memcpy((char *) copy + rest, (char *) own_page + rest, sizeof(*copy) - rest);
    copy->rounds =
        atomic_load_explicit((_Atomic uint64_t *) &own_page->rounds, memory_order_relaxed);
    copy->progressed_ns =
        atomic_load_explicit((_Atomic uint64_t *) &own_page->progressed_ns, memory_order_relaxed);
}

/* --- events ----------------------------------------------------------------------------------- */

/* The clock is read once for so many; rounds of progress read it, too. */
#define EVENTS_PER_CLOCK 8u

/* Relaxed, both: a time that is a little old is as good. */
static uint64_t event_time(uint32_t number)
{
    static _Atomic uint64_t time_ns;
    if (number % EVENTS_PER_CLOCK == 0)
        atomic_store_explicit(&time_ns, clock_read_ns(CLOCK_MONOTONIC_COARSE),
                              memory_order_relaxed);
    uint64_t mine = atomic_load_explicit(&time_ns, memory_order_relaxed);
    uint64_t of_round = atomic_load_explicit((const _Atomic uint64_t *) &own_page->progressed_ns,
                                             memory_order_relaxed);
    return mine > of_round ? mine : of_round;
}

/* Several threads draw their numbers from it. */
static uint32_t number_draw(void)
{
    if (opal_using_threads())
        return atomic_fetch_add_explicit(&event_count, 1, memory_order_relaxed) + 1;
    uint32_t number = atomic_load_explicit(&event_count, memory_order_relaxed) + 1;
    atomic_store_explicit(&event_count, number, memory_order_relaxed);
    return number;
}

struct page_event *own_event_new(enum page_event_kind kind)
{
    uint32_t number = number_draw();
    struct page_event *event = &own_events[number % PAGE_EVENTS];
    *event = (struct page_event){
        .time_ns = event_time(number), .number = number, .kind = (uint8_t) kind};
    return event;
}

/* --- the sequence ------------------------------------------------------------------------------
 */

static _Atomic uint64_t *sequence(void)
{
    return (_Atomic uint64_t *) &own_page->sequence;
}

/* Odd first, then the fence, so that a reader that sees a later change sees the odd number, or a
 * higher one. Partner: page_take. */
void own_page_change(void)
{
    uint64_t before = atomic_load_explicit(sequence(), memory_order_relaxed);
    atomic_store_explicit(sequence(), before + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

void own_page_changed(void)
{
    uint64_t before = atomic_load_explicit(sequence(), memory_order_relaxed);
    /* Release: a reader that sees the even number sees the changes. Partner: as above. */
    atomic_store_explicit(sequence(), before + 1, memory_order_release);
}

/* --- events that a tool can wait for ---------------------------------------------------------- */

/* The table of events for tools. */

static struct {
    const char *name, *help;
    void *event; /* of Open MPI; written at registration, before there are threads */
} events[TOOL_EVENTS] = {
    [TOOL_LANE_LOST] = {"lane_lost", "A lane to a peer was left out", NULL},
    [TOOL_LANE_RETURNED] = {"lane_returned", "A lane that was left out is used again", NULL},
    [TOOL_LANE_WORSE] = {"lane_worse",
                         "A lane to a peer carries less, or loses more, than it did before", NULL},
    [TOOL_PEER_SUSPECTED] =
        {"peer_suspected",
         "Nothing that is under way to a peer over a lane has arrived for half of "
         "pml_multilane_suspect_ms, and it is asked over each lane",
         NULL},
    [TOOL_PLAN_CHANGED] = {"plan_changed",
                           "Later messages to a peer follow another plan, since its lanes, their "
                           "round trips or devices have changed",
                           NULL},
};

int tool_events_register(const mca_base_component_t *component)
{
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < TOOL_EVENTS && rc == OMPI_SUCCESS; i++)
        rc = compat_event_register(component, events[i].name, events[i].help, &events[i].event);
    return rc;
}

void tool_event_raise(enum tool_event event, const opal_process_name_t *peer, int lane)
{
    struct compat_event_data data = {.job = peer->jobid, .rank = peer->vpid, .lane = lane + 1};
    compat_event_raise(events[event].event, &data);
    if (!own_events)
        return;
    struct page_event *kept = own_event_new(PAGE_EVENT_LANE);
    kept->rank = (int32_t) peer->vpid;
    kept->tag = lane;
    kept->first = (uint16_t) event;
}
