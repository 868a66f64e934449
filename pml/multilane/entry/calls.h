/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that Open MPI calls, and what the files of this storey offer each other. */
#ifndef MULTILANE_CALLS_H
#define MULTILANE_CALLS_H

#include "common/compat/pml.h"

/* module.c */
int module_enable(bool enable);
int module_add_procs(ompi_proc_t **procs, size_t count);
int module_del_procs(ompi_proc_t **procs, size_t count);
int module_dump(ompi_communicator_t *comm, int verbose);
/* The module for Open MPI, made once the allowed lanes are known. */
mca_pml_base_module_t *module_of_job(void);
void module_fini(void);

/* arrival.c: registers the receive callback with the BML. */
int arrivals_listen(void);

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

/* comms.c */
int module_add_comm(ompi_communicator_t *comm);
int module_del_comm(ompi_communicator_t *comm);
int module_revoke_comm(ompi_communicator_t *comm, bool collectives_only);

#endif
