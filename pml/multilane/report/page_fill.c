/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the page: waits, peers, lanes, receives and messages. */
#include "report/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/multilane.h"
#include "base/own_page.h"
#include "common/compat/collective.h"
#include "lane/lane.h"
#include "liveness/liveness.h"
#include "match/comm.h"
#include "match/inbound.h"
#include "plan/peer_class.h"
#include "request/recv_request.h"
#include "request/send_request.h"
#include "request/request.h"
#include "base/parameters.h"
#include "common/report/page_text.h"

static uint64_t finalize_since_ns;

/* Who this process is; once, when its names are known. */
static void page_fill_identity(void)
{
    finalize_since_ns = 0;
    own_page->started_ns = wait_story_clock_ns();
    own_page->me = (struct page_process){multilane.me.jobid, multilane.me.vpid};
    own_page->job_size = multilane.local_peer_count;
    own_page->pid = (int32_t) getpid();
    own_page->series = COMPAT_SERIES;
    if (gethostname(own_page->host, sizeof(own_page->host) - 1) != 0)
        own_page->host[0] = '\0';
    snprintf(own_page->program, sizeof(own_page->program), "%s", program_invocation_short_name);
}

/* --- waits ------------------------------------------------------------------------------------ */

/* MPI_Finalize waits for the other processes by the launcher, not by a request. */
static void finalize_fill(uint64_t now)
{
    if (!compat_mpi_is_finalizing() || own_page->wait_count == PAGE_WAITS)
        return;
    if (!finalize_since_ns)
        finalize_since_ns = now;
    struct page_wait *wait = &own_page->waits[own_page->wait_count++];
    wait->call = PAGE_FINALIZE;
    wait->row_count = wait->outstanding = 0;
    wait->number = PAGE_WAIT_FINALIZE;
    wait->since_ns = finalize_since_ns;
}

static void waits_fill(uint64_t now)
{
    own_page->wait_count = 0;
    for (struct wait_story *story = wait_stories.first; story; story = story->next) {
        story->published = own_page->wait_count < PAGE_WAITS;
        if (story->published)
            wait_story_describe(story, now, &own_page->waits[own_page->wait_count++]);
    }
    finalize_fill(now);
}

/* --- peers ------------------------------------------------------------------------------------ */

#define COUNTED_MOST 1000 /* messages of a list are counted up to here */

static uint32_t early_count(const struct peer *peer)
{
    uint32_t count = 0;
    for (const struct inbound *early = peer->early; early && count < COUNTED_MOST;
         early = early->next)
        count++;
    return count;
}

static void sending_fill(struct peer *peer, struct page_peer *row)
{
    uint64_t drawn = counter_read(&peer->drawn);
    uint32_t limit = atomic_load_explicit(&peer->out.limit, memory_order_relaxed);
    row->sent = (uint32_t) drawn;
    row->credit = (int32_t) (limit - (uint32_t) (drawn >> 32));
    row->queued_bytes = counter_read(&peer->queued);
    row->waiting = 0;
    if (OPAL_THREAD_TRYLOCK(&peer->credit_lock) != 0)
        return;
    const struct send_request *first = atomic_load_explicit(&peer->waiting, memory_order_relaxed);
    for (const struct send_request *one = first; one && row->waiting < COUNTED_MOST;
         one = one->next_waiting)
        row->waiting++;
    if (first && !first->is_admitted)
        row->flags |= PAGE_PEER_BLOCKED;
    OPAL_THREAD_UNLOCK(&peer->credit_lock);
}

/* Where the lock is taken, what was there stays. */
static void receiving_fill(struct peer *peer, struct page_peer *row)
{
    if (biased_trylock(&peer->lock) != 0)
        return;
    row->received = peer_next_sequence(peer);
    row->early = early_count(peer);
    row->kept = peer->in.held;
    biased_unlock(&peer->lock);
}

/* Lanes that have something under way: one message at least. */
static uint32_t unacknowledged(const struct peer *peer)
{
    double unused;
    uint32_t count = 0;
    for (int i = 0; i < peer_lane_count(peer); i++)
        count += lane_under_way(&peer->lanes[i], 0, &unused) > 0;
    return count;
}

