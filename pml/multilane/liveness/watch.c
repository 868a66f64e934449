/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides when a lane is left out or used again, and when a peer is lost. T:
 * pml_multilane_suspect_ms.
 *
 * If nothing that is under way on a lane of ours has arrived for T/2, every lane is asked
 * (WIRE_ASK). Once one lane has answered, another one that does not for T/2 more is closed, as
 * broken, returns its messages, and new plans do without it. So is a lane whose BTL reports an
 * error. It is made anew, and is silent until it answers; where it is the only one, its messages
 * wait for that. A lane of Open MPI that breaks is the end of the peer.
 *
 * A lane whose BTL must first try whether it leads to the peer is unproven, and carries nothing. If
 * it still is PROOF_NS after another lane carries, it is silent. */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "base/own_page.h"
#include "contact/peer_lanes.h"
#include "liveness/liveness.h"
#include "match/comm.h"
#include "contact/contact.h"

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

/* The shortest time between two looks. */
#define LOOK_NS (MILLISECOND / 5)
/* Longer pauses between calls of progress count as this much active time. */
#define ATTENDED_NS (50 * MILLISECOND)
/* The pauses between questions to a silent lane grow to this multiple of T. Its BTL keeps each
 * until it has a connection again, when the first is answered: they only have to stay few. */
#define ASK_PAUSE_MAX 1024
/* So much later than another lane an unproven one may come. */
#define PROOF_NS (200 * MILLISECOND)
/* A lane that broke is made anew after this multiple of T. */
#define RENEW_AFTER 2
/* How often a fence message goes to the other end of a broken lane. */
#define FENCE_NS (20 * MILLISECOND)
/* How often to look at all peers. */
#define QUIET_NS SECOND
/* Calls of progress that follow fast, less than that after a look, do not even read the clock, but
 * for one in so many. */
#define FAST_NS    MILLISECOND
#define FAST_CALLS 64u

/* How many changes of one lane are printed. */
#define SAID_MAX 6

/* Owned by the thread inside, but for the last one. */
static struct {
    uint64_t looked_ns;  /* by clock_now_ns, unlike the others */
    uint64_t quiet_ns;   /* last look at all peers, */
    uint64_t awaited_ns; /* at senders without contact, */
    uint64_t lanes_ns;   /* and at lanes that say nothing */
    _Atomic bool inside; /* a thread is in watch_all */
} watch;
_Atomic uint32_t watch_skips;

static uint64_t lost_ns(void)
{
    return (uint64_t) parameters.lost_s * SECOND;
}

/* Silence after which to ask a peer. */
static uint64_t ask_after_ns(void)
{
    return lost_ns() / 3;
}

static uint64_t suspect_ns(void)
{
    return (uint64_t) parameters.suspect_ms * MILLISECOND;
}

/* --- one look at one peer --------------------------------------------------------------------- */

_Static_assert(MODEL_LANES_MAX <= 32, "a bit for each lane");

/* What to do once the lock is released. */
struct look {
    uint64_t now;
    bool lanes_changed;
    bool suspected; /* it is asked the first time since it answered */
    bool is_lost;
    bool keep;
    uint32_t ask_lanes; /* bit i: ask on lane i */
    uint32_t renew_lanes;
    uint32_t fence_lanes; /* a fence message goes to their other ends */
    uint32_t ask;
    char why[160];
};

static void ask_next(struct liveness *liveness)
{
    if (++liveness->ask == 0)
        liveness->ask = 1; /* 0 is no question */
}

static bool reports_quiet(const struct lane *lane)
{
    return lane->returns && lane->extension->quiet_ms;
}

/* Has nothing of what is under way on the lane arrived for T/2? */
static bool is_quiet(const struct lane *lane)
{
    return lane_quiet_ms(lane) * MILLISECOND >= suspect_ns() / 2;
}

static bool any_lane(const struct peer *peer, bool (*is)(const struct lane *lane))
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (is(&peer->lanes[i]))
            return true;
    return false;
}

static bool is_up_and_quiet(const struct lane *lane)
{
    return lane->returns && lane_is_up(lane) && is_quiet(lane);
}

/* It may not have returned all of its messages yet. */
static bool is_broken(const struct lane *lane)
{
    return lane->returns && lane_state(lane) == LANE_BROKEN;
}

