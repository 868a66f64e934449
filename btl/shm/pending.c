/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that wait for room: progress sends them, or they fail with their peer. */
#include "btl/shm/shm.h"

#include <unistd.h>

int shm_pending_progress(void)
{
    uint32_t peers = atomic_load_explicit(&shm.pending_count, memory_order_relaxed);
    int events = 0;

    while (peers-- > 0) {
        shm_peer_t *peer = shm_peer_take_pending();

        if (!peer)
            break;
        if (peer->out_unusable)
            shm_peer_fail(peer, "its memory cannot be opened, or none is left for a ring to it");
        events += shm_send_pending_of(peer);
        OPAL_THREAD_LOCK(&peer->lock);
        if (!opal_list_is_empty(&peer->pending))
            shm_peer_list_pending(peer);
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
    return events;
}

void shm_pending_drain(shm_peer_t *peer)
{
    for (int tries = 0; (shm.finalized ? shm_peer_reads(peer) : tries < 1000) &&
                        (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING) &&
                        !peer->out_unusable && !opal_list_is_empty(&peer->pending);
         tries++) {
        if (shm_pending_progress() == 0)
            usleep(100);
    }
}
