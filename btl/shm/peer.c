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

shm_peer_t *shm_peer_find(const opal_process_name_t *name)
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

shm_peer_t *shm_peer_create(const opal_process_name_t *name)
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
    peer->segment_fd = -1;
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

    opal_mutex_lock(&shm.channel_lock);
    ready = shm_segment_ready(SEGMENT_FILE);
    opal_mutex_unlock(&shm.channel_lock);
    return ready;
}

/* Under shm.lock. Whether a ring will be there when the first message goes out; who asks then that
 * there is none has no other lane any more. */
static bool ring_is_promised(enum segment_kind kind, const opal_process_name_t *name)
{
    static bool said;

    if (atomic_load_explicit(&shm.promised[kind], memory_order_relaxed) >= shm.channel_count) {
        if (!said)
            SHM_SAY("messages to process %s, and maybe to others, take another lane: the %u "
                    "rings of this process are all that btl_shm_memory_max (%s) holds. A larger "
                    "one, or a "
                    "smaller btl_shm_ring_bytes, may help.",
                    OPAL_NAME_PRINT(*name), shm.channel_count, shm.memory_max_text);
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
    refusal = shm_identity_refuses(record, same_job, &kind);
    if (!refusal && kind == SEGMENT_FILE && !file_segment_ready())
        refusal = "no file could be made for it in /dev/shm";
    peer = shm_peer_find(&proc->proc_name);
    promised = peer && atomic_load_explicit(&peer->promised, memory_order_relaxed);
    if (!refusal && !promised && !ring_is_promised(kind, &proc->proc_name))
        refusal = "all rings are promised to others";
    if (refusal) {
        SHM_VERBOSE("no lane to process %s: %s", OPAL_NAME_PRINT(proc->proc_name), refusal);
        free(record);
        return NULL;
    }
    if (!peer)
        peer = shm_peer_create(&proc->proc_name);
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

int shm_peer_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
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

int shm_peer_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                       shm_peer_t **peers)
{
    (void) btl;
    (void) procs;
    for (size_t i = 0; i < count; i++) {
        shm_peer_t *peer = peers[i];

        if (!peer)
            continue;
        shm_outbound_close(peer);
        peer->known = false;
        peer->proc = NULL;
    }
    return OPAL_SUCCESS;
}

void shm_peer_fail(shm_peer_t *peer, const char *why)
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
    shm_send_fail_pending(peer);
    shm_remote_fail(peer);
    if (shm.error_callback && peer->proc)
        shm.error_callback(&shm_module.super, 0, peer->proc, (char *) "shared memory");
}

/* Whether a peer that ended did so in order: it said so in its segment. */
static bool peer_finalized(const shm_peer_t *peer)
{
    return peer->segment &&
           atomic_load_explicit(&peer->segment->state, memory_order_acquire) == SEGMENT_FINALIZED;
}

bool shm_peer_reads(const shm_peer_t *peer)
{
    return !peer->segment || (!peer_finalized(peer) && shm_segment_owner_lives(peer->segment_fd));
}

static bool peer_has_ended(shm_peer_t *peer)
{
    if (shm_segment_owner_lives(peer->segment_fd) || peer_finalized(peer))
        return false;
    return shm.record.pid_namespace != peer->record.pid_namespace ||
           !shm_segment_process_lives(peer->record.pid);
}

/* One that ended as it should needs nothing any more, though Open MPI may never say so: it does not
 * take processes back from its BTLs when a spawned job disconnects. */
static void peer_part(shm_peer_t *peer)
{
    if (peer->gone || !peer_finalized(peer) || shm_segment_owner_lives(peer->segment_fd))
        return;
    shm_outbound_leave(peer);
    peer->gone = true;
    peer->out_state = OUT_DEAD;
    shm_outbound_retire(peer);
}

static const char *peer_loss(shm_peer_t *peer)
{
    const char *why = NULL;

    OPAL_THREAD_LOCK(&peer->lock);
    if (peer->segment_fd >= 0 && peer->out_state != OUT_DEAD) {
        peer_part(peer);
        if (peer->gone)
            why = NULL;
        else if (peer_has_ended(peer))
            why = "that process has ended";
        else if (peer->out_connection &&
                 atomic_load_explicit(&peer->out_connection->state, memory_order_acquire) ==
                     CONNECTION_REFUSED)
            why = "that process cannot open the memory of this one";
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    return why;
}

#define LIVES_BATCH 16u
#define AWAITED_US  100

/* A few peers each time, so that the time this takes does not grow with their number. */
void shm_peers_check(void)
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
            shm_peer_fail(peers[i], why);
    }
}

static void peer_segment_close(shm_peer_t *peer)
{
    if (peer->segment)
        shm_segment_unmap(peer->segment, peer->segment_bytes);
    if (peer->segment_fd >= 0)
        close(peer->segment_fd);
    peer->segment = NULL;
    peer->segment_fd = -1;
}

void shm_outbound_retire(shm_peer_t *peer)
{
    if (peer->left_connection) {
        bool read = atomic_load_explicit(&peer->left_connection->state, memory_order_acquire) !=
                    CONNECTION_CLOSED;

        if (!read && !peer_finalized(peer) && shm_segment_owner_lives(peer->segment_fd))
            return;
        opal_mutex_lock(&shm.channel_lock);
        shm_segment_channel_put(peer->out_segment, peer->left_channel);
        opal_mutex_unlock(&shm.channel_lock);
        peer->left_connection = NULL;
        peer->left_channel = NULL;
    }
    if ((peer->known && !peer->gone) || peer->out_connection)
        return;
    promise_end(peer);
    if (!in_is_open(peer))
        peer_segment_close(peer);
}

static void peer_destroy(shm_peer_t *peer)
{
    shm_outbound_close(peer);
    shm_accept_end(peer);
    peer_segment_close(peer);
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
    return peer->left_connection && !peer_finalized(peer) &&
           atomic_load_explicit(&peer->left_connection->state, memory_order_relaxed) ==
               CONNECTION_CLOSED &&
           atomic_load_explicit(&peer->left_channel->is_mapped, memory_order_relaxed) == 0 &&
           shm_segment_owner_lives(peer->segment_fd);
}

void shm_peers_close(void)
{
    for (uint32_t i = 0; i < shm.peer_count; i++)
        shm_outbound_close(shm.peers[i]);
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