static bool is_left(const struct lane *lane)
{
    return lane_sends(lane) && lane_state(lane) != LANE_BROKEN;
}

/* May a broken one be made anew without another one? */
static bool may_return(const struct lane *lane)
{
    return lane->returns && lane_can(lane, MULTILANE_CAN_RENEW);
}

static bool is_usable(const struct lane *lane)
{
    return lane_is_up(lane) && lane_sends(lane);
}

/* Such a lane notices itself when the peer is gone. */
static bool never_breaks(const struct lane *lane)
{
    return lane_sends(lane) && !lane_may_break(lane);
}

static bool has_to_be_asked(const struct peer *peer)
{
    return any_lane(peer, is_up_and_quiet) || any_lane(peer, is_broken);
}

static void lane_ask(struct liveness *liveness, struct lane *lane, struct look *look)
{
    look->ask_lanes |= UINT32_C(1) << lane->index;
    /* Another one is never silent: its answer only shows that the peer is there. */
    if (reports_quiet(lane) && !lane->health.asked) {
        lane->health.asked = liveness->ask;
        lane->health.contrast_ns = 0;
    }
    lane->health.asked_ns = look->now;
}

/* Asks on every lane in use. */
static void ask_all(struct liveness *liveness, struct look *look)
{
    ask_next(liveness);
    liveness->asked_ns = look->now;
    for (int i = 0; i < peer_lane_count(liveness->peer); i++)
        if (is_usable(&liveness->peer->lanes[i]))
            lane_ask(liveness, &liveness->peer->lanes[i], look);
}

static void look_ask(struct liveness *liveness, struct look *look)
{
    if (!has_to_be_asked(liveness->peer)) {
        if (any_lane(liveness->peer, is_usable)) /* what is under way moves: that answers, too */
            liveness->waited_ns = liveness->alive_ns;
        return;
    }
    look->keep = true;
    if (liveness->waited_ns <= liveness->alive_ns)
        liveness->waited_ns = look->now;
    if (look->now - liveness->asked_ns >= suspect_ns() / 2) {
        look->suspected =
            any_lane(liveness->peer, is_up_and_quiet) && liveness->asked_ns <= liveness->alive_ns;
        ask_all(liveness, look);
    }
}

static void look_unproven(struct liveness *liveness, struct lane *lane, struct look *look)
{
    struct lane_health *mine = &lane->health;
    char why[sizeof(mine->why)] = "";
    if (lane_is_proven(lane, why, sizeof(why))) {
        atomic_store_explicit(&mine->state, LANE_UP, memory_order_relaxed); /* lane_state */
        mine->contrast_ns = 0;
        return;
    }
    look->keep = true;
    if (!any_lane(liveness->peer, is_usable))
        mine->contrast_ns = 0;
    else if (mine->contrast_ns == 0)
        mine->contrast_ns = look->now;
    else if (look->now - mine->contrast_ns >= PROOF_NS)
        (void) lane_state_set(liveness, lane, LANE_SILENT, why);
}

/* One that is tried before it carries anything may come back, or not, at any time; and where none
 * carries, all wait for it. */
static uint64_t renew_after_ns(const struct lane *lane)
{
    return lane_is_tried(lane) || !any_lane(lane->peer, is_usable) ? suspect_ns() / 4
                                                                   : RENEW_AFTER * suspect_ns();
}

