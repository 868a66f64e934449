/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of waits. */
#include "request/wait_story.h"

#include <string.h>
#include <time.h>

#include "base/own_page.h"

struct wait_stories wait_stories;

void wait_stories_init(wait_rows_fn fill)
{
    OBJ_CONSTRUCT(&wait_stories.lock, opal_mutex_t);
    wait_stories.first = NULL;
    wait_stories.fill = fill;
}

void wait_stories_fini(void)
{
    OBJ_DESTRUCT(&wait_stories.lock);
}

uint64_t wait_story_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

void wait_story_number(struct wait_story *story, uint64_t now)
{
    story->since_ns = now;
    story->number = ++wait_stories.numbers;
    if (own_events)
        own_event_new(PAGE_EVENT_WAIT)->tag = (int32_t) story->call;
}

void wait_story_begin_locked(struct wait_story *story)
{
    opal_mutex_lock(&wait_stories.lock);
    wait_stories.fill(story, &story->rows);
    story->is_written = true;
    wait_story_number(story, wait_story_clock_ns());
    story->next = wait_stories.first;
    wait_stories.first = story;
    opal_mutex_unlock(&wait_stories.lock);
}

/* Waits of several threads end in any order. */
static void unlink_story(const struct wait_story *story)
{
    struct wait_story **at = &wait_stories.first;
    while (*at && *at != story)
        at = &(*at)->next;
    if (*at)
        *at = story->next;
}

/* Takes the wait out of the page. */
static void page_forget(uint64_t number)
{
    for (uint32_t i = 0; i < own_page->wait_count; i++) {
        if (own_page->waits[i].number != number)
            continue;
        own_page_change();
        own_page->waits[i] = own_page->waits[--own_page->wait_count];
        own_page_changed();
        return;
    }
}

void wait_story_end_locked(struct wait_story *story)
{
    OPAL_THREAD_LOCK(&wait_stories.lock);
    unlink_story(story);
    if (story->published && own_page) {
        page_forget(story->number);
        own_page_round(wait_story_clock_ns());
    }
    OPAL_THREAD_UNLOCK(&wait_stories.lock);
}

void wait_story_tell(struct wait_story *story, uint64_t now, struct page_wait *to)
{
    if (!story->number)
        wait_story_number(story, now);
    if (story->is_written)
        memcpy(to, &story->rows, sizeof(*to));
    else
        wait_stories.fill(story, to);
    to->call = story->call;
    to->number = story->number;
    to->since_ns = story->since_ns;
}
