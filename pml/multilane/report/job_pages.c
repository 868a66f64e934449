/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the pages of all processes of the job together where a tool asks one of them (struct
 * page_asked in multilane/page.h):
 *
 *   the process asked   job_pages_look    asks all others          WIRE_PAGE_ASK
 *   each process        job_pages_look    answers by its page      WIRE_PAGE, one for each block
 *   the process asked   job_pages_came    writes a file of each page that is whole
 *
 * A process that computes outside MPI does not look: the one before it on its node that does
 * answers for it as well. Where all of a node compute the tool alone waits for them.
 */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/multilane.h"
#include "base/own_page.h"
#include "contact/contact.h"
#include "delivery/control.h"
#include "request/request.h"
#include "common/lane/host.h"
#include "common/lane/kernel_text.h"
#include "common/lock/clock.h"
#include "common/report/page_take.h"

#define BLOCKS ((sizeof(struct page) + WIRE_PAGE_BYTES - 1) / WIRE_PAGE_BYTES)

/* So many processes are asked in a look, of which there are ten a second: their answers come while
 * the program's messages do. */
#define ASKED_IN_A_LOOK 64

/* So many looks after the last one was asked no more answers are taken. */
#define LOOKS_MOST 150

/* Processes that wait for an answer at one time; more of them ask in vain, which their tools see.
 */
#define ASKERS 8

struct assembly {
    struct peer *from; /* two may answer for one that has just begun to compute */
    bool has[BLOCKS];
    uint32_t count; /* of blocks that are there */
    struct page page;
};

static opal_mutex_t pages_lock = OPAL_MUTEX_STATIC_INIT; /* of what follows */
static struct {
    _Atomic bool inside; /* a thread is in job_pages_look */
    /* Written with the lock: by the thread inside, but for is_open. Read without it as hints. */
    _Atomic uint64_t is_open; /* there are lanes */
    _Atomic uint64_t number;  /* of what was asked last; 0: nothing */
    _Atomic uint64_t is_asking;
    int folder;     /* where pages go */
    uint32_t next;  /* the process to ask next, */
    uint32_t looks; /* and looks since the last one was; for the thread inside */
    struct assembly **parts;
    struct asker {
        struct peer *peer;
        uint32_t number;
    } askers[ASKERS];
    _Atomic uint64_t asker_count; /* likewise */
} pages;

/* --- processes of this node that compute ------------------------------------------------------ */

/* A process that has looked for messages in this time answers itself. */
#define LOOKS_NS UINT64_C(300000000)

/* The process of that rank, if it is on this node; else 0. Those on this node are known. */
static uint32_t sibling_pid(uint32_t rank)
{
    opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = rank};
    ompi_proc_t *proc = (ompi_proc_t *) ompi_proc_lookup(name);
    return proc && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) ? record_pid(proc) : 0;
}

/* A letter, as ps shows it. */
static char state_of(uint32_t pid)
{
    char text[1024];
    const char *stat = kernel_process((int) pid, text, sizeof(text));
    return stat ? *stat : 0;
}

static bool sibling_page_read(uint32_t pid, uint32_t rank, struct page *page)
{
    return page_read((int) pid, page, NULL) == PAGE_IS_READ && page->me.rank == rank &&
           page->me.job == multilane.me.jobid;
}

/* The page of the next process on this node, after `*rank`, which does not look for messages now.
 * False: the next one looks, so it answers itself; or there is none. */