static void look_lane(struct liveness *liveness, struct lane *lane, struct look *look)
{
    struct lane_health *mine = &lane->health;
    char why[sizeof(mine->why)];
    if (lane_state(lane) == LANE_UNPROVEN)
        look_unproven(liveness, lane, look);
    /* The peer must have answered on others all the time: it may have begun to compute after one
     * answer. */
    if (lane_is_up(lane) && mine->asked && mine->contrast_ns &&
        is_quiet(lane) && /* it may have much before the question */
        look->now - mine->contrast_ns >= suspect_ns() / 2 &&
        liveness->alive_ns - mine->contrast_ns >= suspect_ns() / 4 &&
        liveness->alive_ns > mine->contrast_ns) {
        snprintf(why, sizeof(why),
                 "did not answer for %d ms, while that process answered over another lane",
                 parameters.suspect_ms);
        (void) lane_state_set(liveness, lane, LANE_BROKEN, why);
    }
    if (lane_state(lane) == LANE_SILENT) {
        look->keep = true;
        if (look->now - mine->asked_ns >= mine->pause_ns) {
            ask_next(liveness);
            if (mine->pause_ns < ASK_PAUSE_MAX * suspect_ns())
                mine->pause_ns *= 2;
            lane_ask(liveness, lane, look);
        }
    }
    /* Also where only silent lanes are left, or none: they may never come back. */
    if (lane_state(lane) == LANE_BROKEN && lane->returns) {
        look->keep = true;
        uint64_t pause_ns = liveness->has_parted ? lost_ns() : 0;
        if (look->now - mine->fence_sent_ns >= (pause_ns ? pause_ns : FENCE_NS)) {
            mine->fence_sent_ns = look->now;
            look->fence_lanes |= UINT32_C(1) << lane->index;
        }
        if (look->now - mine->asked_ns >= (pause_ns ? pause_ns : renew_after_ns(lane))) {
            mine->asked_ns = look->now;
            look->renew_lanes |= UINT32_C(1) << lane->index;
        }
    }
    look->lanes_changed |= mine->has_changed;
}

/* The BTL of a lane that is up reports by itself when the peer is gone, however long that computes.
 */
static void look_lost(struct liveness *liveness, struct look *look)
{
    if (!any_lane(liveness->peer, is_left) && !any_lane(liveness->peer, may_return)) {
        look->is_lost = true;
        snprintf(look->why, sizeof(look->why), "no lane is left");
        return;
    }
    if (liveness->waited_ns <= liveness->alive_ns)
        return; /* no question is open */
    if (look->now - liveness->waited_ns < lost_ns() || any_lane(liveness->peer, is_usable))
        return;
    look->is_lost = true;
    snprintf(look->why, sizeof(look->why), "no lane answered for %d s (pml_multilane_lost_s)",
             parameters.lost_s);
}

/* With the lock held: fills `look`. */
static void look_at(struct liveness *liveness, struct look *look)
{
    if (liveness->lost || peer_lane_count(liveness->peer) == 0)
        return;
    look_ask(liveness, look);
    for (int i = 0; i < peer_lane_count(liveness->peer); i++)
        look_lane(liveness, &liveness->peer->lanes[i], look);
    look_lost(liveness, look);
    look->ask = liveness->ask;
}

static const char *change_for_worse(const struct peer *peer)
{
    return any_lane(peer, is_left) ? "is left out, and what it carried goes over the other lanes"
           : any_lane(peer, may_return)
               ? "is left out, and messages wait until it works again (pml_multilane_lost_s)"
               : "is left out";
}

/* Makes new plans for lanes that have changed, and prints the change. */
static void act_on_changes(struct liveness *liveness)
{
    struct peer *peer = liveness->peer;
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane_health *mine = &peer->lanes[i].health;
        char why[sizeof(mine->why)];
        OPAL_THREAD_LOCK(&liveness->lock);
        bool has_changed = mine->has_changed;
        bool is_up = lane_is_up(&peer->lanes[i]);
        bool is_news = is_up == lane_is_out(&peer->lanes[i], LANE_OUT_DOWN);
        mine->has_changed = false;
        memcpy(why, mine->why, sizeof(why));
        OPAL_THREAD_UNLOCK(&liveness->lock);
        if (!has_changed)
            continue;
        if (!is_news) { /* it broke again before it has answered */
            lane_close(&peer->lanes[i]);
            continue;
        }
        /* Prints only the first changes: a lane may come and go for hours. */
        uint32_t said = mine->said < SAID_MAX ? ++mine->said : 0;
        counter_add(is_up ? &multilane.lanes_returned : &multilane.lanes_lost, 1);
        lane_leave_out(&peer->lanes[i], LANE_OUT_DOWN, !is_up);
        /* What it carried goes by another lane, but it would give that back, or end it, only when
         * its device gives up. */
        if (!is_up)
            lane_close(&peer->lanes[i]);
        if (said)
            lane_say(&peer->lanes[i], is_up ? "is used again" : change_for_worse(peer), why,
                     said == SAID_MAX);
        tool_event_raise(is_up ? TOOL_LANE_RETURNED : TOOL_LANE_LOST, &peer->name, i);
    }
}

