/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that all parts of the PML share: tables of peers and communicators, lists, counters. */
#ifndef MULTILANE_H
#define MULTILANE_H

#include <stdint.h>

#include "common/compat/pml.h"
#include "opal/mca/allocator/base/base.h"
#include "base/counter.h"
#include "common/model/flow.h"
#include "base/handle.h"

/* What the other end of a lane has to know of this one. */

#define RECORD_LANES_MAX 8

/* Of all lanes of one BTL, at this end: the slowest processor, and the fastest link. */
struct record_lane {
    char name[16]; /* of the BTL; ends in 0 */
    double overhead_s;
    double reg_cost_s;
    double reg_growth_s_byte;
    double bandwidth_bytes_s; /* 0: not known */
};

struct record_ends {
    uint32_t local_ranks; /* processes of the job on the node */
    uint32_t lane_count;
    struct record_lane lanes[RECORD_LANES_MAX];
};

struct peer;
struct peer_class;

extern mca_pml_base_component_t mca_pml_multilane_component;

struct multilane {
    opal_process_name_t me;
    bool enabled;
    bool receiving; /* arrivals_listen has registered the receive callback */

    /* The component's lock. Guards the tables of peers and of communicators, and the list of
     * orphans. Taken inside a peer's lock, never around one, and around those of communicators. By
     * multilane_lock only. */
    opal_mutex_t lock;

    opal_mutex_t comm_lock; /* guards the list by extended id; the innermost lock */

    /* Peers of this job by rank, those of other jobs in a list. They live until the component
     * closes, because sequence numbers between two processes outlive every communicator. Written
     * under `lock`, with release; read without it, with acquire: peer_list, peer_find. */
    struct peer *_Atomic *local_peers;
    uint32_t local_peer_count;
    struct peer *_Atomic other_job_peers;
    struct peer_class *_Atomic peer_classes;

    opal_list_t orphans; /* struct inbound without a communicator yet, in order of arrival */

    opal_free_list_t inbound;
    mca_allocator_base_module_t *payloads; /* of unexpected messages, if large */
    struct handle_table handles;

    _Atomic uint32_t lost_peers; /* how many lost peers return errors, see lost.c */

    struct record_ends ends; /* what peers were told of this end's lanes */

    /* Flow control of unexpected messages, see flow.h: */
    uint32_t window;       /* that this process promises every peer, */
    struct flow_pool pool; /* and what the peers that send share */

    /* Counters for reports. */
    _Atomic uint64_t early_messages;
    _Atomic uint64_t unexpected_messages;
    _Atomic uint64_t waited_messages;
    _Atomic uint64_t bad_headers;
    _Atomic uint64_t wrong_messages; /* by their sums */
    _Atomic uint64_t copied_bytes;
    _Atomic uint64_t taken_rests; /* of messages, by this process as their receiver */
    /* Of lanes that may break: */
    _Atomic uint64_t lanes_lost;
    _Atomic uint64_t lanes_returned;
    _Atomic uint64_t resent_messages;
};

/* Hidden, so that it is reached without the global offset table. */
extern __attribute__((visibility("hidden"))) struct multilane multilane;

static inline void multilane_lock(void)
{
    biased_claim();
    OPAL_THREAD_LOCK(&multilane.lock);
}

static inline bool multilane_trylock(void)
{
    return biased_try_claim() && OPAL_THREAD_TRYLOCK(&multilane.lock) == 0;
}

static inline void multilane_unlock(void)
{
    OPAL_THREAD_UNLOCK(&multilane.lock);
}

#endif
