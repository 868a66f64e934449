/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes at the other ends: how they become known, and how they are given up. */
#include "btl/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/modex.h"
#include "opal/class/opal_bitmap.h"

/* What a lane that is taken back may take to end what is under way. */
#define DRAIN_MS 1000u

verbs_peer_t *verbs_peer_at(struct verbs_module *module, uint32_t index)
{
    verbs_peer_t **chunk;

    /* Acquire: pairs with the release in verbs_peer_create; whoever sees the count sees the peer.
     */
    if (index >= atomic_load_explicit(&module->peer_count, memory_order_acquire))
        return NULL;
    chunk = atomic_load_explicit(&module->chunks[index / PEERS_CHUNK], memory_order_relaxed);
    return chunk[index % PEERS_CHUNK];
}

verbs_peer_t *verbs_peer_find(struct verbs_module *module, const opal_process_name_t *name)
{
    uint32_t count = atomic_load_explicit(&module->peer_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count; i++) {
        verbs_peer_t *peer = verbs_peer_at(module, i);

        if (peer->name.jobid == name->jobid && peer->name.vpid == name->vpid)
            return peer;
    }
    return NULL;
}

/* Room for one more among those that wait or are waited for. */
static bool waiting_grow(struct verbs_module *module, uint32_t count)
{
    uint32_t room = module->waiting_room ? 2 * module->waiting_room : 64;
    verbs_peer_t **waiting, **expecting;

    if (count < module->waiting_room)
        return true;
    opal_mutex_lock(&module->waiting_lock);
    waiting = realloc(module->waiting, room * sizeof(*waiting));
    if (waiting)
        module->waiting = waiting;
    expecting = realloc(module->expecting, room * sizeof(*expecting));
    if (expecting)
        module->expecting = expecting;
    if (waiting && expecting)
        module->waiting_room = room;
    opal_mutex_unlock(&module->waiting_lock);
    return waiting && expecting;
}

verbs_peer_t *verbs_peer_create(struct verbs_module *module, const opal_process_name_t *name)
{
    uint32_t index = atomic_load_explicit(&module->peer_count, memory_order_relaxed);
    verbs_peer_t **chunk;
    verbs_peer_t *peer;

    if (index >= PEERS_CHUNK * PEERS_CHUNKS || !waiting_grow(module, index))
        return NULL;
    chunk = atomic_load_explicit(&module->chunks[index / PEERS_CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = calloc(PEERS_CHUNK, sizeof(*chunk));
        if (!chunk)
            return NULL;
        atomic_store_explicit(&module->chunks[index / PEERS_CHUNK], chunk, memory_order_relaxed);
    }
    peer = aligned_alloc(PEER_ALIGNMENT,
                         (sizeof(*peer) + PEER_ALIGNMENT - 1) / PEER_ALIGNMENT * PEER_ALIGNMENT);
    if (!peer)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->pending, opal_list_t);
    peer->module = module;
    peer->name = *name;
    peer->index = index;
    chunk[index % PEERS_CHUNK] = peer;
    /* Release: see verbs_peer_at. */
    atomic_store_explicit(&module->peer_count, index + 1, memory_order_release);
    return peer;
}

/* Each end sends what its own buffers hold, and a longer one than the other's would break the lane.
 */
static bool takes_as_long(const opal_proc_t *proc, const struct verbs_record *record)
{
    static bool said;

    if (verbs.record.message_bytes == record->message_bytes)
        return true;
    if (!said)
        VERBS_SAY("process %s has a btl_verbs_max_send_size of %llu and this one of %llu; messages "
                  "between such processes take another lane. Give all of the job the same.",
                  OPAL_NAME_PRINT(proc->proc_name), (unsigned long long) record->message_bytes,
                  (unsigned long long) verbs.record.message_bytes);
    said = true;
    return false;
}

/* The record that `proc` published, checked; NULL if it published none that can be used. */
static struct verbs_record *record_get(opal_proc_t *proc)
{
    struct verbs_record *record;
    void *data = NULL;
    size_t bytes = 0;

    if (modex_recv(&verbs.super.btl_version, &proc->proc_name, &data, &bytes) != OPAL_SUCCESS)
        return NULL;
    record = data;
    if (bytes >= VERBS_RECORD_BYTES(0) && record->version == VERBS_RECORD_VERSION &&
        record->port_count <= CHOICE_PORTS_MAX && VERBS_RECORD_BYTES(record->port_count) == bytes) {
        if (takes_as_long(proc, record))
            return record;
    } else {
        VERBS_SAY("process %s runs another version of btl/verbs; messages to it take another lane. "
                  "Install the same version of Multilane for all processes of the job.",
                  OPAL_NAME_PRINT(proc->proc_name));
    }
    free(data);
    return NULL;
}