static bool sibling_page_next(uint32_t *rank, struct page *page)
{
    const uint32_t me = multilane.me.vpid, size = multilane.local_peer_count;
    if (ompi_process_info.num_local_peers == 0)
        return false;
    for (*rank = (*rank + 1) % size; *rank != me; *rank = (*rank + 1) % size) {
        uint32_t pid = sibling_pid(*rank);
        if (!pid || !sibling_page_read(pid, *rank, page))
            continue;
        page->state = (unsigned char) state_of(pid);
        if (page->state) /* else it has just ended */
            return clock_read_ns(CLOCK_MONOTONIC) > page->progressed_ns + LOOKS_NS;
    }
    return false;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* With the lock held. */
static void asking_end(void)
{
    for (uint32_t rank = 0; pages.parts && rank < multilane.local_peer_count; rank++)
        free(pages.parts[rank]);
    free(pages.parts);
    pages.parts = NULL;
    if (counter_read(&pages.is_asking))
        close(pages.folder);
    counter_set(&pages.is_asking, false);
}

void job_pages_begin(void)
{
    OPAL_THREAD_LOCK(&pages_lock);
    counter_set(&pages.is_open, true);
    OPAL_THREAD_UNLOCK(&pages_lock);
}

void job_pages_end(void)
{
    OPAL_THREAD_LOCK(&pages_lock);
    counter_set(&pages.is_open, false);
    asking_end();
    counter_set(&pages.number, 0);
    counter_set(&pages.asker_count, 0);
    OPAL_THREAD_UNLOCK(&pages_lock);
}

/* As pml_multilane_blackbox leaves it, with no events. It has its name when it is whole. */
static void page_write(const struct page *page)
{
    char name[64], whole[64];
    snprintf(name, sizeof(name), "part.%u", page->me.rank);
    snprintf(whole, sizeof(whole), PAGE_FILE_NAME ".%u.%u", page->me.job, page->me.rank);
    int fd = openat(pages.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return; /* the tool has gone */
    if (write(fd, page, sizeof(*page)) == (ssize_t) sizeof(*page) &&
        ftruncate(fd, sizeof(struct page_file)) == 0)
        (void) renameat(pages.folder, name, pages.folder, whole);
    close(fd);
}

/* The user's own folder, which no other may write; -1 and errno. */
static int folder_open(const char *path)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &found) == 0 && found.st_uid == geteuid() && !(found.st_mode & 077))
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = EPERM;
    }
    return -1;
}

/* Null: no memory. */
static struct page *page_copy(void)
{
    struct page *copy = malloc(sizeof(*copy));
    if (copy) {
        OPAL_THREAD_LOCK(&wait_stories.lock); /* page_fill */
        own_page_copy(copy);
        OPAL_THREAD_UNLOCK(&wait_stories.lock);
    }
    return copy;
}

static void asking_begin(uint32_t number)
{
    char path[PAGE_FOLDER];
    struct page *own = page_copy();
    own_page_folder(path);
    OPAL_THREAD_LOCK(&pages_lock);
    asking_end();
    counter_set(&pages.number, number);
    pages.next = pages.looks = 0;
    /* A file above the limit would end this process by a signal. */
    pages.folder = host_allows_file(sizeof(struct page_file)) ? folder_open(path) : -1;
    counter_set(&pages.is_asking, pages.folder >= 0);
    if (pages.folder < 0)
        opal_output_verbose(10, ompi_pml_base_framework.framework_output,
                            "multilane: the pages of the job are not brought together in %s: %s",
                            path, strerror(errno));
    else
        pages.parts = calloc(multilane.local_peer_count, sizeof(struct assembly *));
    if (pages.parts && own)
        page_write(own);
    else
        asking_end();
    OPAL_THREAD_UNLOCK(&pages_lock);
    free(own);
}

static void others_ask(void)
{
    const struct wire_page_ask ask = {.number = (uint32_t) counter_read(&pages.number)};
    for (int i = 0; i < ASKED_IN_A_LOOK && pages.next < multilane.local_peer_count; i++) {
        uint32_t rank = pages.next++;
        opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = rank};
        struct peer *peer = rank == multilane.me.vpid ? NULL : peer_contact(name, NULL);
        if (peer && peer_is_reachable(peer) && !peer_is_gone(peer))
            control_send(peer_control_lane(peer), WIRE_PAGE_ASK, &ask, sizeof(ask));
    }
}

/* --- answers ---------------------------------------------------------------------------------- */

void job_pages_asked(struct peer *peer, const struct wire_page_ask *ask)
{
    OPAL_THREAD_LOCK(&pages_lock);
    uint64_t count = counter_read(&pages.asker_count), i = 0;
    while (i < count && pages.askers[i].peer != peer)
        i++;
    if (counter_read(&pages.is_open) && i < ASKERS) { /* of one peer the last question counts */
        pages.askers[i] = (struct asker){peer, ask->number};
        counter_set(&pages.asker_count, i < count ? count : count + 1);
    }
    OPAL_THREAD_UNLOCK(&pages_lock);
}

