/* SPDX-License-Identifier: BSD-3-Clause */
/* What sends and receives share: the two ends of a request's life, and the wait, with its story. */
#ifndef MULTILANE_REQUEST_H
#define MULTILANE_REQUEST_H

#include <stdatomic.h>

#include "common/compat/tsan.h"
#include "common/compat/pml.h"
#include "common/ring/ring.h"
#include "base/datatype.h"
#include "lane/lane.h"
#include "lane/waiting.h"
#include "multilane/page.h"
#include "multilane/service.h"

/* What a thread waits for, for others to read: the page of this process, and
 * pml_multilane_hang_s; and so that it may sleep (lane/waiting.h). A wait begins a story once it
 * has become long, and ends it.
 *
 *     struct wait_story story;
 *     wait_story_begin(&story, PAGE_WAITALL, count, requests);
 *     ... wait ...
 *     wait_story_end(&story);
 *
 * Without threads that is some stores at each end. What the requests are is looked up when the
 * story is described, from progress, which runs inside the wait. With threads another one may make
 * progress while the waiter frees its requests, so the waiter writes down at the start what it
 * waits for. */

struct wait_story {
    struct wait_story *next; /* older ones of this process */
    enum waiting_for before; /* what the thread waited for when it began */
    enum page_call call;
    size_t count;
    ompi_request_t **requests;         /* null: a probe, of what follows, */
    const struct multilane_wait *word; /* or, where this is not null, a wait for a word */
    const ompi_communicator_t *comm;
    int source, tag;
    uint64_t since_ns; /* 0: no progress has seen it yet */
    uint64_t number;   /* of the process's waits; 0 as above */
    bool is_reported;  /* said to the user, by pml_multilane_hang_s */
    bool published;    /* it is in the page */
    bool is_written;   /* in `rows`, by the waiter, as there are threads */
    struct page_wait rows;
};

/* Looks up what a story is about: report/wait_rows.c. */
typedef void (*wait_rows_fn)(const struct wait_story *story, struct page_wait *to);

/* All waits of this process. With threads the lock guards the list, the stories in it and the
 * page; it is a leaf, held for the copy of some rows. */
struct wait_stories {
    opal_mutex_t lock;
    struct wait_story *first;
    uint64_t numbers; /* of waits so far */
    wait_rows_fn fill;
};

extern __attribute__((visibility("hidden"))) struct wait_stories wait_stories;

void wait_stories_init(wait_rows_fn fill);
void wait_stories_fini(void);

/* The clock of stories: milliseconds exact, and cheap. */
uint64_t wait_story_clock_ns(void);

/* Progress has seen the story for the first time. */
void wait_story_number(struct wait_story *story, uint64_t now);

void wait_story_begin_locked(struct wait_story *story);
void wait_story_end_locked(struct wait_story *story);

/* The story's members up to `since_ns` are set. */
static inline void wait_story_start(struct wait_story *story)
{
    waits_begin();
    story->since_ns = 0;
    story->number = 0;
    story->is_reported = story->published = story->is_written = false;
    if (OPAL_UNLIKELY(opal_using_threads())) {
        wait_story_begin_locked(story);
        return;
    }
    story->next = wait_stories.first;
    wait_stories.first = story;
}

static inline void wait_story_begin(struct wait_story *story, enum page_call call, size_t count,
                                    ompi_request_t **requests)
{
    story->call = call;
    story->count = count;
    story->requests = requests;
    story->before = waiting_enter_requests(count, requests);
    wait_story_start(story);
}

/* A probe has no request. */
static inline void wait_story_begin_probe(struct wait_story *story, const ompi_communicator_t *comm,
                                          int source, int tag)
{
    story->call = PAGE_PROBE;
    story->requests = NULL;
    story->word = NULL;
    story->comm = comm;
    story->source = source;
    story->tag = tag;
    story->before = waiting_enter(WAITING_MESSAGES);
    wait_story_start(story);
}

