/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the pages of processes that compute, as multilane-top does. */
#include "report/sibling_pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/multilane.h"
#include "common/lane/kernel_text.h"
#include "common/lock/clock.h"
#include "common/report/page_check.h"
#include "common/report/page_take.h"
#include "contact/record.h"

/* A process that has looked for messages in this time answers itself. */
#define LOOKS_NS UINT64_C(300000000)

/* The process of that rank, if it is on this node; else 0. Those on this node are known. */
static uint32_t sibling_pid(uint32_t rank)
{
    opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = rank};
    ompi_proc_t *proc = (ompi_proc_t *) ompi_proc_lookup(name);
    return proc && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) ? record_pid(proc) : 0;
}

/* As in /proc/PID/stat, after the program's name, which may hold anything. */
static char state_of(uint32_t pid)
{
    char text[1024], state = 0;
    (void) kernel_text(text, sizeof(text), "/proc/%u/stat", pid);
    const char *end = strrchr(text, ')');
    return end && sscanf(end, ") %c", &state) == 1 ? state : 0;
}

static bool sibling_page_read(uint32_t pid, uint32_t rank, struct page *page)
{
    char why[PAGE_COMPLAINT];
    enum page_found found;
    int fd = page_descriptor((int) pid, PAGE_FILE_NAME, O_RDONLY, &found);
    size_t bytes = fd >= 0 ? page_take(fd, page) : 0;
    if (fd >= 0)
        close(fd);
    return bytes && page_check(page, bytes, why) && page->me.rank == rank &&
           page->me.job == multilane.me.jobid;
}

bool sibling_page_next(uint32_t *rank, struct page *page)
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
