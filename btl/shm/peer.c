/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers. */
#include "btl/shm/shm.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for one more peer in the table. */
static bool table_grow(void)
{
    uint32_t room = shm.peer_room ? 2 * shm.peer_room : 64;

    if (shm.peer_count < shm.peer_room)
        return true;
    shm_peer_t **peers = realloc(shm.peers, room * sizeof(*peers));
    if (!peers)
        return false;
    shm.peers = peers;
    shm.peer_room = room;
    return true;
}

shm_peer_t *shm_peer_create(const opal_process_name_t *name)
{
    if (!table_grow())
        return NULL;
    shm_peer_t *peer = aligned_alloc(RING_LINE_BYTES, (sizeof(*peer) + RING_LINE_BYTES - 1) /
                                                          RING_LINE_BYTES * RING_LINE_BYTES);
    if (!peer)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    peer->name = *name;
    peer->segment_fd = -1;
    peer->stale = &peer->small_stale;
    peer->out_state = OUT_NONE;
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->pending, opal_list_t);
    OBJ_CONSTRUCT(&peer->remote_operations, opal_list_t);
    peer_table_add(&shm.names, &peer->entry, &peer->name, peer);
    shm.peers[shm.peer_count++] = peer;
    return peer;
}

bool shm_peer_finalized(const shm_peer_t *peer)
{
    /* Acquire: pairs with shm_own_segments_are. */
    return peer->segment &&
           atomic_load_explicit(&peer->segment->state, memory_order_acquire) == SEGMENT_FINALIZED;
}

bool shm_peer_reads(const shm_peer_t *peer)
{
    return !peer->segment || (!shm_peer_finalized(peer) && shm_peer_owner_lives(peer));
}

/* Clocks of another time namespace say something else. */
static uint64_t process_started(const shm_peer_t *peer)
{
    return peer->record.time_namespace == shm.record.time_namespace ? peer->record.started : 0;
}

bool shm_peer_process_lives(const shm_peer_t *peer)
{
    return shm.record.pid_namespace != peer->record.pid_namespace ||
           shm_segment_process_lives(peer->record.pid, process_started(peer));
}

bool shm_peer_owner_lives(const shm_peer_t *peer)
{
    if (peer->segment && !peer->segment->is_locked)
        return shm_peer_process_lives(peer);
    if (peer->segment && peer->segment_bytes == 0) {
        bool known, lives = shm_segment_part_owner_lives(&shm.segments[SEGMENT_JOB],
                                                         peer->record.job_part, &known);

        return known ? lives : shm_peer_process_lives(peer);
    }
    return peer->segment_fd >= 0 ? shm_segment_owner_lives(peer->segment_fd)
                                 : shm_segment_owner_found(peer->record.pid, peer->record.fd,
                                                           &peer->segment_identity);
}
