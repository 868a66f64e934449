/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes at the other ends: how they become known, are found, and are given up. */
#include "btl/shm/shm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compat/modex.h"
#include "opal/class/opal_bitmap.h"
#include "opal/mca/hwloc/hwloc-internal.h"
#include "opal/util/proc.h"

static bool names_equal(const opal_process_name_t *a, const opal_process_name_t *b)
{
    return a->jobid == b->jobid && a->vpid == b->vpid;
}

shm_peer_t *peer_find(const opal_process_name_t *name)
{
    for (uint32_t i = 0; i < shm.peer_count; i++)
        if (shm.peers[i] && names_equal(&shm.peers[i]->name, name))
            return shm.peers[i];
    return NULL;
}

/* Room for one more entry in the tables that have a place for every peer. */
static bool tables_grow(void)
{
    uint32_t room = shm.peer_room ? 2 * shm.peer_room : 64;
    shm_peer_t **peers, **pending;

    if (shm.peer_count < shm.peer_room)
        return true;
    peers = realloc(shm.peers, room * sizeof(*peers));
    if (!peers)
        return false;
    shm.peers = peers;
    opal_mutex_lock(&shm.pending_lock);
    pending = realloc(shm.pending_peers, room * sizeof(*pending));
    if (pending) {
        shm.pending_peers = pending;
        shm.peer_room = room;
    }
    opal_mutex_unlock(&shm.pending_lock);
    return pending != NULL;
}

shm_peer_t *peer_create(const opal_process_name_t *name)
{
    shm_peer_t *peer;

    if (!tables_grow())
        return NULL;
    peer = aligned_alloc(RING_LINE_BYTES,
                         (sizeof(*peer) + RING_LINE_BYTES - 1) / RING_LINE_BYTES * RING_LINE_BYTES);
    if (!peer)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    peer->name = *name;
    peer->host_fd = -1;
    peer->out_state = OUT_NONE;
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->pending, opal_list_t);
    OBJ_CONSTRUCT(&peer->remote_operations, opal_list_t);
    shm.peers[shm.peer_count++] = peer;
    return peer;
}

/* The record that `proc` published, checked; NULL if it published none that can be used. */
static struct shm_record *record_get(opal_proc_t *proc)
{
    void *data = NULL;
    size_t bytes = 0;

    if (modex_recv(&shm.super.btl_version, &proc->proc_name, &data, &bytes) != OPAL_SUCCESS)
        return NULL;
    if (bytes == sizeof(struct shm_record) &&
        ((struct shm_record *) data)->version == SHM_RECORD_VERSION)
        return data;
    SHM_SAY("process %s runs another version of btl/shm; messages to it take another lane. Install "
            "the same version of Multilane for all processes of the job.",
            OPAL_NAME_PRINT(proc->proc_name));
    free(data);
    return NULL;
}

static bool file_segment_ready(void)
{
    bool ready;

    opal_mutex_lock(&shm.lane_lock);
    ready = door_segment_ready(SEGMENT_FILE);
    opal_mutex_unlock(&shm.lane_lock);
    return ready;
}

/* Under shm.lock. Whether a ring will be there when the first message goes out; who asks then that
 * there is none has no other lane any more. */
static bool ring_is_promised(enum segment_kind kind, const opal_process_name_t *name)
{
    static bool said;

    if (atomic_load_explicit(&shm.promised[kind], memory_order_relaxed) >= shm.lane_count) {
        if (!said)
            SHM_SAY("messages to process %s, and maybe to others, take another lane: the %u "
                    "rings of this process are all that btl_shm_memory_max (%s) holds. A larger "
                    "one, or a "
                    "smaller btl_shm_ring_bytes, may help.",
                    OPAL_NAME_PRINT(*name), shm.lane_count, shm.memory_max_text);
        said = true;
        return false;
    }
    atomic_fetch_add_explicit(&shm.promised[kind], 1, memory_order_relaxed);
    return true;
}

static void promise_end(shm_peer_t *peer)
{
    if (atomic_exchange_explicit(&peer->promised, false, memory_order_relaxed))
        atomic_fetch_sub_explicit(&shm.promised[peer->kind], 1, memory_order_relaxed);
}

