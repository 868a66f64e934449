/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: bits in the header of a segment that make its owner look at a connection. */
#include "btl/shm/shm.h"

void shm_doorbell_ring(shm_peer_t *peer)
{
    /* Release: the owner that clears the bit (rung_take) sees what was written before, connection
     * or message. */
    atomic_fetch_or_explicit(peer->doorbell, UINT64_C(1) << peer->doorbell_bit,
                             memory_order_release);
}

void shm_doorbell_ring_own(struct segment *segment, uint32_t index)
{
    index %= SEGMENT_DOORBELLS * 64;
    /* Relaxed: this process reads it itself, in another round. */
    atomic_fetch_or_explicit(&segment->header->doorbells[index / 64], UINT64_C(1) << index % 64,
                             memory_order_relaxed);
}

void shm_doorbell_ring_own_of(shm_peer_t *peer)
{
    struct segment *segment = &shm.segments[peer->in_kind];
    struct connection *connection =
        atomic_load_explicit(&peer->in_connection, memory_order_relaxed);

    if (connection) /* else it has closed meanwhile */
        shm_doorbell_ring_own(segment, (uint32_t) (connection - segment->connections));
}