/* Makes the lane anew. It is silent then, and asked from now on. */
static void lane_renew_silent(struct liveness *liveness, struct lane *lane)
{
    if (!lane_renew(lane))
        return;
    OPAL_THREAD_LOCK(&liveness->lock);
    atomic_store_explicit(&lane->health.state, LANE_SILENT, memory_order_relaxed); /* lane_state */
    lane->health.asked_ns = 0;
    OPAL_THREAD_UNLOCK(&liveness->lock);
}

/* A process of another job that has disconnected: the job may connect to it again. */
static bool may_be_met_again(const struct peer *peer)
{
    return any_lane(peer, may_return) && peer_has_parted(peer);
}

static void look_waits_on(struct liveness *liveness, uint64_t now)
{
    OPAL_THREAD_LOCK(&liveness->lock);
    liveness->waited_ns = now;
    liveness->has_parted = true;
    OPAL_THREAD_UNLOCK(&liveness->lock);
}

/* Does what `look` says. No lock is held. */
static void look_act(struct liveness *liveness, struct look *look)
{
    if (look->suspected)
        tool_event_raise(TOOL_PEER_SUSPECTED, &liveness->peer->name, -1);
    if (look->lanes_changed)
        act_on_changes(liveness);
    if (look->is_lost && may_be_met_again(liveness->peer)) {
        look->is_lost = false;
        look_waits_on(liveness, look->now);
    }
    if (look->is_lost) {
        liveness_end(liveness);
        peer_lost(liveness->peer, look->why);
        return;
    }
    const struct wire_ask ask = {.number = look->ask};
    for (int i = 0; i < peer_lane_count(liveness->peer); i++) {
        struct lane *lane = &liveness->peer->lanes[i];
        if (look->fence_lanes >> i & 1) /* before what waits for the fence is sent again */
            fence_send(lane);
        if (look->renew_lanes >> i & 1)
            lane_renew_silent(liveness, lane);
        if (look->ask_lanes >> i & 1) /* without room now: asked again later */
            control_send_bare(lane, WIRE_ASK, &ask, sizeof(ask));
    }
}

/* True: look again. */
static bool peer_look(struct liveness *liveness, uint64_t now)
{
    struct look look = {.now = now};
    OPAL_THREAD_LOCK(&liveness->lock);
    look_at(liveness, &look);
    OPAL_THREAD_UNLOCK(&liveness->lock);
    look_act(liveness, &look);
    return look.keep && !look.is_lost;
}

/* --- processes without contact -------------------------------------------------------------------
 * A receive or probe names them. Without lanes to them this process would not notice their loss. */

/* Looks through receives and probes for them. Not at receives from any source:
 * that would connect all processes with each other. */

/* Contacted per look; the next look finds the others. */
#define AWAITED_MAX 16

struct awaited {
    opal_process_name_t names[AWAITED_MAX];
    int count;
};

static void awaited_add(struct awaited *awaited, const struct mca_pml_comm_t *comm, int32_t source)
{
    if (source < 0 || (uint32_t) source >= comm->size || awaited->count == AWAITED_MAX)
        return;
    if (compat_comm_receive_error(comm->ompi, source, 0) != OMPI_SUCCESS)
        return; /* known as dead: the receive will end with that */
    opal_process_name_t name = ompi_group_get_proc_name(comm->ompi->c_remote_group, source);
    const struct peer *peer = peer_find(name);
    if (!peer || (any_lane(peer, lane_may_break) && !liveness_find(peer)))
        awaited->names[awaited->count++] = name;
}

static void awaited_look(struct mca_pml_comm_t *comm, struct awaited *awaited)
{
    if (compat_comm_errors_end_job(comm->ompi))
        return;
    if (atomic_load_explicit(&comm->probe_missed, memory_order_relaxed)) /* both: recv.c */
        awaited_add(awaited, comm, atomic_load_explicit(&comm->probe_source, memory_order_relaxed));
    biased_lock(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask; i++)
        for (const struct match_node *head = comm->posted.buckets[i]; head; head = head->next_head)
            awaited_add(awaited, comm, head->source);
    biased_unlock(&comm->lock);
}

/* Contacts them, on communicators whose errors are returned; watch.c then asks them. Where errors
 * end the job, a sender notices and ends it. No lock is held. */