/* The place in `record` of the port that this module's leads to; -1: none. */
static int port_of(const struct verbs_module *module, const struct verbs_record *record)
{
    struct choice_address mine[CHOICE_PORTS_MAX], theirs[CHOICE_PORTS_MAX];
    int pairs[CHOICE_PORTS_MAX];

    for (uint32_t i = 0; i < verbs.record.port_count; i++)
        mine[i] = verbs.record.ports[i].address;
    for (uint32_t i = 0; i < record->port_count; i++)
        theirs[i] = record->ports[i].address;
    verbs_choice_pair(mine, verbs.record.port_count, theirs, record->port_count, verbs.any_subnet,
                      pairs);
    return pairs[module->place];
}

static void port_missing(const struct verbs_module *module, const opal_proc_t *proc,
                         const struct verbs_record *record)
{
    const char *why = "it has no port";

    for (uint32_t i = 0; i < record->port_count; i++) {
        why = verbs_choice_refuses(&verbs.record.ports[module->place].address,
                                   &record->ports[i].address, verbs.any_subnet);
        if (!why)
            why = "its ports that could be reached go with others of ours";
    }
    VERBS_VERBOSE("%s: no lane to process %s: %s", module->device, OPAL_NAME_PRINT(proc->proc_name),
                  why);
}

/* Under module->lock. The peer, if one of its ports can be reached; NULL else, which is no error.
 */
static verbs_peer_t *peer_add(struct verbs_module *module, opal_proc_t *proc, int *status)
{
    struct verbs_record *record;
    verbs_peer_t *peer = NULL;
    int place;

    if (proc == opal_proc_local_get())
        return NULL;
    record = record_get(proc);
    if (!record)
        return NULL;
    place = port_of(module, record);
    if (place < 0) {
        port_missing(module, proc, record);
        free(record);
        return NULL;
    }
    peer = verbs_peer_find(module, &proc->proc_name);
    if (!peer)
        peer = verbs_peer_create(module, &proc->proc_name);
    if (!peer) {
        *status = OPAL_ERR_OUT_OF_RESOURCE;
    } else {
        OPAL_THREAD_LOCK(&peer->lock);
        if (peer->state == PEER_FAILED && !verbs_peer_is_unfenced(peer))
            (void) verbs_peer_renew(peer);
        if (peer->state == PEER_IDLE) {
            peer->port = record->ports[place];
            peer->port.address.name[CHOICE_NAME_BYTES - 1] = '\0';
            peer->their_port = (uint32_t) place;
            peer->nonce = record->nonce;
        }
        peer->proc = proc;
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
    free(record);
    return peer;
}

/* One that failed and cannot be made anew yet is no lane, until it is added again. That is done by
 * who had it before; who has not is given it, and failover finds by the first message that it
 * failed. */
static bool peer_is_lane(verbs_peer_t *peer)
{
    bool failed, unfenced;

    OPAL_THREAD_LOCK(&peer->lock);
    failed = peer->state == PEER_FAILED && peer->known;
    unfenced = verbs_peer_is_unfenced(peer);
    peer->known = true;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (unfenced)
        verbs_fence_ask(peer);
    return !failed;
}

int verbs_peer_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                         verbs_peer_t **peers, opal_bitmap_t *reachable)
{
    struct verbs_module *module = module_of(btl);
    int status = OPAL_SUCCESS;

    for (size_t i = 0; i < count && status == OPAL_SUCCESS; i++) {
        OPAL_THREAD_LOCK(&module->lock);
        peers[i] = peer_add(module, procs[i], &status);
        OPAL_THREAD_UNLOCK(&module->lock);
        if (peers[i] && !peer_is_lane(peers[i]))
            peers[i] = NULL;
        if (peers[i] && reachable)
            status = opal_bitmap_set_bit(reachable, (int) i);
    }
    return status;
}

/* --- end --- */

/* Under peer->lock. Nothing of the connection is left after it but completions that will find no
 * such queue pair. */
static void pair_destroy(verbs_peer_t *peer)
{
    if (!peer->qp)
        return;
    ibv_destroy_qp(peer->qp);
    peer->qp = NULL;
    atomic_store_explicit(&peer->qpn, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&peer->module->send_cq_room,
                              (int32_t) ((uint32_t) verbs.queue_depth - peer->send_room),
                              memory_order_relaxed);
    peer->send_room = 0;
    peer->unsignaled = 0;
}

bool verbs_peer_renew(verbs_peer_t *peer)
{
    if (peer->outstanding != 0 || !opal_list_is_empty(&peer->pending))
        return false;
    pair_destroy(peer);
    verbs_peer_state_set(peer, PEER_IDLE);
    peer->was_ready = peer->fence_confirmed = false;
    peer->fence_next_ms = 0;
    return true;
}

