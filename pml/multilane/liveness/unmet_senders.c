/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks through receives and probes for processes never met. Not at receives from any source:
 * that would connect all processes with each other. */
#include "liveness/unmet_senders.h"

#include "match/comm.h"
#include "liveness/liveness.h"
#include "liveness/errors.h"
#include "base/multilane.h"
#include "contact/contact.h"

/* Met per look; the next look finds the others. */
#define UNMET_MAX 16

struct unmet {
    opal_process_name_t names[UNMET_MAX];
    int count;
};

static bool may_break(const struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (lane_may_break(&peer->lanes[i]))
            return true;
    return false;
}

static void unmet_note(struct unmet *unmet, const struct mca_pml_comm_t *comm, int32_t source)
{
    if (source < 0 || (uint32_t) source >= comm->size || unmet->count == UNMET_MAX)
        return;
    if (compat_comm_receive_error(comm->ompi, source, 0) != OMPI_SUCCESS)
        return; /* known as dead: the receive will end with that */
    opal_process_name_t name = ompi_group_get_proc_name(comm->ompi->c_remote_group, source);
    const struct peer *peer = peer_find(name);
    if (!peer || (may_break(peer) && !liveness_find(peer)))
        unmet->names[unmet->count++] = name;
}

static void unmet_look(struct mca_pml_comm_t *comm, void *with)
{
    struct unmet *unmet = with;
    if (compat_comm_errors_end_job(comm->ompi))
        return;
    if (atomic_load_explicit(&comm->probe_missed, memory_order_relaxed)) /* both: probe.c */
        unmet_note(unmet, comm, atomic_load_explicit(&comm->probe_source, memory_order_relaxed));
    biased_lock(&comm->lock);
    for (uint32_t i = 0; i <= comm->posted.mask; i++)
        for (const struct match_node *head = comm->posted.buckets[i]; head; head = head->next_head)
            unmet_note(unmet, comm, head->source);
    biased_unlock(&comm->lock);
}

void unmet_senders_meet(void)
{
    struct unmet unmet = {.count = 0};
    comms_visit(unmet_look, &unmet);
    for (int i = 0; i < unmet.count; i++) {
        struct peer *peer = peer_contact(unmet.names[i], NULL);
        if (peer && !peer_is_reachable(peer))
            peer_lost(peer, "no lane reaches it, and a receive or probe waits for it");
        else if (peer && may_break(peer))
            (void) liveness_of(peer); /* so that watch.c looks at the peer */
    }
}
