/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's own page, which multilane-top reads: include/multilane/page.h. */
#ifndef MULTILANE_OWN_PAGE_H
#define MULTILANE_OWN_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "multilane/page.h"
#include "common/compat/pml.h"

/* Never null between own_page_open and own_page_close: where the system gives no memory to share,
 * the page is private, and no reader finds it. */
extern __attribute__((visibility("hidden"))) struct page *own_page;

/* The last events of this process; null: they are not kept. */
extern __attribute__((visibility("hidden"))) struct page_event *own_events;

/* The next one, with its number and time; only where they are kept. Any thread. */
struct page_event *own_event_new(enum page_event_kind kind);

/* `folder`: for the file where the page is the beginning of one; empty: none. False: no memory at
 * all. *why: why no other process can read it, or why there is no such file; null where all is
 * well. */
bool own_page_open(const char *folder, struct page_process me, const char **why);
/* The file goes. */
void own_page_close(void);

/* With the lock of wait_stories; other threads may make progress meanwhile (own_page_round). */
void own_page_copy(struct page *copy);

/* The lanes that this process is asked to empty, a bit for each lane_number: DRAIN_FILE_NAME, as it
 * was when own_page_drain_read was last called. */
extern __attribute__((visibility("hidden"))) _Atomic uint64_t own_drain;

static inline uint64_t own_page_drain(void)
{
    return atomic_load_explicit(&own_drain, memory_order_relaxed);
}

void own_page_drain_read(void);

/* The number of the last question for the pages of the job, as above; 0: none. Its folder. */
uint32_t own_page_asks(void);
void own_page_folder(char path[PAGE_FOLDER]);

/* Around changes of what the sequence guards. One thread at a time: the caller holds the lock of
 * wait_stories (request/request.h), or there are no threads. */
void own_page_change(void);
void own_page_changed(void);

/* One more round of progress, now. Relaxed, and a count may be lost where several threads make
 * progress: readers only ask whether it moves. Partner: page_take. */
static inline void own_page_round(uint64_t now)
{
    _Atomic uint64_t *rounds = (_Atomic uint64_t *) &own_page->rounds;
    uint64_t before = atomic_load_explicit(rounds, memory_order_relaxed);
    atomic_store_explicit(rounds, before + 1, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *) &own_page->progressed_ns, now, memory_order_relaxed);
}

/* --- events that a tool can wait for ---------------------------------------------------------- */

/* What a tool can wait for by MPI_T, in an Open MPI that has events (6.0). */

enum tool_event {
    TOOL_LANE_LOST = PAGE_LANE_LOST, /* kept in the black box as well */
    TOOL_LANE_RETURNED = PAGE_LANE_RETURNED,
    TOOL_LANE_WORSE = PAGE_LANE_WORSE,
    TOOL_PEER_SUSPECTED = PAGE_PEER_SUSPECTED,
    TOOL_PLAN_CHANGED = PAGE_PLAN_CHANGED,
    TOOL_EVENTS = PAGE_CHANGES
};

int tool_events_register(const mca_base_component_t *component);

/* Toward the peer of that name; `lane` is an index among its lanes, or -1. No lock is held: the
 * tools are called now, in this thread. */
void tool_event_raise(enum tool_event event, const opal_process_name_t *peer, int lane);

#endif
