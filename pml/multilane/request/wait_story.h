/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread waits for, so that others can be told: the page of this process, and
 * pml_multilane_hang_s; and so that it may sleep (lane/waiting.h). A wait begins a story once it
 * has become long, and ends it.
 *
 *     struct wait_story story;
 *     wait_story_begin(&story, PAGE_WAITALL, count, requests);
 *     ... wait ...
 *     wait_story_end(&story);
 *
 * Without threads that is some stores at each end. What the requests are is looked up when the
 * story is told, from progress, which runs inside the wait. With threads another one may make
 * progress while the waiter frees its requests, so the waiter writes down at the start what it
 * waits for. */
#ifndef MULTILANE_WAIT_STORY_H
#define MULTILANE_WAIT_STORY_H

#include "common/compat/pml.h"

#include "multilane/page.h"
#include "multilane/service.h"
#include "lane/waiting.h"

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
    bool told;         /* said to the user, by pml_multilane_hang_s */
    bool published;    /* it is in the page */
    bool is_written;   /* in `rows`, by the waiter, as there are threads */
    struct page_wait rows;
};

/* Looks up what a story is about: report/wait_rows.h. */
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
    story->told = story->published = story->is_written = false;
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

/* For those who tell, with the lock held: notes that the story is seen at this time, and fills
 * `to`. */
void wait_story_tell(struct wait_story *story, uint64_t now, struct page_wait *to);

#endif
