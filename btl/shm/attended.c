/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings that every round of progress reads. The other rings are read when their doorbell rings.
 *
 * A ring that loses its place lingers: its sender is told to ring, and the ring is still looked at
 * for some rounds. A sender that had published a message and read just before that its ring is
 * attended does not ring for it; that message is found while the ring lingers, which is far longer
 * than a store can wait in the sender's processor. So neither end needs a fence
 * (test/unit/bell_model.c). */
#include "btl/shm/shm.h"

/* Each takes longer than a look at a line in the cache, together some 20 us at least. */
#define LINGER_ROUNDS 1024u

static uint32_t round_now(void)
{
    return atomic_load_explicit(&shm.round, memory_order_relaxed);
}

static void in_attended_set(shm_peer_t *peer, bool attended)
{
    atomic_store_explicit(&peer->in_attended, attended, memory_order_relaxed); /* in_is_attended */
}

void shm_attended_leave(shm_peer_t *peer)
{
    in_attended_set(peer, false);
    peer->in_lingers = false;
    bool is_free = shm_receiving_take(peer);
    if (!is_free || (in_is_open(peer) && ring_has_message(&peer->in)))
        shm_doorbell_ring_own_of(peer); /* its sender rang before, or not at all */
    if (is_free)
        shm_receiving_leave(peer);
}

bool shm_attended_is_marked(const shm_peer_t *peer)
{
    return in_is_attended(peer) && !peer->in_lingers &&
           atomic_load_explicit(&shm.bells, memory_order_relaxed) == BELLS_AND_RINGS;
}

void shm_attended_linger(shm_peer_t *peer)
{
    ring_attend(&peer->in, false);
    peer->in_lingers = true;
    peer->in_lingers_from = round_now();
}

/* The place of a ring whose sender has sent nothing since it was last asked, once it has lingered.
 * False: not yet, or it is in use. */
static bool place_clear(shm_peer_t *peer)
{
    if (peer->in_lingers) {
        if (round_now() - peer->in_lingers_from < LINGER_ROUNDS)
            return false;
        shm_attended_leave(peer);
        return true;
    }
    if (!shm_receiving_take(peer))
        return false;
    if (peer->in.tail == peer->in_tail_seen)
        shm_attended_linger(peer);
    peer->in_tail_seen = peer->in.tail;
    shm_receiving_leave(peer);
    return false;
}

/* A place for one more ring: an empty one, or that of a silent peer. Each call asks one peer. -1:
 * there is none. */
static int place_find(void)
{
    uint32_t at = shm.attended_next;

    for (int i = 0; i < (int) SHM_ATTENDED_MAX; i++)
        if (!atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            return i;
    shm.attended_next = (at + 1) % SHM_ATTENDED_MAX;
    return place_clear(atomic_load_explicit(&shm.attended[at], memory_order_relaxed)) ? (int) at
                                                                                      : -1;
}

void shm_attended_add(shm_peer_t *peer)
{
    /* With one thread the first ring after a sleep, or after the lingering before one, brings back
     * rings that are looked at; another thread may still sleep. */
    if (!opal_using_threads())
        atomic_store_explicit(&shm.bells, BELLS_AND_RINGS, memory_order_relaxed);
    if (atomic_load_explicit(&shm.bells, memory_order_relaxed) != BELLS_AND_RINGS ||
        !in_is_open(peer) || (in_is_attended(peer) && !peer->in_lingers))
        return;
    int at = in_is_attended(peer) ? 0 : place_find();
    if (at < 0)
        return;
    peer->in_tail_seen = UINT64_MAX; /* the first time it is asked it keeps its place */
    ring_attend(&peer->in, true);
    peer->in_lingers = false;
    if (in_is_attended(peer)) /* it lingered, and keeps its place */
        return;
    in_attended_set(peer, true);
    /* Release: a thread that reads the entry sees the peer complete (shm_receive_progress). */
    atomic_store_explicit(&shm.attended[at], peer, memory_order_release);
    if ((uint32_t) at >= atomic_load_explicit(&shm.attended_end, memory_order_relaxed))
        atomic_store_explicit(&shm.attended_end, (uint32_t) at + 1, memory_order_relaxed);
}

void shm_attended_remove(shm_peer_t *peer)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < SHM_ATTENDED_MAX; i++)
        if (peer == atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            atomic_store_explicit(&shm.attended[i], NULL, memory_order_relaxed);
        else if (atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            end = i + 1;
    atomic_store_explicit(&shm.attended_end, end, memory_order_relaxed);
    in_attended_set(peer, false);
    peer->in_lingers = false;
}