static bool is_empty(const unsigned char *bytes)
{
    for (size_t i = 0; i < WIRE_PAGE_BYTES; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Most rows of a page are not in use. */
static void page_send(const struct asker *asker, const struct page *page)
{
    struct wire_page part = {.number = asker->number, .rank = page->me.rank};
    unsigned char *bytes = calloc(BLOCKS, WIRE_PAGE_BYTES);
    if (!bytes)
        return;
    memcpy(bytes, page, sizeof(*page));
    for (size_t i = 0; i < BLOCKS; i++)
        part.blocks += !is_empty(bytes + i * WIRE_PAGE_BYTES);
    for (size_t i = 0; i < BLOCKS && peer_is_reachable(asker->peer) && !peer_is_gone(asker->peer);
         i++) {
        if (is_empty(bytes + i * WIRE_PAGE_BYTES))
            continue;
        part.block = (uint16_t) i;
        memcpy(part.bytes, bytes + i * WIRE_PAGE_BYTES, WIRE_PAGE_BYTES);
        control_send(peer_control_lane(asker->peer), WIRE_PAGE, &part, sizeof(part));
    }
    free(bytes);
}

static void answer(const struct asker *asker)
{
    struct page *page = page_copy();
    if (page)
        page_send(asker, page);
    for (uint32_t rank = multilane.me.vpid; page && sibling_page_next(&rank, page);)
        page_send(asker, page);
    free(page);
}

static void askers_answer(void)
{
    struct asker asker;
    uint64_t left;
    do {
        OPAL_THREAD_LOCK(&pages_lock);
        left = counter_read(&pages.asker_count);
        if (left) {
            asker = pages.askers[left - 1];
            counter_set(&pages.asker_count, left - 1);
        }
        OPAL_THREAD_UNLOCK(&pages_lock);
        if (left)
            answer(&asker);
    } while (left > 1);
}

/* With the lock held. */
static void part_add(struct assembly **slot, struct peer *peer, const struct wire_page *part)
{
    struct assembly *assembly = *slot = *slot ? *slot : calloc(1, sizeof(**slot));
    size_t at = (size_t) part->block * WIRE_PAGE_BYTES;
    size_t left = sizeof(assembly->page) - at;
    if (assembly && !assembly->from)
        assembly->from = peer;
    if (!assembly || assembly->from != peer ||
        assembly->has[part->block]) /* twice, where a lane was lost */
        return;
    assembly->has[part->block] = true;
    memcpy((unsigned char *) &assembly->page + at, part->bytes,
           left < WIRE_PAGE_BYTES ? left : WIRE_PAGE_BYTES);
    if (++assembly->count < part->blocks)
        return;
    if (assembly->page.me.rank == part->rank && assembly->page.me.job == peer->name.jobid)
        page_write(&assembly->page);
    free(assembly);
    *slot = NULL;
}

bool job_pages_came(struct peer *peer, const struct wire_page *part)
{
    if (part->block >= BLOCKS || part->blocks > BLOCKS || peer->is_of_other_job)
        return false;
    OPAL_THREAD_LOCK(&pages_lock);
    /* Else it answers an earlier tool, or comes when MPI ends here. */
    if (pages.parts && part->number == counter_read(&pages.number) &&
        part->rank < multilane.local_peer_count)
        part_add(&pages.parts[part->rank], peer, part);
    OPAL_THREAD_UNLOCK(&pages_lock);
    return true;
}

/* --- both ------------------------------------------------------------------------------------- */

void job_pages_look(void)
{
    uint32_t asked = own_page_asks();
    if (!counter_read(&pages.is_open) ||
        OPAL_LIKELY(asked == counter_read(&pages.number) && counter_read(&pages.asker_count) == 0 &&
                    !counter_read(&pages.is_asking)) ||
        atomic_exchange_explicit(&pages.inside, true, memory_order_acquire)) /* the next thread */
        return;
    if (asked != counter_read(&pages.number))
        asking_begin(asked);
    if (counter_read(&pages.is_asking))
        others_ask();
    if (counter_read(&pages.is_asking) && pages.next == multilane.local_peer_count &&
        ++pages.looks > LOOKS_MOST) {
        OPAL_THREAD_LOCK(&pages_lock);
        asking_end();
        OPAL_THREAD_UNLOCK(&pages_lock);
    }
    askers_answer();
    atomic_store_explicit(&pages.inside, false, memory_order_release);
}