/* One that was never needed may never have been tried. */
static bool is_down(const struct lane *lane)
{
    return lane_is_out(lane, LANE_OUT_DOWN) ||
           (!lane_is_up(lane) && lane_state(lane) != LANE_UNPROVEN);
}

static bool is_drained(const struct lane *lane)
{
    return lane_is_out(lane, LANE_OUT_DRAINED) && lane_is_lost(lane);
}

/* Was something given to the lane that may not be there yet? */
static bool is_busy(const struct lane *lane)
{
    double unused;
    if (!lane->extension && btl_is_of_sockets(lane->btl))
        return true; /* tcp does not say */
    return counter_read(&lane->copy_speed.sent) > counter_read(&lane->copy_speed.confirmed) ||
           lane_under_way(lane, 0, &unused) > 0;
}

bool lane_trouble(const struct lane *lane, uint32_t *kind, const char **why)
{
    if (is_down(lane)) {
        *kind = lane_state(lane) == LANE_BROKEN ? PAGE_BROKEN : PAGE_SILENT;
        *why = lane->health.why;
        return true;
    }
    if (is_drained(lane)) {
        *kind = PAGE_DRAINED;
        *why = "carries nothing, as multilane-top --drain has asked";
        return true;
    }
    *kind = lane_is_lost(lane) ? PAGE_RESERVE : PAGE_WORSE;
    if (lane_is_out(lane, LANE_OUT_WRONG)) {
        *why = "brings wrong bytes, as their sums show";
        return true;
    }
    const struct lane_history *histories =
        atomic_load_explicit(&lane->peer->histories, memory_order_acquire);
    *why = histories ? histories[lane->index].why : "";
    return lane_is_worse(lane);
}

static void trouble_add(const struct peer *peer, const struct lane *lane)
{
    struct page_trouble *row = &own_page->troubles[own_page->trouble_count];
    struct liveness *liveness = liveness_find(peer);
    const char *why;
    uint32_t kind;
    if (own_page->trouble_count == PAGE_TROUBLES || !lane_trouble(lane, &kind, &why) ||
        kind == PAGE_DRAINED)
        return;
    own_page->trouble_count++;
    memset(row, 0, sizeof(*row));
    row->peer = (struct page_process){peer->name.jobid, peer->name.vpid};
    row->kind = kind;
    snprintf(row->lane, PAGE_NAME, "%.*s", PAGE_NAME - 1, class_lane_name(lane));
    if (!liveness || OPAL_THREAD_TRYLOCK(&liveness->lock) != 0)
        return;
    snprintf(row->why, sizeof(row->why), "%.*s", PAGE_WHY - 1, why);
    OPAL_THREAD_UNLOCK(&liveness->lock);
}

static void peer_fill(struct peer *peer, struct page_peer *row)
{
    struct page_process name = {peer->name.jobid, peer->name.vpid};
    if (!page_process_is(&row->name, &name))
        memset(row, 0, sizeof(*row));
    row->name = name;
    row->flags = peer_is_lost(peer) ? PAGE_PEER_LOST : 0;
    sending_fill(peer, row);
    receiving_fill(peer, row);
    row->unacknowledged = unacknowledged(peer);
    row->lanes = peer_lane_count(peer);
    row->lanes_down = 0;
    for (uint8_t i = 0; i < row->lanes; i++)
        row->lanes_down += is_down(&peer->lanes[i]);
}

static bool wait_names(const struct peer *peer)
{
    const struct page_process name = {peer->name.jobid, peer->name.vpid};
    for (uint32_t i = 0; i < own_page->wait_count; i++)
        for (uint32_t j = 0; j < own_page->waits[i].row_count; j++)
            if (page_process_is(&own_page->waits[i].rows[j].peer, &name))
                return true;
    return false;
}

