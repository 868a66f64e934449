/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that end: how that is detected, and how their pending work ends. And the messages that wait
 * for room: progress sends them, or they fail with their peer. */
#include "btl/shm/shm.h"
#include "common/lock/clock.h"

#include <unistd.h>

#include "opal/util/proc.h"

void shm_peer_fail(shm_peer_t *peer, const char *why)
{
    biased_lock(&peer->lock);
    bool first = peer->out_state != OUT_DEAD;
    peer->out_state = OUT_DEAD;
    peer->out_direct = false;
    atomic_store_explicit(&peer->copy, COPY_REFUSED, memory_order_relaxed); /* peer_copy */
    biased_unlock(&peer->lock);
    if (!first)
        return;
    SHM_SAY("the lane from process %s to process %s is lost: %s",
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), OPAL_NAME_PRINT(peer->name), why);
    shm_send_fail_pending(peer);
    shm_remote_fail(peer);
    lane_lost(&shm_module, peer->proc, why);
}

static bool peer_has_ended(shm_peer_t *peer)
{
    if (shm_peer_owner_lives(peer) || shm_peer_finalized(peer))
        return false;
    return shm.record.pid_namespace != peer->record.pid_namespace || !shm_peer_process_lives(peer);
}

/* A peer that ended in order needs nothing any more. Open MPI may never tell: it does not take
 * processes back from its BTLs when a spawned job disconnects. */
static void peer_part(shm_peer_t *peer)
{
    if (peer->gone || !shm_peer_finalized(peer) || shm_peer_owner_lives(peer))
        return;
    shm_outbound_leave(peer);
    peer->gone = true;
    peer->out_state = OUT_DEAD;
    shm_outbound_retire(peer);
}

/* A lost peer that reads no more needs our channels no more: the sweep takes them back. The PML may
 * still look at control lines in them. */
static void lost_leave(shm_peer_t *peer)
{
    if (peer->out_connection && peer->controls_taken >> CONNECTION_CONTROLS == 0 &&
        !shm_peer_reads(peer))
        shm_outbound_leave(peer);
}

static const char *peer_loss(shm_peer_t *peer)
{
    const char *why = NULL;

    biased_lock(&peer->lock);
    if (peer->out_state == OUT_DEAD) {
        lost_leave(peer);
    } else if (peer->segment) {
        shm_outbound_shrink(peer);
        peer_part(peer);
        if (!peer->gone && peer_has_ended(peer))
            why = "that process has ended";
        else if (peer->out_connection &&
                 atomic_load_explicit(&peer->out_connection->state, memory_order_acquire) ==
                     CONNECTION_REFUSED)
            why = "that process cannot open the memory of this one";
        else if (!shm_send_refused(peer))
            why = "no memory to send again what that process could not read";
    }
    biased_unlock(&peer->lock);
    return why;
}

#define LIFE_CHECK_MS 100u
#define LIVES_BATCH   16u

/* A few peers in each call, so that its time does not grow with their number. */
static void peers_check(void)
{
    shm_peer_t *peers[LIVES_BATCH];
    uint32_t count = 0;

    OPAL_THREAD_LOCK(&shm.lock);
    while (count < LIVES_BATCH && count < shm.peer_count)
        peers[count++] = shm.peers[shm.life_next++ % shm.peer_count];
    OPAL_THREAD_UNLOCK(&shm.lock);
    for (uint32_t i = 0; i < count; i++) {
        const char *why = peer_loss(peers[i]);

        /* With no lock held: callbacks may do anything. */
        if (why)
            shm_peer_fail(peers[i], why);
    }
}

void shm_liveness_check(void)
{
    uint64_t now_ms = clock_coarse_ms();

    /* Relaxed: if two threads check at once, nothing is lost. */
    if (now_ms - atomic_load_explicit(&shm.life_checked_ms, memory_order_relaxed) < LIFE_CHECK_MS)
        return;
    atomic_store_explicit(&shm.life_checked_ms, now_ms, memory_order_relaxed);
    peers_check();
}

/* --- messages that wait for room ----------------------------------------------------------------
 */

int shm_pending_progress(void)
{
    uint32_t peers = peer_list_count(&shm.pending);
    int events = 0;

    while (peers-- > 0) {
        shm_peer_t *peer = peer_list_take(&shm.pending);

        if (!peer)
            break;
        /* At the end of the module the callbacks are gone. */
        if (peer->out_unusable && !shm.finalized)
            shm_peer_fail(
                peer, "that process's memory cannot be opened, or none is left for a ring to it");
        events += shm_send_pending_of(peer);
        biased_lock(&peer->lock);
        if (!opal_list_is_empty(&peer->pending))
            peer_list_add(&shm.pending, &peer->pending_place, peer);
        biased_unlock(&peer->lock);
    }
    return events;
}

/* The longest wait of MPI_Finalize for a free entry in a peer's segment. */
#define CONNECT_MS 60000u

static bool is_waited_for(shm_peer_t *peer, int tries, uint64_t since_ms)
{
    bool connects = peer->out_state == OUT_WAITING && !peer->out_unusable;

    if (peer->out_state != OUT_OPEN && !connects)
        return false;
    if (!shm.finalized)
        return tries < 1000 && !opal_list_is_empty(&peer->pending);
    return shm_peer_reads(peer) && !shm_outbound_is_settled(peer) &&
           (!connects || clock_coarse_ms() - since_ms < CONNECT_MS);
}

void shm_pending_drain(shm_peer_t *peer)
{
    const uint64_t since_ms = clock_coarse_ms();

    for (int tries = 0; is_waited_for(peer, tries, since_ms); tries++) {
        if (shm_pending_progress() == 0)
            usleep(100);
        biased_lock(&peer->lock);
        (void) shm_send_refused(peer);
        biased_unlock(&peer->lock);
    }
}