/* Under shm.lock. The peer, if shared memory leads to it; NULL else, which is no error. */
static shm_peer_t *peer_add(opal_proc_t *proc, int *status)
{
    bool same_job = proc->proc_name.jobid == opal_proc_local_get()->proc_name.jobid;
    enum segment_kind kind = SEGMENT_MEMFD;
    struct shm_record *record;
    const char *refusal;
    shm_peer_t *peer;
    bool promised;

    if (proc == opal_proc_local_get() || (same_job && !OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags)))
        return NULL;
    record = record_get(proc);
    if (!record)
        return NULL;
    refusal = identity_refuses(record, same_job, &kind);
    if (!refusal && kind == SEGMENT_FILE && !file_segment_ready())
        refusal = "no file could be made for it in /dev/shm";
    peer = peer_find(&proc->proc_name);
    promised = peer && atomic_load_explicit(&peer->promised, memory_order_relaxed);
    if (!refusal && !promised && !ring_is_promised(kind, &proc->proc_name))
        refusal = "all rings are promised to others";
    if (refusal) {
        SHM_VERBOSE("no lane to process %s: %s", OPAL_NAME_PRINT(proc->proc_name), refusal);
        free(record);
        return NULL;
    }
    if (!peer)
        peer = peer_create(&proc->proc_name);
    if (!peer) {
        *status = OPAL_ERR_OUT_OF_RESOURCE;
    } else {
        atomic_store_explicit(&peer->promised, true, memory_order_relaxed);
        if (peer->gone) {
            /* The same process has begun anew, with another segment. */
            peer->gone = false;
            peer->out_state = OUT_NONE;
            peer->copy_tried = false;
        }
        atomic_store_explicit(&peer->in_left, false, memory_order_relaxed);
        peer->record = *record;
        peer->kind = kind;
        peer->proc = proc;
        peer->known = true;
    }
    free(record);
    return peer;
}

int peer_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   shm_peer_t **peers, opal_bitmap_t *reachable)
{
    int status = OPAL_SUCCESS;

    (void) btl;
    OPAL_THREAD_LOCK(&shm.lock);
    for (size_t i = 0; i < count && status == OPAL_SUCCESS; i++) {
        peers[i] = peer_add(procs[i], &status);
        if (peers[i] && reachable)
            status = opal_bitmap_set_bit(reachable, (int) i);
    }
    OPAL_THREAD_UNLOCK(&shm.lock);
    return status;
}

int peer_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                   shm_peer_t **peers)
{
    (void) btl;
    (void) procs;
    for (size_t i = 0; i < count; i++) {
        shm_peer_t *peer = peers[i];

        if (!peer)
            continue;
        door_close_out(peer);
        peer->known = false;
        peer->proc = NULL;
    }
    return OPAL_SUCCESS;
}

void peer_fail(shm_peer_t *peer, const char *why)
{
    bool first;

    OPAL_THREAD_LOCK(&peer->lock);
    first = peer->out_state != OUT_DEAD;
    peer->out_state = OUT_DEAD;
    peer->out_direct = false;
    peer->copy_proven = false;
    peer->copy_tried = true;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!first)
        return;
    SHM_SAY("the lane from process %s to process %s is lost: %s",
            OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), OPAL_NAME_PRINT(peer->name), why);
    send_fail_pending(peer);
    remote_fail(peer);
    if (shm.error_callback && peer->proc)
        shm.error_callback(&shm_module.super, 0, peer->proc, (char *) "shared memory");
}

/* Whether a peer that ended did so in order: it said so in its segment. */
static bool peer_finalized(const shm_peer_t *peer)
{
    return peer->host &&
           atomic_load_explicit(&peer->host->state, memory_order_acquire) == SEGMENT_FINALIZED;
}

bool peer_reads(const shm_peer_t *peer)
{
    return !peer->host || (!peer_finalized(peer) && segment_owner_lives(peer->host_fd));
}

static bool peer_has_ended(shm_peer_t *peer)
{
    if (segment_owner_lives(peer->host_fd) || peer_finalized(peer))
        return false;
    return shm.record.pid_namespace != peer->record.pid_namespace ||
           !segment_process_lives(peer->record.pid);
}

