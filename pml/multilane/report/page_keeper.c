/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the rounds of progress, fills the page again every tenth of a second, and says so where a
 * wait has become longer than pml_multilane_hang_s. */
#include "report/page_keeper.h"

#include <stdatomic.h>

#include "base/multilane.h"
#include "base/own_page.h"
#include "base/parameters.h"
#include "common/report/page_text.h"
#include "liveness/drain.h"
#include "report/job_pages.h"
#include "report/page_fill.h"
#include "report/wait_rows.h"
#include "request/wait_story.h"

#define REFRESH_NS UINT64_C(100000000)

/* When the page was filled last. Relaxed: of threads that meet here one has the lock. */
static _Atomic uint64_t filled_ns;
static bool finalize_told;

/* The rank's own part of what multilane-top --why says. */
static void wait_say(const struct page_wait *wait, uint64_t now)
{
    opal_output(0,
                "multilane: rank %u (%s, pid %d) %s. It goes on waiting; multilane-top --why "
                "shows the others.",
                multilane.me.vpid, own_page->host, own_page->pid, page_wait_text(wait, now).text);
    for (uint32_t i = 0; i < wait->row_count; i++) {
        const struct page_peer *peer = page_peer_of(own_page, &wait->rows[i].peer);
        if (peer)
            opal_output(0,
                        "multilane:   rank %u has sent it %u messages, of which %u wait here, and "
                        "has %u from it; %u of its %u lanes are down.",
                        peer->name.rank, peer->sent, peer->waiting, peer->received,
                        peer->lanes_down, peer->lanes);
    }
    for (uint32_t i = 0; i < own_page->unexpected_count && i < 4; i++)
        opal_output(0, "multilane:   without a receive: a message from rank %u, tag %d, %s.",
                    own_page->unexpected[i].peer.rank, own_page->unexpected[i].tag,
                    own_page->unexpected[i].comm.name);
}

static bool is_hang(uint64_t since, uint64_t now)
{
    return parameters.hang_s > 0 && now - since >= (uint64_t) parameters.hang_s * 1000000000u;
}

static const struct page_wait *wait_of(uint64_t number)
{
    for (uint32_t i = 0; i < own_page->wait_count; i++)
        if (own_page->waits[i].number == number)
            return &own_page->waits[i];
    return NULL;
}

static void hangs_say(uint64_t now)
{
    for (struct wait_story *story = wait_stories.first; story; story = story->next) {
        const struct page_wait *wait = wait_of(story->number);
        if (!wait || story->told || !is_hang(story->since_ns, now))
            continue;
        story->told = true;
        wait_say(wait, now);
    }
    const struct page_wait *end = wait_of(PAGE_WAIT_FINALIZE);
    if (end && !finalize_told && is_hang(end->since_ns, now)) {
        finalize_told = true;
        wait_say(end, now);
    }
}

/* What the wait was for when it was last told. With the lock held. */
static struct page_wait told;

static bool is_for_word(const struct wait_story *story)
{
    return !story->requests && story->word;
}

/* Has all come, so that only what was told before says what it was for? */
static bool is_at_its_end(const struct wait_story *story, const struct page_wait *wait)
{
    return wait->row_count == 0 || (is_for_word(story) && wait->rows[0].rank < 0);
}

/* A wait is seen for the first time, without threads. One for a word may sleep until it is over. */
static void wait_see(struct wait_story *story, uint64_t now)
{
    if (is_for_word(story))
        wait_story_tell(story, now, &told);
    else
        wait_story_number(story, now);
}

/* Counts the time since the look before for the waits that it saw. */
static void waits_count(uint64_t before, uint64_t now)
{
    for (struct wait_story *story = wait_stories.first; story; story = story->next) {
        struct page_wait wait;
        if (!story->since_ns || story->since_ns >= now)
            continue;
        wait_story_tell(story, now, &wait);
        if (told.number != story->number || !is_at_its_end(story, &wait))
            told = wait;
        waited_add(&told, now - (story->since_ns > before ? story->since_ns : before));
    }
}

/* In each eighth round of progress, and in each where the waiter leaves the processor to others.
 * The clock has ticks: between two there is nothing to do. */
static void page_look(uint64_t now)
{
    static _Atomic uint64_t looked_ns; /* relaxed: of threads that meet here one has the lock */
    struct wait_story *inner = opal_using_threads() ? NULL : wait_stories.first;
    if (inner && !inner->since_ns)
        wait_see(inner, now);
    if (now == atomic_load_explicit(&looked_ns, memory_order_relaxed) ||
        OPAL_THREAD_TRYLOCK(&wait_stories.lock) != 0)
        return;
    waits_count(atomic_exchange_explicit(&looked_ns, now, memory_order_relaxed), now);
    bool is_due = now - atomic_load_explicit(&filled_ns, memory_order_relaxed) >= REFRESH_NS;
    if (is_due) {
        atomic_store_explicit(&filled_ns, now, memory_order_relaxed);
        own_page_change();
        page_fill(now);
        own_page_changed();
        hangs_say(now);
    }
    OPAL_THREAD_UNLOCK(&wait_stories.lock);
    if (is_due) { /* both take locks that are not taken inside that one */
        drain_look();
        job_pages_look();
    }
}

static void page_look_now(void)
{
    page_look(wait_story_clock_ns());
}

/* A low-priority callback of opal_progress. */
static int page_progress(void)
{
    uint64_t now = wait_story_clock_ns();
    own_page_round(now);
    page_look(now);
    return 0;
}

int page_keeper_begin(void)
{
    const char *why;
    struct page_process me = {multilane.me.jobid, multilane.me.vpid};
    if (!own_page_open(parameters.blackbox, me, &why))
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (why && parameters.blackbox[0])
        opal_output(0,
                    "multilane: pml_multilane_blackbox %s: rank %u cannot keep a file there: %s.",
                    parameters.blackbox, me.rank, why);
    else if (why)
        opal_output_verbose(10, ompi_pml_base_framework.framework_output,
                            "multilane: multilane-top will not see this process: %s", why);
    wait_stories_init(wait_rows_fill);
    own_page_change();
    page_fill_identity();
    own_page_changed();
    own_page_round(own_page->started_ns);
    finalize_told = false;
    waited_forget();
    waiting_look_by(page_look_now);
    return opal_progress_register_lp(page_progress);
}

void page_keeper_end(void)
{
    waiting_look_by(NULL);
    opal_progress_unregister(page_progress);
    job_pages_end();
    own_page_close();
    wait_stories_fini();
}
