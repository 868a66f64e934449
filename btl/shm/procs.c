/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that Open MPI adds and takes back. */
#include "btl/shm/shm.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/component.h"
#include "opal/mca/hwloc/hwloc-internal.h"
#include "opal/util/proc.h"

static bool record_fits(const void *data, size_t bytes)
{
    const struct shm_record *record = data;

    return bytes == sizeof(*record) && record->version == SHM_RECORD_VERSION;
}

static bool file_segment_ready(void)
{
    opal_mutex_lock(&shm.channel_lock);
    bool ready = shm_own_segment_ready(SEGMENT_FILE);
    opal_mutex_unlock(&shm.channel_lock);
    return ready;
}

/* Under shm.lock. The peer, or NULL if shared memory does not reach it, which is no error. */
static shm_peer_t *peer_add(opal_proc_t *proc, int *status)
{
    bool same_job = proc->proc_name.jobid == opal_proc_local_get()->proc_name.jobid;
    enum segment_kind kind = SEGMENT_MEMFD;

    if (same_job && !OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
        return NULL;
    struct shm_record *record = component_record_of(shm_module.btl_component, proc, record_fits);
    if (!record)
        return NULL;
    const char *refusal = shm_identity_refuses(record, same_job, &kind);
    if (!refusal && kind == SEGMENT_FILE && !file_segment_ready())
        refusal = "no file could be made for it in /dev/shm";
    if (!refusal && same_job && kind == SEGMENT_MEMFD)
        shm_own_part_take(record);
    else if (!refusal)
        shm_own_others_look(true);
    shm_peer_t *peer = peer_table_find(&shm.names, &proc->proc_name);
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
        if (peer->gone) {
            /* The same process has begun anew, with another segment. */
            peer->gone = false;
            peer->out_state = OUT_NONE;
            atomic_store_explicit(&peer->copy, COPY_UNTRIED, memory_order_relaxed); /* peer_copy */
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

static shm_peer_t *proc_add(mca_btl_base_module_t *btl, opal_proc_t *proc, int *status)
{
    OPAL_THREAD_LOCK(&shm.lock);
    shm_peer_t *peer = peer_add(proc, status);
    OPAL_THREAD_UNLOCK(&shm.lock);
    return peer;
}

int shm_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs, shm_peer_t **peers,
                  opal_bitmap_t *reachable)
{
    return lane_add_procs(btl, count, procs, peers, reachable, proc_add);
}

static void outbound_close(shm_peer_t *peer)
{
    shm_pending_drain(peer);
    biased_lock(&peer->lock);
    /* Otherwise it stays open: the sweep closes it, or the end of the module. */
    if (shm.finalized || shm_outbound_is_settled(peer)) {
        shm_outbound_leave(peer);
        if (peer->out_state == OUT_OPEN || peer->out_state == OUT_WAITING)
            peer->out_state = OUT_NONE;
    }
    biased_unlock(&peer->lock);
}

int shm_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs, shm_peer_t **peers)
{
    for (size_t i = 0; i < count; i++) {
        shm_peer_t *peer = peers[i];

        if (!peer)
            continue;
        outbound_close(peer);
        peer->known = false;
        peer->proc = NULL;
    }
    return OPAL_SUCCESS;
}

static void peer_destroy(shm_peer_t *peer)
{
    outbound_close(peer);
    shm_accept_end(peer);
    shm_peer_segment_close(peer);
    peer_list_remove(&shm.pending, &peer->pending_place);
    OBJ_DESTRUCT(&peer->remote_operations);
    OBJ_DESTRUCT(&peer->pending);
    OBJ_DESTRUCT(&peer->lock);
    if (peer->stale != &peer->small_stale)
        free(peer->stale);
    free(peer);
}

void shm_peers_close(void)
{
    for (uint32_t i = 0; i < shm.peer_count; i++)
        outbound_close(shm.peers[i]);
    for (uint32_t i = 0; i < shm.peer_count; i++)
        peer_destroy(shm.peers[i]);
    free(shm.peers);
    shm.peers = NULL;
    memset(&shm.names, 0, sizeof(shm.names));
    shm.peer_count = shm.peer_room = 0;
}
