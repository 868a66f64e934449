/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of peers, and the search for a lane by BTL. */
#include "peer/peer.h"

#include <stdlib.h>
#include <string.h>

/* Peers of other jobs, by name: each of their messages carries it, and a parent may have
 * thousands of them. Written with the component's lock held. */
#define OTHER_JOB_BUCKETS 1024u
static struct peer *_Atomic other_job_buckets[OTHER_JOB_BUCKETS];

/* No collisions between ranks of one job, nor between jobs of one process. */
static struct peer *_Atomic *other_job_bucket(opal_process_name_t name)
{
    return &other_job_buckets[(name.vpid + name.jobid) % OTHER_JOB_BUCKETS];
}

static bool is_of_other_job(opal_process_name_t name)
{
    return name.jobid != multilane.me.jobid;
}

struct peer *peer_find(opal_process_name_t name)
{
    if (!is_of_other_job(name)) {
        if (name.vpid >= multilane.local_peer_count)
            return NULL;
        return atomic_load_explicit(&multilane.local_peers[name.vpid],
                                    memory_order_acquire); /* peer_list */
    }
    struct peer *peer =
        atomic_load_explicit(other_job_bucket(name), memory_order_acquire); /* peer_list */
    while (peer && (peer->name.vpid != name.vpid || peer->name.jobid != name.jobid))
        peer = peer->next_in_bucket;
    return peer;
}

struct lane *peer_lane_of(struct peer *peer, const mca_btl_base_module_t *btl)
{
    /* Acquire, against peer_take_lanes: a lane that is counted is whole. */
    uint8_t count = atomic_load_explicit(&peer->lane_count, memory_order_acquire);
    for (uint8_t i = 0; i < count; i++)
        if (peer->lanes[i].btl == btl)
            return &peer->lanes[i];
    return NULL;
}

/* With the component's lock held. Release, against peer_find and peer_next. */
void peer_list(struct peer *peer)
{
    if (!peer->is_of_other_job) {
        atomic_store_explicit(&multilane.local_peers[peer->name.vpid], peer, memory_order_release);
        return;
    }
    struct peer *_Atomic *bucket = other_job_bucket(peer->name);
    peer->next_in_bucket = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, peer, memory_order_release);
    peer->next_other_job = atomic_load_explicit(&multilane.other_job_peers, memory_order_relaxed);
    atomic_store_explicit(&multilane.other_job_peers, peer, memory_order_release);
}

struct peer *peer_new(opal_process_name_t name, ompi_proc_t *proc)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    peer->proc = proc;
    peer->name = name;
    peer->is_of_other_job = is_of_other_job(name);
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->credit_lock, opal_mutex_t);
    OBJ_RETAIN(proc);
    return peer;
}

static void peer_free(struct peer *peer)
{
    free(peer->lanes);
    free(atomic_load_explicit(&peer->histories, memory_order_relaxed));
    free(peer->wrongs);
    free(peer->device_lane);
    free(peer->ends);
    free(peer->offers);
    free(peer->assemblies);
    OBJ_DESTRUCT(&peer->lock);
    OBJ_DESTRUCT(&peer->credit_lock);
    OBJ_RELEASE(peer->proc);
    free(peer);
}

static bool carries(const struct lane *lane, size_t length, enum lane_state state)
{
    return lane_sends(lane) && lane->btl->btl_max_send_size >= length && lane_state(lane) == state;
}

struct lane *peer_lane_for(struct peer *peer, size_t length)
{
    if (peer_lane_count(peer) == 0)
        return NULL;
    struct lane *best = peer_control_lane(peer);
    if (carries(best, length, LANE_UP))
        return best;
    /* A silent lane may come back; a broken one does not. */
    for (enum lane_state state = LANE_UP; state <= LANE_SILENT; state++)
        for (int i = 0; i < peer_lane_count(peer); i++)
            if (carries(&peer->lanes[i], length, state))
                return &peer->lanes[i];
    return NULL;
}

struct lane *peer_lane_instead(struct lane *lane, size_t length)
{
    if (lane_state(lane) == LANE_UNPROVEN)
        lane_events.unproven(lane);
    return peer_lane_for(lane->peer, length);
}

struct peer *peer_next(const struct peer *at)
{
    struct peer *next = NULL;
    if (at && at->is_of_other_job)
        return at->next_other_job;
    for (uint32_t i = at ? at->name.vpid + 1 : 0; !next && i < multilane.local_peer_count; i++)
        next =
            atomic_load_explicit(&multilane.local_peers[i], memory_order_acquire); /* peer_list */
    return next ? next
                : atomic_load_explicit(&multilane.other_job_peers,
                                       memory_order_acquire); /* peer_list */
}

void peers_fini(void)
{
    for (struct peer *peer = peer_next(NULL), *next; peer; peer = next) {
        next = peer_next(peer);
        peer_free(peer);
    }
    atomic_init(&multilane.other_job_peers, NULL);
    atomic_init(&multilane.lost_peers, 0);
    memset(other_job_buckets, 0, sizeof(other_job_buckets));
    free(multilane.local_peers);
    multilane.local_peers = NULL;
    multilane.local_peer_count = 0;
}

/* --- control messages ------------------------------------------------------------------------- */

/* Sends control messages that may be lost. */

bool control_send_bare(struct lane *lane, uint8_t type, const void *body, size_t length)
{
    struct control_message message;
    control_write(&message, lane->peer, type, body, length);
    int rc = lane_send_plain(lane, message.bytes, message.length, NULL, NULL);
    return rc == LANE_LEFT || rc == LANE_UNDER_WAY;
}
