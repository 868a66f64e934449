/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles failed lanes and lost peers. */

#include <stdio.h>

#include "match/comm.h"
#include "common/compat/btl.h"
#include "lane/lane.h"
#include "delivery/control.h"
#include "liveness/liveness.h"
#include "base/multilane.h"
#include "peer/peer.h"
#include "plan/peer_class.h"

/* BTLs report lost connections while all processes of a job end; these are no errors. */
bool mpi_is_ending(void)
{
    /* Not behind it: sessions may go on. */
    return ompi_mpi_state == OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

static void process_lost(ompi_proc_t *proc, const char *sentence)
{
    struct peer *peer = proc ? peer_find(proc->super.proc_name) : NULL;
    if ((peer && peer_is_gone(peer)) || handover_take(process_lost, proc, sentence))
        return; /* already printed, or the handover will do it */
    if (peer && peer_has_parted(peer))
        return;
    opal_output(0, "%s", sentence);
    if (!compat_proc_failed(proc) && !(peer && lost_is_returned(peer)))
        ompi_mpi_errors_are_fatal_comm_handler(NULL, NULL, (char *) sentence);
}

/* The lane to the process failed; null: the BTL toward an unknown one. */
static void lane_lost(mca_btl_base_module_t *btl, ompi_proc_t *proc, const char *what,
                      const char *why)
{
    char text[512];
    if (proc)
        snprintf(text, sizeof(text),
                 "multilane: lane %s to %s %s: %s. What it carried may be lost, and no other lane "
                 "takes over (of several of sock and verbs one does, with pml_multilane_failover "
                 "1), so that process counts as failed.",
                 lane_name_of(btl), compat_proc_name(&proc->super).text, what, why);
    else
        snprintf(text, sizeof(text), "multilane: lane %s %s: %s.", lane_name_of(btl), what, why);
    if (!mpi_is_ending())
        process_lost(proc, text);
}

static void errors_of_lane(struct lane *lane, const char *what, int rc)
{
    /* Also at the end: what the lane carried may be what another process waits for. */
    if (!lane_break(lane, what, opal_strerror(rc)))
        lane_lost(lane->btl, lane->peer->proc, what, opal_strerror(rc));
}

static void errors_of_btl(mca_btl_base_module_t *btl, const char *what, int rc)
{
    lane_lost(btl, NULL, what, opal_strerror(rc));
}

void lane_say(const struct lane *lane, const char *change, const char *why, bool last)
{
    if (mpi_is_ending() || peer_has_parted(lane->peer))
        return;
    opal_output(0, "multilane: lane %s (%d of %d) to %s %s: it %s.%s", class_lane_name(lane),
                lane->index + 1, peer_lane_count(lane->peer),
                compat_proc_name(&lane->peer->proc->super).text, change, why,
                last ? " Further changes of this lane are only counted." : "");
}

void peer_lost(struct peer *peer, const char *why)
{
    char text[512];
    if (mpi_is_ending())
        return;
    snprintf(text, sizeof(text), "multilane: %s counts as failed: %s.",
             compat_proc_name(&peer->proc->super).text, why);
    process_lost(peer->proc, text);
}

/* Does another lane take over what this one carried to the peer? */
static bool lane_broke(struct peer *peer, const mca_btl_base_module_t *btl, const char *why)
{
    struct lane *lane = peer_lane_of(peer, btl);
    return !lane || /* it carried nothing */
           lane_break(lane, "reported an error", why);
}

/* The same for `proc`; null: for all peers, as the BTL names none, if there is one. */
static bool lanes_broke(const mca_btl_base_module_t *btl, opal_proc_t *proc, const char *why)
{
    bool any = false, all = true;
    if (proc) {
        struct peer *peer = peer_find(proc->proc_name);
        return peer && lane_broke(peer, btl, why);
    }
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
        if (peer->is_self)
            continue;
        any = true;
        all &= lane_broke(peer, btl, why);
    }
    return any && all;
}

/* A lane that returns what it has not delivered has lost some of it all the same. */
static bool messages_are_lost(const mca_btl_base_module_t *btl, int32_t flags, struct peer *peer)
{
    const struct lane *lane = peer ? peer_lane_of(peer, btl) : NULL;
    return flags & MCA_BTL_ERROR_FLAGS_FATAL && lane && lane->returns;
}

void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info)
{
    const char *why = info && *info ? info : "no reason given";
    struct peer *peer = proc ? peer_find(proc->proc_name) : NULL;
    if (flags & COMPAT_BTL_SAYS_IPC) /* no error: smcuda switches to IPC */
        return;
    if (messages_are_lost(btl, flags, peer))
        peer_lost(peer, why);
    else if (!lanes_broke(btl, proc, why))
        lane_lost(btl, (ompi_proc_t *) proc, "reported an error", why);
}

void errors_peer_gave_up(struct peer *peer)
{
    struct liveness *liveness = liveness_find(peer);
    if (liveness)
        liveness_end(liveness);
    peer_lost(peer, "no lane brought it an answer of this process for its pml_multilane_lost_s, so "
                    "it has given up this process");
}

void errors_begin(void)
{
    lane_events = (struct lane_events){.failed = errors_of_lane,
                                       .btl_failed = errors_of_btl,
                                       .unproven = lane_watch,
                                       .returned = control_returned};
}
