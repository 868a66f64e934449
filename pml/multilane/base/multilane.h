/* SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, its one state, and the functions that Open MPI calls. */
#ifndef MULTILANE_H
#define MULTILANE_H

#include "common/compat/pml.h"

#include "opal/mca/allocator/base/base.h"

#include "base/counter.h"
#include "base/flow.h"
#include "base/handle.h"
#include "base/pending.h"

struct peer;
struct peer_class;

struct multilane {
    mca_pml_base_module_t super;
    opal_process_name_t me;
    bool enabled;
    bool receiving; /* the receive callback is registered with the BML */

    /* Guards the tables of peers and of communicators, and the messages whose communicator is not
     * known yet. Taken inside a peer's lock, never around one. */
    opal_mutex_t lock;

    opal_mutex_t comm_lock; /* guards the list of communicators by CID; the innermost lock */

    /* Peers of the own job by rank, of other jobs in a list; they live until the component closes,
     * because the sequence numbers between two processes must outlive any communicator. */
    struct peer **local_peers;
    uint32_t local_peer_count;
    struct peer *foreign_peers;
    struct peer_class *peer_classes;

    opal_list_t orphans; /* struct inbound, in order of arrival */

    opal_free_list_t inbound;
    mca_allocator_base_module_t *payloads; /* unexpected ones that do not fit an inbound */
    struct handle_table handles;
    struct pending_queue pending;
    /* Atomic: how much of what is pending holds bytes for other processes; see request_move_on. */
    uint64_t unsent;

    uint32_t lost_peers; /* atomic: of which errors are returned, see lost.h */

    /* For messages that come before their receives, see flow.h: */
    uint32_t window;       /* what we promise every peer, */
    struct flow_pool pool; /* and what those share that send */

    /* Counters: see counter_add. */
    uint64_t early_messages;
    uint64_t unexpected_messages;
    uint64_t waited_messages;
    uint64_t bad_headers;
    /* Of lanes that may lose what they took, see delivery.h: */
    uint64_t lanes_lost;
    uint64_t lanes_returned;
    uint64_t resent_messages;
    uint64_t duplicates;
};

/* Hidden, here as where it is defined: so it is reached without the table of other libraries. */
extern __attribute__((visibility("hidden"))) struct multilane multilane;

extern mca_pml_base_component_t mca_pml_multilane_component;

/* module.c */
int module_enable(bool enable);
int module_add_procs(ompi_proc_t **procs, size_t count);
int module_del_procs(ompi_proc_t **procs, size_t count);
int module_dump(ompi_communicator_t *comm, int verbose);
void module_fini(void);

/* send.c */
int module_isend_init(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                      int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                      ompi_request_t **request);
int module_isend(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                 int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                 ompi_request_t **request);
int module_send(const void *buffer, size_t count, ompi_datatype_t *datatype, int destination,
                int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);

/* recv.c */
int module_irecv_init(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request);
int module_irecv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                 ompi_communicator_t *comm, ompi_request_t **request);
int module_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                ompi_communicator_t *comm, ompi_status_public_t *status);
int module_start(size_t count, ompi_request_t **requests);

/* probe.c */
int module_iprobe(int source, int tag, ompi_communicator_t *comm, int *found,
                  ompi_status_public_t *status);
int module_probe(int source, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int module_improbe(int source, int tag, ompi_communicator_t *comm, int *found,
                   ompi_message_t **message, ompi_status_public_t *status);
int module_mprobe(int source, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                  ompi_status_public_t *status);
int module_imrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                  ompi_request_t **request);
int module_mrecv(void *buffer, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                 ompi_status_public_t *status);

/* comm.c */
int module_add_comm(ompi_communicator_t *comm);
int module_del_comm(ompi_communicator_t *comm);
void comms_fini(void);
int module_revoke_comm(ompi_communicator_t *comm, bool collectives_only);

#endif
