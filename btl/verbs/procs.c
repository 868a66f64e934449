/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that Open MPI adds and takes back. */
#include "btl/verbs/verbs.h"

#include <stdlib.h>

#include "common/compat/component.h"

/* So long works under way may take to end when Open MPI removes a peer. */
#define DRAIN_MS 1000u

/* Each end sends messages as long as its own buffers; one longer than the other end's buffers would
 * break the lane. */
static bool takes_as_long(const opal_proc_t *proc, const struct verbs_record *record)
{
    if (verbs.record.message_bytes == record->message_bytes)
        return true;
    SAY_ONCE(VERBS_SAY,
             "process %s has a btl_verbs_max_send_size of %llu and this one of %llu; messages "
             "between such processes take another lane. Give all of the job the same.",
             OPAL_NAME_PRINT(proc->proc_name), (unsigned long long) record->message_bytes,
             (unsigned long long) verbs.record.message_bytes);
    return false;
}

static bool record_fits(const void *data, size_t bytes)
{
    const struct verbs_record *record = data;

    return bytes >= VERBS_RECORD_BYTES(0) && record->version == VERBS_RECORD_VERSION &&
           record->port_count > 0 && record->port_count <= CHOICE_PORTS_MAX &&
           VERBS_RECORD_BYTES(record->port_count) == bytes;
}

/* The record that `proc` published; NULL if it published none that can be used. */
static struct verbs_record *record_get(const struct verbs_module *module, opal_proc_t *proc)
{
    struct verbs_record *record =
        component_record_of(module->super.btl_component, proc, record_fits);

    if (!record || takes_as_long(proc, record))
        return record;
    free(record);
    return NULL;
}

/* Under verbs.record_lock. For all ports at once: the kernel is asked for the route of each pair.
 */
static void ports_pair(const struct verbs_record *record)
{
    struct choice_address mine[CHOICE_PORTS_MAX], theirs[CHOICE_PORTS_MAX];

    for (uint32_t i = 0; i < verbs.record.port_count; i++)
        mine[i] = verbs.record.ports[i].address;
    for (uint32_t i = 0; i < record->port_count; i++)
        theirs[i] = record->ports[i].address;
    verbs_choice_pair(mine, verbs.record.port_count, theirs, record->port_count, &verbs.pair_rule,
                      verbs.record.turn + record->turn, verbs.pairs);
    verbs.paired_nonce = record->nonce;
}

/* The index in `record` of the port that this module's leads to; below 0: none, and why. */
static int port_of(const struct verbs_module *module, const struct verbs_record *record)
{
    opal_mutex_lock(&verbs.record_lock);
    if (verbs.paired_nonce != record->nonce)
        ports_pair(record);
    int port = verbs.pairs[module->port_index];
    opal_mutex_unlock(&verbs.record_lock);
    return port;
}

static const char *why_missing(const struct verbs_module *module, const struct verbs_record *record,
                               int left)
{
    const char *why = NULL;

    if (left == LEFT_SLOW)
        return "its port has less than a quarter of the speed of another pair of ports; with "
               "btl_verbs_devices it can be one of those in use";
    if (left == LEFT_ENOUGH)
        return "as many other ports as btl_verbs_rails allows lead to that process";
    for (uint32_t i = 0; i < record->port_count; i++) {
        why = verbs_choice_refuses(&verbs.record.ports[module->port_index].address,
                                   &record->ports[i].address, &verbs.pair_rule);
        if (!why)
            return "its reachable ports are paired with other ports of this process";
    }
    return why;
}