/* Peers that are waited for, or whose messages wait here, have the first rows. */
static bool is_first(const struct peer *peer)
{
    return atomic_load_explicit(&peer->waiting, memory_order_relaxed) != NULL ||
           peer_is_lost(peer) || wait_names(peer);
}

static bool has_traffic(const struct peer *peer)
{
    return (uint32_t) counter_read(&peer->drawn) || peer_next_sequence(peer);
}

/* That the walk has found, for rows. */
static struct found {
    struct peer *peers[PAGE_PEERS];
    uint32_t count;
} firsts, others;

static void peer_found(struct peer *peer)
{
    bool is_one = is_first(peer);
    struct found *found = is_one ? &firsts : &others;
    if (found->count < PAGE_PEERS && (is_one || has_traffic(peer)))
        found->peers[found->count++] = peer;
}

static void rows_fill(const struct found *found)
{
    for (uint32_t i = 0; i < found->count && own_page->peer_count < PAGE_PEERS; i++)
        peer_fill(found->peers[i], &own_page->peers[own_page->peer_count++]);
}

/* Also of peers that have no row. */
static void troubles_add(const struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        trouble_add(peer, &peer->lanes[i]);
}

/* --- lanes ------------------------------------------------------------------------------------ */

static const mca_btl_base_module_t *lane_btls[PAGE_LANES];

/* The row of a module; null: no room. */
static struct page_lane *lane_row(const mca_btl_base_module_t *btl, const char *name)
{
    uint32_t i = 0;
    while (i < own_page->lane_count && lane_btls[i] != btl)
        i++;
    if (i == PAGE_LANES)
        return NULL;
    if (i == own_page->lane_count) {
        own_page->lane_count++;
        lane_btls[i] = btl;
        memset(&own_page->lanes[i], 0, sizeof(own_page->lanes[i]));
        snprintf(own_page->lanes[i].name, PAGE_NAME, "%.*s", PAGE_NAME - 1, name);
    }
    return &own_page->lanes[i];
}

static void row_add(const struct peer_class *class, int lane, uint64_t bytes)
{
    struct page_lane *row = lane_row(class->btls[lane], class->lanes[lane].name);
    if (row)
        row->bytes += bytes;
}

/* What the routes of a class have carried, and of what several lanes carried together each of them:
 * by the stripes that went to peers with such lanes. Nothing counts bytes for each lane of a class
 * while messages move. */
static void class_fill(const struct peer_class *class)
{
    uint64_t together = 0, all = 0;
    for (int i = 0; i < CLASS_SENDS; i++) {
        enum class_buffer buffer = (enum class_buffer) i;
        for (const struct route *route = class_route_next(class, buffer, NULL); route;
             route = class_route_next(class, buffer, route)) {
            uint64_t bytes = counter_read(&route->bytes);
            own_page->sent_messages += counter_read(&route->messages);
            own_page->sent_bytes += bytes;
            if (route->lane_count == 1)
                row_add(class, route->lanes[0], bytes);
            else
                together += bytes;
        }
    }
    for (int i = 0; i < class->lane_count; i++)
        all += class->striped[i];
    for (int i = 0; i < class->lane_count && all; i++)
        row_add(class, i,
                (uint64_t) ((double) together * (double) class->striped[i] / (double) all));
}

static void reach_add(const struct peer *peer)
{
    struct peer_class *class = peer_class_now(peer);
    for (uint8_t i = 0; class && i < peer_lane_count(peer); i++) {
        const struct lane *lane = &peer->lanes[i];
        if (i < class->lane_count)
            class->striped[i] +=
                counter_read(&lane->speed.sent) + counter_read(&lane->copy_speed.sent);
        struct page_lane *row = lane_row(lane->btl, class_lane_name(lane));
        if (!row)
            continue;
        row->peers++;
        row->down += is_down(lane);
        row->worse += lane_is_worse(lane);
        row->number = lane_number(lane->listed);
        row->drained += is_drained(lane);
        row->kept += lane_is_out(lane, LANE_OUT_DRAINED) && !lane_is_lost(lane);
        row->busy += is_drained(lane) && is_busy(lane);
    }
}

