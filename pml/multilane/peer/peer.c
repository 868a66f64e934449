/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers, and the lanes of each by BTL. */
#include "peer/peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/multilane.h"

/* Those of other jobs, by name: each of their messages carries it, and a parent may have thousands.
 * Written with the component's lock held. */
#define FOREIGN_BUCKETS 1024u
static struct peer *foreign_buckets[FOREIGN_BUCKETS]; /* atomic */

/* Ranks of one job do not meet, nor do processes that were started one by one. */
static struct peer **foreign_bucket(opal_process_name_t name)
{
    return &foreign_buckets[(name.vpid + name.jobid) % FOREIGN_BUCKETS];
}

static bool is_foreign(opal_process_name_t name)
{
    return name.jobid != multilane.me.jobid;
}

struct peer *peer_find(opal_process_name_t name)
{
    if (!is_foreign(name)) {
        if (name.vpid >= multilane.local_peer_count)
            return NULL;
        return __atomic_load_n(&multilane.local_peers[name.vpid], __ATOMIC_ACQUIRE); /* peer_list */
    }
    struct peer *peer = __atomic_load_n(foreign_bucket(name), __ATOMIC_ACQUIRE); /* peer_list */
    while (peer && (peer->name.vpid != name.vpid || peer->name.jobid != name.jobid))
        peer = peer->next_in_bucket;
    return peer;
}

struct lane *peer_lane_of(struct peer *peer, const mca_btl_base_module_t *btl)
{
    /* Acquire, against lane_add: a lane that is counted is whole. */
    uint8_t count = __atomic_load_n(&peer->lane_count, __ATOMIC_ACQUIRE);
    for (uint8_t i = 0; i < count; i++)
        if (peer->lanes[i].btl == btl)
            return &peer->lanes[i];
    return NULL;
}

/* With the component's lock held. Release: a peer is whole before it can be found. */
void peer_list(struct peer *peer)
{
    if (!peer->foreign) {
        __atomic_store_n(&multilane.local_peers[peer->name.vpid], peer, __ATOMIC_RELEASE);
        return;
    }
    struct peer **bucket = foreign_bucket(peer->name);
    peer->next_in_bucket = *bucket;
    __atomic_store_n(bucket, peer, __ATOMIC_RELEASE);
    peer->next_foreign = multilane.foreign_peers;
    __atomic_store_n(&multilane.foreign_peers, peer, __ATOMIC_RELEASE);
}

struct peer *peer_new(opal_process_name_t name, ompi_proc_t *proc)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    peer->proc = proc;
    peer->name = name;
    peer->foreign = is_foreign(name);
    OBJ_CONSTRUCT(&peer->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&peer->credit_lock, opal_mutex_t);
    OBJ_RETAIN(proc);
    return peer;
}

static void peer_free(struct peer *peer)
{
    free(peer->lanes);
    free(peer->device_lane);
    OBJ_DESTRUCT(&peer->lock);
    OBJ_DESTRUCT(&peer->credit_lock);
    OBJ_RELEASE(peer->proc);
    free(peer);
}

void peers_visit(void (*visit)(struct peer *peer, void *with), void *with)
{
    for (uint32_t i = 0; i < multilane.local_peer_count; i++) {
        struct peer *peer =
            __atomic_load_n(&multilane.local_peers[i], __ATOMIC_ACQUIRE); /* peer_list */
        if (peer)
            visit(peer, with);
    }
    struct peer *peer = __atomic_load_n(&multilane.foreign_peers, __ATOMIC_ACQUIRE); /* peer_list */
    for (; peer; peer = peer->next_foreign)
        visit(peer, with);
}

void peers_fini(void)
{
    for (uint32_t i = 0; i < multilane.local_peer_count; i++)
        if (multilane.local_peers[i])
            peer_free(multilane.local_peers[i]);
    while (multilane.foreign_peers) {
        struct peer *peer = multilane.foreign_peers;
        multilane.foreign_peers = peer->next_foreign;
        peer_free(peer);
    }
    memset(foreign_buckets, 0, sizeof(foreign_buckets));
    free(multilane.local_peers);
    multilane.local_peers = NULL;
    multilane.local_peer_count = 0;
}