/* Said once a port and reason: the user who expects a lane must learn why there is none. */
static void port_missing(struct verbs_module *module, const opal_proc_t *proc,
                         const struct verbs_record *record, int left)
{
    const char *why = why_missing(module, record, left);

    if (module->said_missing == why) {
        VERBS_VERBOSE("%s: no lane to process %s: %s", module->device,
                      OPAL_NAME_PRINT(proc->proc_name), why);
        return;
    }
    module->said_missing = why;
    if (left == LEFT_ENOUGH)
        VERBS_VERBOSE("%s: no lane to process %s and maybe others: %s", module->device,
                      OPAL_NAME_PRINT(proc->proc_name), why);
    else
        VERBS_SAY("%s: no lane to process %s and maybe others: %s.", module->device,
                  OPAL_NAME_PRINT(proc->proc_name), why);
}

/* Under module->lock. The peer, or NULL if none of its ports can be reached, which is no error. */
static verbs_peer_t *peer_add(struct verbs_module *module, opal_proc_t *proc, int *status)
{
    verbs_peer_t *peer = NULL;

    if (atomic_load_explicit(&module->dead, memory_order_relaxed))
        return NULL;
    if (verbs.leaves_node && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
        return NULL;
    struct verbs_record *record = record_get(module, proc);
    if (!record)
        return NULL;
    int index = port_of(module, record);
    if (index < 0) {
        port_missing(module, proc, record, index);
        free(record);
        return NULL;
    }
    peer = peer_table_find(&module->names, &proc->proc_name);
    if (!peer)
        peer = verbs_peer_create(module, &proc->proc_name);
    if (!peer) {
        *status = OPAL_ERR_OUT_OF_RESOURCE;
    } else {
        OPAL_THREAD_LOCK(&peer->lock);
        if (verbs_peer_state(peer) == PEER_FAILED && !verbs_peer_is_unfenced(peer))
            (void) verbs_peer_renew(peer);
        /* What a greeting of the same process said is newer. */
        if (verbs_peer_state(peer) == PEER_IDLE && peer->nonce != record->nonce) {
            peer->port = record->ports[index];
            peer->port.address.name[CHOICE_NAME_BYTES - 1] = '\0';
            peer->their_port = (uint32_t) index;
            peer->nonce = record->nonce;
        }
        peer->proc = proc;
        OPAL_THREAD_UNLOCK(&peer->lock);
    }
    free(record);
    return peer;
}

/* A failed peer that cannot be renewed yet is no lane until it is added again. That holds for
 * callers that had the lane before. Others get it, and failover learns from the first message that
 * it failed. */
static bool peer_is_lane(verbs_peer_t *peer)
{
    OPAL_THREAD_LOCK(&peer->lock);
    bool failed = verbs_peer_state(peer) == PEER_FAILED && peer->known;
    bool unfenced = verbs_peer_is_unfenced(peer);
    peer->known = true;
    OPAL_THREAD_UNLOCK(&peer->lock);
    if (unfenced)
        verbs_fence_ask(peer);
    return !failed;
}

static verbs_peer_t *proc_add(mca_btl_base_module_t *btl, opal_proc_t *proc, int *status)
{
    struct verbs_module *module = module_of(btl);

    OPAL_THREAD_LOCK(&module->lock);
    verbs_peer_t *peer = peer_add(module, proc, status);
    OPAL_THREAD_UNLOCK(&module->lock);
    return peer && peer_is_lane(peer) ? peer : NULL;
}

int verbs_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                    verbs_peer_t **peers, opal_bitmap_t *reachable)
{
    return lane_add_procs(btl, count, procs, peers, reachable, proc_add);
}

int verbs_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                    verbs_peer_t **peers)
{
    uint64_t end = verbs_now_ms() + DRAIN_MS;

    for (size_t i = 0; i < count; i++) {
        if (!peers[i])
            continue;
        while (!verbs_peer_is_quiet(peers[i]) && verbs_now_ms() < end)
            (void) verbs_progress_module(module_of(btl));
        OPAL_THREAD_LOCK(&peers[i]->lock);
        peers[i]->known = false;
        peers[i]->proc = NULL;
        OPAL_THREAD_UNLOCK(&peers[i]->lock);
        verbs_return_to(btl, peers[i], NULL, NULL);
    }
    return OPAL_SUCCESS;
}
