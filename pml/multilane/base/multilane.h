/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that the parts of the PML share: tables of peers and communicators, lists, counts. */
#ifndef MULTILANE_H
#define MULTILANE_H

#include "common/compat/pml.h"

#include <stdatomic.h>

#include "opal/mca/allocator/base/base.h"

#include "base/counter.h"
#include "common/model/flow.h"
#include "base/handle.h"

struct peer;
struct peer_class;

extern mca_pml_base_component_t mca_pml_multilane_component;

struct multilane {
    opal_process_name_t me;
    bool enabled;
    bool receiving; /* the receive callback is registered with the BML */

    /* Guards the tables of peers and of communicators, and the messages whose communicator is not
     * known yet. Taken inside a peer's lock, never around one. */
    opal_mutex_t lock;

    opal_mutex_t comm_lock; /* guards the list of communicators by CID; the innermost lock */

    /* Peers of the own job by rank, of other jobs in a list; they live until the component closes,
     * because the sequence numbers between two processes must outlive any communicator. */
    struct peer *_Atomic *local_peers;
    uint32_t local_peer_count;
    struct peer *_Atomic other_job_peers;
    struct peer_class *_Atomic peer_classes;

    opal_list_t orphans; /* struct inbound, in order of arrival */

    opal_free_list_t inbound;
    mca_allocator_base_module_t *payloads; /* unexpected ones that do not fit an inbound */
    struct handle_table handles;

    _Atomic uint32_t lost_peers; /* of which errors are returned, see lost.h */

    /* For messages that come before their receives, see flow.h: */
    uint32_t window;       /* what we promise every peer, */
    struct flow_pool pool; /* and what those share that send */

    /* Counters: see counter_add. */
    _Atomic uint64_t early_messages;
    _Atomic uint64_t unexpected_messages;
    _Atomic uint64_t waited_messages;
    _Atomic uint64_t bad_headers;
    _Atomic uint64_t copied_bytes;
    /* Of lanes that may lose what they took, see delivery.h: */
    _Atomic uint64_t lanes_lost;
    _Atomic uint64_t lanes_returned;
    _Atomic uint64_t resent_messages;
    _Atomic uint64_t duplicates;
};

/* Hidden, here as where it is defined: so it is reached without the table of other libraries. */
extern __attribute__((visibility("hidden"))) struct multilane multilane;

#endif
