/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that Open MPI calls, and what the files of this layer offer each other. */
#ifndef MULTILANE_CALLS_H
#define MULTILANE_CALLS_H

#include "common/compat/pml.h"

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

/* probe.c */
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

#endif