/* One that ended as it should needs nothing any more, though Open MPI may never say so: it does not
 * take processes back from its BTLs when a spawned job disconnects. */
static void peer_part(shm_peer_t *peer)
{
    if (peer->gone || !peer_finalized(peer) || segment_owner_lives(peer->host_fd))
        return;
    door_leave(peer);
    peer->gone = true;
    peer->out_state = OUT_DEAD;
    peer_retire(peer);
}

static const char *peer_loss(shm_peer_t *peer)
{
    const char *why = NULL;

    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->host_fd >= 0 && peer->out_state != OUT_DEAD) {
        peer_part(peer);
        if (peer->gone)
            why = NULL;
        else if (peer_has_ended(peer))
            why = "that process has ended";
        else if (peer->out_door &&
                 atomic_load_explicit(&peer->out_door->state, memory_order_acquire) == DOOR_REFUSED)
            why = "that process cannot open the memory of this one";
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return why;
}

#define LIVES_BATCH 16u
#define AWAITED_US  100

/* A few peers each time, so that the time this takes does not grow with their number. */
void peer_check_lives(void)
{
    shm_peer_t *peers[LIVES_BATCH];
    uint32_t count = 0;

    OPAL_THREAD_LOCK(&shm.lock);
    while (count < LIVES_BATCH && count < shm.peer_count)
        peers[count++] = shm.peers[shm.life_next++ % shm.peer_count];
    OPAL_THREAD_UNLOCK(&shm.lock);
    for (uint32_t i = 0; i < count; i++) {
        const char *why = peer_loss(peers[i]);

        /* With no lock held: the callbacks may do anything. */
        if (why)
            peer_fail(peers[i], why);
    }
}

static void host_close(shm_peer_t *peer)
{
    if (peer->host)
        segment_unmap(peer->host, peer->host_bytes);
    if (peer->host_fd >= 0)
        close(peer->host_fd);
    peer->host = NULL;
    peer->host_fd = -1;
}

void peer_retire(shm_peer_t *peer)
{
    if (peer->left_door) {
        bool read =
            atomic_load_explicit(&peer->left_door->state, memory_order_acquire) != DOOR_CLOSED;

        if (!read && !peer_finalized(peer) && segment_owner_lives(peer->host_fd))
            return;
        opal_mutex_lock(&shm.lane_lock);
        segment_lane_put(peer->out_segment, peer->left_lane);
        opal_mutex_unlock(&shm.lane_lock);
        peer->left_door = NULL;
        peer->left_lane = NULL;
    }
    if ((peer->known && !peer->gone) || peer->out_door)
        return;
    promise_end(peer);
    if (!in_is_open(peer))
        host_close(peer);
}

static void peer_destroy(shm_peer_t *peer)
{
    door_close_out(peer);
    door_close_in(peer);
    host_close(peer);
    OBJ_DESTRUCT(&peer->remote_operations);
    OBJ_DESTRUCT(&peer->pending);
    OBJ_DESTRUCT(&peer->lock);
    free(peer->stale);
    free(peer);
}

/* Whether the peer will want to open the ring that we have left: it has messages that the peer was
 * not there to see. Only first ones; and only where processes end without meeting before, as those
 * that have sessions do. */
static bool peer_awaits(const shm_peer_t *peer)
{
    return peer->left_door && !peer_finalized(peer) &&
           atomic_load_explicit(&peer->left_door->state, memory_order_relaxed) == DOOR_CLOSED &&
           atomic_load_explicit(&peer->left_lane->is_mapped, memory_order_relaxed) == 0 &&
           segment_owner_lives(peer->host_fd);
}

void peers_close(void)
{
    for (uint32_t i = 0; i < shm.peer_count; i++)
        door_close_out(shm.peers[i]);
    for (uint32_t i = 0; i < shm.peer_count; i++)
        while (peer_awaits(shm.peers[i]))
            usleep(AWAITED_US);
    for (uint32_t i = 0; i < shm.peer_count; i++)
        peer_destroy(shm.peers[i]);
    free(shm.peers);
    free(shm.pending_peers);
    shm.peers = shm.pending_peers = NULL;
    shm.peer_count = shm.peer_room = 0;
    atomic_store_explicit(&shm.pending_count, 0, memory_order_relaxed);
}
