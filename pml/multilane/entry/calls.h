/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that Open MPI calls, and what the files of this layer offer each other. */
#ifndef MULTILANE_CALLS_H
#define MULTILANE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compat/pml.h"
#include "multilane/service.h"

/* module.c */
PML_FUNCTION(enable, module_enable);
PML_FUNCTION(add_procs, module_add_procs);
PML_FUNCTION(del_procs, module_del_procs);
/* The module for Open MPI, made once the allowed lanes are known. */
mca_pml_base_module_t *module_of_job(void);
void module_fini(void);
void sigpipe_restore(void);

/* arrival.c: registers the receive callback with the BML. */
int arrivals_listen(void);

/* send.c */
PML_FUNCTION(isend_init, module_isend_init);
PML_FUNCTION(isend, module_isend);
PML_FUNCTION(send, module_send);

/* recv.c */
PML_FUNCTION(irecv_init, module_irecv_init);
PML_FUNCTION(irecv, module_irecv);
PML_FUNCTION(recv, module_recv);
int module_start(size_t count, ompi_request_t **requests);

/* recv.c: probes */
PML_FUNCTION(iprobe, module_iprobe);
PML_FUNCTION(probe, module_probe);
PML_FUNCTION(improbe, module_improbe);
PML_FUNCTION(mprobe, module_mprobe);
PML_FUNCTION(imrecv, module_imrecv);
PML_FUNCTION(mrecv, module_mrecv);

/* comms.c */
PML_FUNCTION(add_comm, module_add_comm);
PML_FUNCTION(del_comm, module_del_comm);
int module_revoke_comm(ompi_communicator_t *comm, bool collectives_only);

/* service.c: MPI_Wait and its like reach Open MPI by a table of functions that a component may
 * change. From now on each such wait has a story (request/request.h). */
void waits_hook(void);
void waits_unhook(void);

/* --- blackbox.c ------------------------------------------------------------------------------- */

/* The last calls of this process, to be read when it has died (pml_multilane_blackbox); and all
 * its messages in a file (pml_multilane_record), for multilane-plan --replay. */

bool recording_is_on(void);

/* After the page begins and before it ends, with the module whose functions Open MPI calls. */
void blackbox_begin(mca_pml_base_module_t *module);
void blackbox_end(mca_pml_base_module_t *module);

/* `note` of struct multilane_calls. */
void blackbox_call(ompi_communicator_t *comm, enum multilane_call call, int root, uint64_t bytes,
                   uint32_t turn);

/* --- progress_thread.c ------------------------------------------------------------------------ */

/* Progress while the program computes: a thread that polls our lanes while work is under way
 * (base/pending.h), and else sleeps. Only with pml_multilane_progress_thread; then Open MPI's locks
 * work at every thread level. */

/* Call before any endpoint exists: until then Open MPI's locks do nothing. */
void progress_thread_prepare(void);
/* Starts the thread, once lanes exist; prints where it cannot. */
void progress_thread_begin(void);
void progress_thread_end(void);

/* In between the thread polls no lane: endpoints are removed. */
void progress_thread_pause(void);
void progress_thread_resume(void);

#endif
