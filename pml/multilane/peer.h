/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer: another process (or this one), whatever communicators it is met in, and the lanes to it.
 */
#ifndef MULTILANE_PEER_H
#define MULTILANE_PEER_H

#include "common/compat/pml.h"

#include "lane.h"
#include "multilane.h"
#include "wire.h"

struct inbound;
struct peer_class;

struct peer {
    struct peer *next_foreign;
    ompi_proc_t *proc;
    opal_process_name_t name;
    bool foreign; /* of another job: we introduce ourselves by name in every header */
    bool reachable;
    bool is_self;

    uint8_t lane_count;
    uint8_t control; /* index of the lane for control messages: that of the lowest latency */
    struct lane *lanes;
    struct peer_class *class; /* plans, shared by all peers with equal lanes */

    /* Written by every sending thread (atomic where there are threads), read by nobody else. */
    uint32_t next_send_sequence;

    opal_mutex_t lock;              /* guards what follows; taken before a communicator's lock */
    uint32_t next_receive_sequence; /* what has a smaller one was matched or queued */
    struct inbound *early;          /* arrived before their turn, by ascending sequence */
    struct inbound *early_last;     /* the last of them, if there is one */
    struct inbound *assemblies;     /* eager messages of which parts are missing */
};

/* The peer of that name, with its lanes; made at first contact. Null if there is no such process,
 * or it cannot be talked to, which was said. `proc` may be null. */
struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc);

/* A peer that was met before, or null. Needs no lock: peers are never removed while the component
 * is open, and appear whole. */
struct peer *peer_find(opal_process_name_t name);

/* The sender of a message: from the base and, if it is of another job, its name. */
struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name);

/* The peer's lane over this BTL, or null. */
struct lane *peer_lane_of(struct peer *peer, const mca_btl_base_module_t *btl);

/* The lane for control messages. */
static inline struct lane *peer_control_lane(struct peer *peer)
{
    return &peer->lanes[peer->control];
}

void peer_forget_lanes(struct peer *peer);
void peers_fini(void);

/* Writes the base of a header to this peer, and our name if it needs that; returns the end. */
static inline unsigned char *peer_write_base(const struct peer *peer, void *at, uint8_t type,
                                             uint8_t flags)
{
    struct wire_base *base = at;
    *base = (struct wire_base){
        .type = type, .flags = flags | (peer->foreign ? WIRE_NAMED : 0), .from = multilane.me.vpid};
    unsigned char *end = (unsigned char *) (base + 1);
    if (OPAL_UNLIKELY(peer->foreign)) {
        struct wire_name name = {.jobid = multilane.me.jobid, .vpid = multilane.me.vpid};
        __builtin_memcpy(end, &name, sizeof(name));
        end += sizeof(name);
    }
    return end;
}

static inline uint32_t peer_next_sequence(struct peer *peer)
{
    if (opal_using_threads())
        return __atomic_fetch_add(&peer->next_send_sequence, 1, __ATOMIC_RELAXED);
    return peer->next_send_sequence++;
}

#endif
