/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of communicators over several nodes: see levels.h. */
#ifndef COLL_NODE_ACROSS_H
#define COLL_NODE_ACROSS_H

#include "coll/node/levels.h"

int across_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *module);
int across_bcast(void *buffer, compat_count count, ompi_datatype_t *type, int root,
                 ompi_communicator_t *comm, mca_coll_base_module_t *module);
int across_reduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                  ompi_op_t *op, int root, ompi_communicator_t *comm,
                  mca_coll_base_module_t *module);
int across_allreduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                     ompi_op_t *op, ompi_communicator_t *comm, mca_coll_base_module_t *module);
int across_allgather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                     void *to, compat_count count, ompi_datatype_t *type, ompi_communicator_t *comm,
                     mca_coll_base_module_t *module);
int across_alltoall(const void *from, compat_count from_count, ompi_datatype_t *from_type, void *to,
                    compat_count count, ompi_datatype_t *type, ompi_communicator_t *comm,
                    mca_coll_base_module_t *module);

#endif