static void peer_break(verbs_peer_t *peer)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};

    peer->was_ready = peer->state == PEER_READY;
    verbs_peer_state_set(peer, PEER_FAILED);
    /* What was posted comes back with an error, and nothing more is sent or answered. */
    if (peer->qp)
        (void) ibv_modify_qp(peer->qp, &attributes, IBV_QP_STATE);
}

#define ANY_PAIR 0u

static void pair_fail(verbs_peer_t *peer, uint32_t qpn, const char *why)
{
    struct verbs_module *module = peer->module;
    bool first, quiet, tell;

    OPAL_THREAD_LOCK(&peer->lock);
    first = peer->state != PEER_FAILED && peer->state != PEER_IDLE &&
            (qpn == ANY_PAIR || qpn == atomic_load_explicit(&peer->qpn, memory_order_relaxed));
    if (first)
        peer_break(peer);
    quiet = module->finalized || !peer->known;
    tell = first && !quiet && (peer->was_ready || !peer->said);
    peer->said |= tell;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (!first)
        return;
    if (tell)
        VERBS_SAY("the lane from process %s by %s to process %s by %s is lost: %s",
                  OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), module->device, OPAL_NAME_PRINT(peer->name),
                  peer->port.address.name, why);
    verbs_work_fail_pending(peer);
    if (!quiet && module->error_callback && peer->proc)
        module->error_callback(&module->super, 0, peer->proc, module->device);
}

void verbs_peer_fail(verbs_peer_t *peer, const char *why)
{
    pair_fail(peer, ANY_PAIR, why);
}

void verbs_peer_fail_pair(verbs_peer_t *peer, uint32_t qpn, const char *why)
{
    pair_fail(peer, qpn, why);
}

bool verbs_peer_is_unfenced(const verbs_peer_t *peer)
{
    return peer->state == PEER_FAILED && peer->was_ready && !peer->fence_confirmed;
}

#define FENCE_PAUSE_MS 50u

/* Ours is in error: it sends nothing, and takes in nothing that was asked for. What it had sent may
 * still be on its way, or be sent again by a device that has not noticed: only the other end's
 * queue pair, once broken too, keeps it out of the memory there. */
int verbs_fence(mca_btl_base_module_t *btl, verbs_peer_t *peer)
{
    uint64_t now = verbs_now_ms();
    bool over, ask = false;

    (void) btl;
    verbs_peer_fail(peer, "it is to be used no more");
    OPAL_THREAD_LOCK(&peer->lock);
    over = peer->state == PEER_IDLE || (peer->outstanding == 0 && !verbs_peer_is_unfenced(peer));
    if (verbs_peer_is_unfenced(peer) && now >= peer->fence_next_ms) {
        peer->fence_next_ms = now + FENCE_PAUSE_MS;
        ask = true;
    }
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (ask)
        verbs_fence_ask(peer);
    return over ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
}

/* Whether everything given to it has ended. */
static bool peer_is_quiet(verbs_peer_t *peer)
{
    bool quiet;

    OPAL_THREAD_LOCK(&peer->lock);
    quiet = peer->state == PEER_IDLE || peer->state == PEER_FAILED ||
            (peer->outstanding == 0 && opal_list_is_empty(&peer->pending));
    OPAL_THREAD_UNLOCK(&peer->lock);
    return quiet;
}

int verbs_peer_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                         verbs_peer_t **peers)
{
    uint64_t end = verbs_now_ms() + DRAIN_MS;

    (void) procs;
    for (size_t i = 0; i < count; i++) {
        if (!peers[i])
            continue;
        while (!peer_is_quiet(peers[i]) && verbs_now_ms() < end)
            (void) verbs_progress_module(module_of(btl));
        OPAL_THREAD_LOCK(&peers[i]->lock);
        peers[i]->known = false;
        peers[i]->proc = NULL;
        OPAL_THREAD_UNLOCK(&peers[i]->lock);
    }
    return OPAL_SUCCESS;
}

static void peer_destroy(verbs_peer_t *peer)
{
    verbs_work_fail_pending(peer);
    OPAL_THREAD_LOCK(&peer->lock);
    pair_destroy(peer);
    if (peer->greeting_way)
        ibv_destroy_ah(peer->greeting_way);
    verbs_slots_close(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    OBJ_DESTRUCT(&peer->pending);
    OBJ_DESTRUCT(&peer->lock);
    free(peer);
}

void verbs_peers_close(struct verbs_module *module)
{
    uint32_t count = atomic_load_explicit(&module->peer_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; i++)
        peer_destroy(verbs_peer_at(module, i));
    atomic_store_explicit(&module->peer_count, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < PEERS_CHUNKS; i++)
        free(atomic_load_explicit(&module->chunks[i], memory_order_relaxed));
}