static inline void wait_story_begin_word(struct wait_story *story,
                                         const struct multilane_wait *word)
{
    story->call = PAGE_NO_CALL;
    story->requests = NULL;
    story->word = word;
    story->before = waiting_enter(WAITING_MESSAGES);
    wait_story_start(story);
}

static inline void wait_story_end(struct wait_story *story)
{
    waits_end();
    waiting_leave(story->before);
    if (OPAL_UNLIKELY(opal_using_threads() || story->published)) {
        wait_story_end_locked(story);
        return;
    }
    wait_stories.first = story->next;
}

/* With the lock held: remembers that progress has seen the story at this time, and fills
 * `to`. */
void wait_story_describe(struct wait_story *story, uint64_t now, struct page_wait *to);

/* Callbacks of requests that need upper layers; set once at start. */
struct request_calls {
    ompi_request_start_fn_t start;
    ompi_request_cancel_fn_t cancel_send;
};

extern __attribute__((visibility("hidden"))) struct request_calls request_calls;

/* A request is free when its user has released it and the PML is done with it, in either order
 * and in any threads. Each calls this once; true for the second, which returns the request to
 * its list. */
static inline bool request_ended(_Atomic uint32_t *ends)
{
    if (OPAL_UNLIKELY(opal_using_threads())) /* acquire and release: with the other call */
        /* Each calls once: a 1 is of the other call, and there is no third that writes. */
        return atomic_load_explicit(ends, memory_order_acquire) == 1 ||
               atomic_fetch_add_explicit(ends, 1, memory_order_acq_rel) == 1;
    return (*(uint32_t *) ends)++ == 1; /* plain, as in counter_add */
}

/* Is the PML done with a persistent request that its user still holds? Acquire, against
 * request_ended. */
static inline bool request_is_idle(const _Atomic uint32_t *ends)
{
    return atomic_load_explicit(ends, memory_order_acquire) == 1;
}

/* Completes the request for its user, who may be another thread. The barrier is a release for
 * that thread's wait or test: Open MPI's own steps only acquire in 4.1 and 5.0. */
static inline void request_complete(ompi_request_t *request)
{
    tsan_release(request); /* send_request_free, recv_request_free, request_wait */
    opal_atomic_wmb();
    ompi_request_complete(request, true);
    waiting_completed();
}

/* Polls `lane` (or null) a few times, until something arrives. */
void request_look(struct lane *lane);

/* Does a wait poll, and not leave the processor to others? */
static inline bool request_may_poll(void)
{
    return !waiting_shares() && !opal_progress_yield_when_idle;
}

/* Polls of the awaited lane per call of opal_progress, which costs more than one poll. */
#define REQUEST_LOOKS 16
/* After so many turns the answer is not near, and Open MPI's own wait is better: it yields,
 * sleeps, and knows of failed processes. */
#define REQUEST_TURNS 256

/* Polls `lane`, and all else at times, until `what` is done. False: it is not, and the answer is
 * not near. */
static inline __opal_attribute_always_inline__ bool
request_poll_until(bool (*is_done)(const void *what), const void *what, struct lane *lane)
{
    for (int turn = 0; turn < REQUEST_TURNS; turn++) {
        for (int look = 0; look < REQUEST_LOOKS; look++) {
            if (is_done(what))
                return true;
            if (!lane_poll(lane)) {
                looks_add();
                ring_relax();
            }
        }
        progress_of_wait();
    }
    return false;
}

bool requests_come_soon_to_thread(size_t count, ompi_request_t *const *requests, bool all);

/* With threads: looks for these requests, all or one of them, before a wait's story. True:
 * complete.
 */
static inline bool requests_come_soon(size_t count, ompi_request_t *const *requests, bool all)
{
    return OPAL_UNLIKELY(opal_using_threads()) &&
           requests_come_soon_to_thread(count, requests, all);
}

/* Waits for a request; `lane`: the lane of its answer, or null. */
void request_wait(ompi_request_t *request, struct lane *lane);

#endif