static void awaited_senders_contact(void)
{
    struct awaited awaited = {.count = 0};
    multilane_lock();
    for (struct mca_pml_comm_t *comm = comm_next(NULL); comm; comm = comm_next(comm))
        awaited_look(comm, &awaited);
    multilane_unlock();
    for (int i = 0; i < awaited.count; i++) {
        struct peer *peer = peer_contact(awaited.names[i], NULL);
        if (peer && !peer_is_reachable(peer))
            peer_lost(peer, "no lane reaches it, and a receive or probe waits for it");
        else if (peer && any_lane(peer, lane_may_break))
            (void) liveness_of(peer); /* so that watch.c looks at the peer */
    }
}

/* --- all peers, now and then ---------------------------------------------------------- */

/* A lane that comes late to a peer in use must be proven; one whose BTL says whether it is quiet is
 * looked at now and then. */
void watch_peer(struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++) {
        if (lane_state(&peer->lanes[i]) == LANE_UNPROVEN && liveness_find(peer))
            lane_watch(&peer->lanes[i]);
        if (reports_quiet(&peer->lanes[i]))
            schedule_begin();
    }
}

/* Nothing was heard or asked for long? */
static bool is_forgotten(struct liveness *liveness, uint64_t now)
{
    uint64_t pause = ask_after_ns();
    OPAL_THREAD_LOCK(&liveness->lock);
    bool is_forgotten = !liveness->lost && peer_lane_count(liveness->peer) > 0 &&
                        now - liveness->alive_ns >= pause && now - liveness->asked_ns >= pause;
    OPAL_THREAD_UNLOCK(&liveness->lock);
    return is_forgotten;
}

/* A process that only receives has nothing under way. Where errors end the job, the sender notices
 * and ends it. Where errors are returned, the receiver has to ask. */
static void quiet_look(struct peer *peer, uint64_t now)
{
    struct look look = {.now = now};
    struct liveness *liveness = liveness_find(peer);
    if (!liveness)
        return;
    bool quiet = is_forgotten(liveness, now);
    if (quiet && peer_has_parted(peer)) {
        OPAL_THREAD_LOCK(&liveness->lock);
        liveness->asked_ns = now; /* not asked now; look again after the same time */
        OPAL_THREAD_UNLOCK(&liveness->lock);
        return;
    }
    bool asks = quiet && !any_lane(peer, never_breaks) && lost_would_be_returned(peer);
    OPAL_THREAD_LOCK(&liveness->lock);
    if (!liveness->lost && peer_lane_count(peer) > 0) {
        if (asks && liveness->waited_ns <= liveness->alive_ns)
            liveness->waited_ns = now;
        if (asks)
            ask_all(liveness, &look);
        look_lost(liveness, &look);
        look.ask = liveness->ask;
    }
    OPAL_THREAD_UNLOCK(&liveness->lock);
    look_act(liveness, &look);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* One thread at a time: watch.inside. */
static void watch_all(void)
{
    uint64_t system = clock_now_ns(), passed = system - watch.looked_ns;
    atomic_store_explicit(&watch_skips, passed < FAST_NS ? FAST_CALLS - 1 : 0,
                          memory_order_relaxed);
    if (passed < LOOK_NS)
        return;
    watch.looked_ns = system;
    uint64_t now = active_time_ns() + (passed < ATTENDED_NS ? passed : ATTENDED_NS);
    counter_set(&active_time, now);

    if (now - watch.quiet_ns >= QUIET_NS) {
        watch.quiet_ns = now;
        if (now - watch.awaited_ns >= ask_after_ns()) {
            watch.awaited_ns = now;
            awaited_senders_contact();
        }
        for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
            quiet_look(peer, now);
            worse_look(peer, now);
        }
    }
    if (now - watch.lanes_ns >= suspect_ns() / 4) {
        watch.lanes_ns = now;
        for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
            if (has_to_be_asked(peer))
                lane_watch(&peer->lanes[0]);
    }
    struct liveness *round = schedule_take();
    while (round) {
        struct liveness *liveness = round;
        round = liveness->next_watched;
        atomic_store_explicit(&liveness->watched, false, memory_order_release); /* schedule_add */
        if (peer_look(liveness, now))
            schedule_add(liveness);
    }
}

void watch_look(void)
{
    /* Acquire and release: the next thread inside sees what this one wrote. */
    if (atomic_exchange_explicit(&watch.inside, true, memory_order_acquire))
        return;
    watch_all();
    atomic_store_explicit(&watch.inside, false, memory_order_release);
}
