/* SPDX-License-Identifier: BSD-3-Clause */
/* Meets a peer, at the first send to it or at its first message. */
#include "contact/contact.h"

#include <stdlib.h>

#include "base/multilane.h"
#include "common/compat/btl.h"
#include "contact/peer_lanes.h"
#include "contact/record.h"

struct contact_events contact_events;

static void peer_say_unreachable(const struct peer *peer)
{
    opal_output(0,
                "multilane: no lane reaches %s; --mca btl must name a BTL that does, such as "
                "self,shm,sock.",
                compat_proc_name(&peer->proc->super).text);
}

/* Most peers are as this process is. */
static bool peer_keep_ends(struct peer *peer, const struct record_ends *ends)
{
    free(peer->ends);
    peer->ends = NULL;
    if (memcmp(ends, &multilane.ends, sizeof(*ends)) == 0)
        return true;
    peer->ends = malloc(sizeof(*peer->ends));
    if (peer->ends)
        *peer->ends = *ends;
    else
        opal_output(0, "multilane: no memory for what rank %u told of its lanes.", peer->name.vpid);
    return peer->ends != NULL;
}

struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc)
{
    struct peer *peer = peer_find(name);
    if (peer && (peer_is_reachable(peer) || peer_is_lost(peer)))
        return peer;
    if (!proc)
        proc = (ompi_proc_t *) ompi_proc_for_name(name);
    if (!proc || (name.jobid == multilane.me.jobid && name.vpid >= multilane.local_peer_count))
        return NULL;

    multilane_lock();
    peer = peer_find(name);
    bool is_new = !peer;
    if (is_new)
        peer = peer_new(name, proc);
    if (peer && !peer_is_reachable(peer)) {
        peer->is_self = proc == ompi_proc_local_proc;
        peer->proc = proc;
        uint32_t window = multilane.window;
        struct record_ends ends = multilane.ends;
        if (!peer->is_self && !record_accepts(proc, &window, &ends)) {
            ; /* it has reported why */
        } else if (!peer_keep_ends(peer, &ends)) {
            ; /* no memory, likewise */
        } else if (!lanes_have_all_uses(proc)) {
            ; /* likewise */
        } else if (!peer_take_lanes(peer)) {
            peer_say_unreachable(peer);
        } else {
            contact_events.met(peer, window);
            peer_reach(peer, true); /* messages may be sent from here on */
        }
        if (is_new)
            peer_list(peer);
    }
    multilane_unlock();
    return peer;
}

struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name)
{
    if (OPAL_LIKELY(!(base->flags & WIRE_NAMED))) {
        if (OPAL_UNLIKELY(base->from >= multilane.local_peer_count))
            return NULL;
        struct peer *peer = atomic_load_explicit(&multilane.local_peers[base->from],
                                                 memory_order_acquire); /* peer_list */
        if (OPAL_LIKELY(peer && peer_is_reachable(peer)))
            return peer;
    }
    opal_process_name_t sender = {.jobid = multilane.me.jobid, .vpid = base->from};
    if (base->flags & WIRE_NAMED)
        sender = (opal_process_name_t){.jobid = name->jobid, .vpid = name->vpid};
    struct peer *peer = peer_find(sender);
    if (OPAL_LIKELY(peer && peer_is_reachable(peer)))
        return peer;
    ompi_proc_t *proc = NULL;
    if (base->flags & WIRE_NAMED) {
        /* Only known processes: others were not added by MPI, and looking up a name that no
         * process has might wait for ever. One look-up: Open MPI's is without a lock, and
         * another thread may be adding the process. */
        proc = (ompi_proc_t *) ompi_proc_lookup(sender);
        if (sender.jobid != multilane.me.jobid && !proc)
            return NULL;
    }
    peer = peer_contact(sender, proc);
    return peer && (peer_is_reachable(peer) || peer_is_lost(peer)) ? peer : NULL;
}
