/* SPDX-License-Identifier: BSD-3-Clause */
/* Empties lanes, and uses them again, as their user asks by a word beside the page
 * (DRAIN_FILE_NAME). Later messages go by other lanes, and what was given to the lane ends on it.
 * A lane that is the only one to a peer goes on toward that peer, with a sentence. */

#include <stdatomic.h>

#include "base/multilane.h"
#include "base/own_page.h"
#include "contact/peer_lanes.h"
#include "liveness/liveness.h"
#include "plan/peer_class.h"

/* What is asked is read in one of so many looks: twice a second. */
#define LOOKS 5u

static struct {
    _Atomic bool inside;    /* a thread is in drain_look */
    _Atomic uint64_t done;  /* relaxed: for the page */
    _Atomic uint64_t asked; /* what was asked in the last look; relaxed, a hint */
    _Atomic uint32_t looks;
    /* For the thread inside: */
    uint64_t said; /* lanes of which it was said that they go on */
    bool tries;    /* a lane that may take over is tried */
} drain;

uint64_t drain_done(void)
{
    return atomic_load_explicit(&drain.done, memory_order_relaxed);
}

static void kept_say(const struct lane *lane)
{
    uint64_t bit = UINT64_C(1) << lane_number(lane->listed);
    if (!(drain.said & bit))
        opal_output(0,
                    "multilane: lane %s is not drained toward rank %u: no other lane leads there. "
                    "multilane-top says toward how many ranks that holds.",
                    class_lane_name(lane), lane->peer->name.vpid);
    drain.said |= bit;
}

/* Those that were never needed are tried now. False: there is none. */
static bool others_are_tried(const struct lane *lane)
{
    bool any = false;
    for (int i = 0; i < peer_lane_count(lane->peer); i++) {
        struct lane *other = &lane->peer->lanes[i];
        if (other == lane || lane_state(other) != LANE_UNPROVEN)
            continue;
        lane_watch(other);
        any = true;
    }
    return any;
}

/* A lane that goes on is asked again each time: another one may lead there now. */
static void drain_peer(struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer) && !peer_is_lost(peer); i++) {
        struct lane *lane = &peer->lanes[i];
        bool is_wanted = lane_is_to_drain(lane->listed);
        if (is_wanted != lane_is_out(lane, LANE_OUT_DRAINED) || (is_wanted && !lane_is_lost(lane)))
            lane_leave_out(lane, LANE_OUT_DRAINED, is_wanted);
        if (!is_wanted || lane_is_lost(lane))
            continue;
        if (others_are_tried(lane))
            drain.tries = true;
        else
            kept_say(lane);
    }
}

void drain_look(void)
{
    if (atomic_fetch_add_explicit(&drain.looks, 1, memory_order_relaxed) % LOOKS == 0)
        own_page_drain_read();
    uint64_t wanted = own_page_drain();
    if (OPAL_LIKELY(wanted == 0 && atomic_load_explicit(&drain.asked, memory_order_relaxed) == 0) ||
        atomic_exchange_explicit(&drain.inside, true, memory_order_acquire)) /* the next thread */
        return;
    drain.tries = false;
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        drain_peer(peer);
    drain.said &= wanted;
    atomic_store_explicit(&drain.asked, wanted, memory_order_relaxed);
    if (!drain.tries)
        atomic_store_explicit(&drain.done, wanted, memory_order_relaxed);
    atomic_store_explicit(&drain.inside, false, memory_order_release);
}
