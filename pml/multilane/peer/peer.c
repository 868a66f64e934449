/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting peers: who they are, whether they can be talked to, and over what. */
#include "peer/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/btl.h"
#include "match/credit.h"
#include "delivery/delivery.h"
#include "match/inbound.h"
#include "base/multilane.h"
#include "peer/peer_class.h"
#include "peer/record.h"

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

/* With the component's lock held. Release: a peer is whole before it can be found. */
static void peer_list(struct peer *peer)
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

static struct peer *peer_new(opal_process_name_t name, ompi_proc_t *proc)
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

/* From here on there can be messages. What was counted when it was met before goes on. */
static void peer_begin(struct peer *peer, uint32_t window)
{
    if (!peer->waiting_pending.retry)
        credit_begin(peer, window);
    peer->reachable = true;
}

static void peer_say_unreachable(const struct peer *peer)
{
    char *host = compat_proc_hostname(&peer->proc->super);
    opal_output(
        0,
        "multilane: no lane reaches rank %u of job %u on %s; --mca btl must name a BTL that "
        "does, such as self,vader,tcp (sm instead of vader from Open MPI 5.0 on).",
        peer->name.vpid, peer->name.jobid, host ? host : "an unknown host");
    free(host);
}

struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc)
{
    struct peer *peer = peer_find(name);
    if (peer && (peer->reachable || peer_is_lost(peer)))
        return peer;
    if (!proc)
        proc = (ompi_proc_t *) ompi_proc_for_name(name);
    if (!proc || (!is_foreign(name) && name.vpid >= multilane.local_peer_count))
        return NULL;

    OPAL_THREAD_LOCK(&multilane.lock);
    peer = peer_find(name);
    bool is_new = !peer;
    if (is_new)
        peer = peer_new(name, proc);
    if (peer && !peer->reachable) {
        peer->is_self = proc == ompi_proc_local_proc;
        peer->proc = proc;
        uint32_t window = multilane.window;
        if (!peer->is_self && !record_accepts(proc, &window))
            ;
        else if (!peer_take_lanes(peer))
            peer_say_unreachable(peer);
        else
            peer_begin(peer, window);
        if (is_new)
            peer_list(peer);
    }
    OPAL_THREAD_UNLOCK(&multilane.lock);
    return peer;
}

struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name)
{
    if (OPAL_LIKELY(!(base->flags & WIRE_NAMED))) {
        if (OPAL_UNLIKELY(base->from >= multilane.local_peer_count))
            return NULL;
        struct peer *peer =
            __atomic_load_n(&multilane.local_peers[base->from], __ATOMIC_ACQUIRE); /* peer_list */
        if (OPAL_LIKELY(peer && peer->reachable))
            return peer;
    }
    opal_process_name_t sender = {.jobid = multilane.me.jobid, .vpid = base->from};
    if (base->flags & WIRE_NAMED)
        sender = (opal_process_name_t){.jobid = name->jobid, .vpid = name->vpid};
    struct peer *peer = peer_find(sender);
    if (OPAL_LIKELY(peer && peer->reachable))
        return peer;
    ompi_proc_t *proc = NULL;
    if (base->flags & WIRE_NAMED) {
        /* Processes of other jobs were added before anything is sent; others are not looked for,
         * which might wait for ever for an answer about a name that nobody has. Once for each: Open
         * MPI looks without a lock, and another thread may just add one. */
        proc = (ompi_proc_t *) ompi_proc_lookup(sender);
        if (is_foreign(sender) && !proc)
            return NULL;
    }
    peer = peer_contact(sender, proc);
    return peer && (peer->reachable || peer_is_lost(peer)) ? peer : NULL;
}

static void peer_free(struct peer *peer)
{
    if (peer->delivery)
        delivery_free(peer->delivery);
    while (peer->early) {
        struct inbound *inbound = peer->early;
        peer->early = inbound->next;
        inbound_free(inbound);
    }
    free(peer->lanes);
    free(peer->device_lane);
    OBJ_DESTRUCT(&peer->lock);
    OBJ_DESTRUCT(&peer->credit_lock);
    OBJ_RELEASE(peer->proc);
    free(peer);
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
    classes_fini();
}
