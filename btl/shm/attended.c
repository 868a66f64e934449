/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings that every round of progress reads. The other rings are read when their doorbell rings.
 */
#include "btl/shm/shm.h"

/* An entry for one more ring: an empty one, or that of a peer that has sent nothing since it was
 * last asked to make room. Each call asks one peer. -1: there is none. */
static int entry_find(void)
{
    uint32_t at = shm.attended_next;

    for (int i = 0; i < (int) SHM_ATTENDED_MAX; i++)
        if (!atomic_load_explicit(&shm.attended[i], memory_order_relaxed))
            return i;
    shm.attended_next = (at + 1) % SHM_ATTENDED_MAX;
    shm_peer_t *old = atomic_load_explicit(&shm.attended[at], memory_order_relaxed);
    if (old->in.tail != old->in_tail_seen) {
        old->in_tail_seen = old->in.tail;
        return -1;
    }
    old->in_attended = false;
    ring_attend(&old->in, false);
    /* Sequentially consistent: a message that the sender published before it could see that is
     * found here; one that it publishes at this very moment is found by the sweep (receive.c). */
    atomic_thread_fence(memory_order_seq_cst);
    if (ring_has_message(&old->in))
        shm_doorbell_ring_own_of(old);
    return (int) at;
}

void shm_attended_add(shm_peer_t *peer)
{
    if (peer->in_attended || !in_is_open(peer))
        return;
    int at = entry_find();
    if (at < 0)
        return;
    peer->in_attended = true;
    peer->in_tail_seen = peer->in.tail;
    ring_attend(&peer->in, true);
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
    peer->in_attended = false;
}