/* --- in one walk over all ranks --------------------------------------------------------------- */

static void walk_begin(void)
{
    own_page->peer_count = own_page->trouble_count = own_page->lane_count = 0;
    own_page->sent_messages = own_page->sent_bytes = 0;
    firsts.count = others.count = 0;
    for (struct peer_class *class = classes_first(); class; class = class->next)
        memset(class->striped, 0, sizeof(class->striped));
}

static void peers_fill(void)
{
    walk_begin();
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
        peer_found(peer);
        troubles_add(peer);
        reach_add(peer);
    }
    rows_fill(&firsts);
    rows_fill(&others);
    for (const struct peer_class *class = classes_first(); class; class = class->next)
        class_fill(class);
}

/* --- receives and messages -------------------------------------------------------------------- */

#define BUCKETS_MOST 1024u /* of a table are looked at */

static struct page_message *message_row(struct page_message *rows, uint32_t *count,
                                        const struct mca_pml_comm_t *comm,
                                        const struct match_node *node)
{
    if (*count == PAGE_MESSAGES)
        return NULL;
    struct page_message *row = &rows[(*count)++];
    memset(row, 0, sizeof(*row));
    row->rank = node->source;
    row->tag = node->tag;
    row->collective = compat_collective_of_tag(node->tag);
    row->peer = page_process_of(comm->ompi, node->source);
    page_comm_of(comm->ompi, &row->comm);
    return row;
}

static void posted_fill(const struct mca_pml_comm_t *comm, const struct match_node *node)
{
    struct page_message *row = message_row(own_page->posted, &own_page->posted_count, comm, node);
    if (!row)
        return;
    const mca_pml_base_request_t *base =
        &recv_request_of_node((struct match_node *) node)->base.req_base;
    row->bytes = base->req_datatype->super.size * base->req_count;
}

static void unexpected_fill(const struct mca_pml_comm_t *comm, const struct match_node *node)
{
    if (match_kind(node->source, node->tag) != 0)
        return; /* under its exact key, so that it is reported once */
    struct page_message *row =
        message_row(own_page->unexpected, &own_page->unexpected_count, comm, node);
    if (row)
        row->bytes = inbound_of_node((struct match_node *) node)->arrival.size;
}

static void table_fill(const struct mca_pml_comm_t *comm, const struct match_table *table,
                       const uint32_t *rows,
                       void (*fill)(const struct mca_pml_comm_t *, const struct match_node *))
{
    for (uint32_t i = 0; i <= table->mask && i < BUCKETS_MOST && *rows < PAGE_MESSAGES; i++)
        for (const struct match_node *head = table->buckets[i]; head; head = head->next_head)
            for (const struct match_node *node = head; node && *rows < PAGE_MESSAGES;
                 node = node->next)
                fill(comm, node);
}

static void comm_fill(struct mca_pml_comm_t *comm)
{
    if (biased_trylock(&comm->lock) != 0)
        return;
    own_page->posted_total += comm->posted.count;
    own_page->unexpected_total += comm->unexpected.count / (comm->wildcards ? 4 : 1);
    if (comm->posted.count)
        table_fill(comm, &comm->posted, &own_page->posted_count, posted_fill);
    if (comm->unexpected.count)
        table_fill(comm, &comm->unexpected, &own_page->unexpected_count, unexpected_fill);
    biased_unlock(&comm->lock);
}

static void messages_fill(void)
{
    own_page->posted_count = own_page->unexpected_count = 0;
    own_page->posted_total = own_page->unexpected_total = 0;
    own_page->unexpected_ever = counter_read(&multilane.unexpected_messages);
    if (!multilane_trylock())
        return; /* there are no rows this time */
    for (struct mca_pml_comm_t *comm = comm_next(NULL); comm; comm = comm_next(comm))
        comm_fill(comm);
    multilane_unlock();
}

/* The program's: of sessions only Open MPI's own flag says so, which the progress thread sets as
 * well, and for MPI_Init with other levels, too. */
static bool may_have_threads(void)
{
    return ompi_mpi_thread_multiple ||
           (compat_mpi_is_of_sessions() && opal_using_threads() && !work_is_counted);
}

void page_fill(uint64_t now)
{
    own_page->refreshes++;
    own_page->drained = drain_done();
    own_page->flags =
        (compat_mpi_has_begun() ? PAGE_STARTED : 0) | (may_have_threads() ? PAGE_HAS_THREADS : 0);
    waits_fill(now);
    peers_fill();
    messages_fill();
    waited_fill(own_page);
}

/* --- from progress ---------------------------------------------------------------------------- */

/* Counts the rounds of progress, fills the page again every tenth of a second, and says so where a
 * wait has become longer than pml_multilane_hang_s. */

#define REFRESH_NS UINT64_C(100000000)

/* When the page was filled last. Relaxed: of threads that come here together one has the lock. */
static _Atomic uint64_t filled_ns;
static bool finalize_reported;

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
        if (!wait || story->is_reported || !is_hang(story->since_ns, now))
            continue;
        story->is_reported = true;
        wait_say(wait, now);
    }
    const struct page_wait *end = wait_of(PAGE_WAIT_FINALIZE);
    if (end && !finalize_reported && is_hang(end->since_ns, now)) {
        finalize_reported = true;
        wait_say(end, now);
    }
}

/* What the wait was for when it was last described. With the lock held. */
static struct page_wait described;

static bool is_for_word(const struct wait_story *story)
{
    return !story->requests && story->word;
}

/* Has all come, so that only what was described before says what it was for? */
static bool is_at_its_end(const struct wait_story *story, const struct page_wait *wait)
{
    return wait->row_count == 0 || (is_for_word(story) && wait->rows[0].rank < 0);
}

/* A wait is seen for the first time, without threads. One for a word may sleep until it is over. */
static void wait_see(struct wait_story *story, uint64_t now)
{
    if (is_for_word(story))
        wait_story_describe(story, now, &described);
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
        wait_story_describe(story, now, &wait);
        if (described.number != story->number || !is_at_its_end(story, &wait))
            described = wait;
        waited_add(&described, now - (story->since_ns > before ? story->since_ns : before));
    }
}

/* In each eighth round of progress, in each 32nd of fast ones, and in each where the waiter leaves
 * the processor to others. The clock has ticks: between two there is nothing to do. */
static void page_look(uint64_t now)
{
    static _Atomic uint64_t
        looked_ns; /* relaxed: of threads that come here together one has the lock */
    struct wait_story *inner = opal_using_threads() ? NULL : wait_stories.first;
    if (inner && !inner->since_ns)
        wait_see(inner, now);
    if (now == atomic_load_explicit(&looked_ns, memory_order_relaxed) ||
        OPAL_THREAD_TRYLOCK(&wait_stories.lock) != 0)
        return;
    /* Again: another thread may have begun a story since, which is not to be later than this. */
    now = wait_story_clock_ns();
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

/* Calls of progress that follow each other fast read the clock in few of them. */
#define FAST_CALLS 4u

/* A low-priority callback of opal_progress. */
static int page_progress(void)
{
    static _Atomic uint32_t skips; /* relaxed, both: losing a count is harmless */
    static _Atomic uint64_t before;
    uint32_t left = atomic_load_explicit(&skips, memory_order_relaxed);
    if (left > 0) {
        atomic_store_explicit(&skips, left - 1, memory_order_relaxed);
        return 0;
    }
    uint64_t now = wait_story_clock_ns();
    if (now == atomic_load_explicit(&before, memory_order_relaxed))
        atomic_store_explicit(&skips, FAST_CALLS - 1, memory_order_relaxed);
    atomic_store_explicit(&before, now, memory_order_relaxed);
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
    finalize_reported = false;
    waited_forget();
    waiting.look = page_look_now;
    return opal_progress_register_lp(page_progress);
}

void page_keeper_end(void)
{
    waiting.look = NULL;
    opal_progress_unregister(page_progress);
    job_pages_end();
    own_page_close();
    wait_stories_fini();
}
