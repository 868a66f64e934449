/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a communicator that come before the others. */
#include "coll/node/node.h"

#include <string.h>

#define EACH(do_it)                                                                                \
    do_it(barrier, node_barrier) do_it(bcast, node_bcast) do_it(reduce, node_reduce)               \
        do_it(allreduce, node_allreduce) do_it(allgather, node_allgather)                          \
            do_it(alltoall, node_alltoall)

static int module_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    node_module_t *node = (node_module_t *) module;

    node->below = *comm->c_coll;
#define INSTALL(name, function) COMPAT_COLL_INSTALL(comm, module, &node->below, name, function);
    EACH(INSTALL)
    return OMPI_SUCCESS;
}

static int module_disable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    node_module_t *node = (node_module_t *) module;

    (void) comm;
#define UNINSTALL(name, function) COMPAT_COLL_UNINSTALL(comm, module, &node->below, name);
    EACH(UNINSTALL)
    return OMPI_SUCCESS;
}

static void module_construct(node_module_t *node)
{
    memset((char *) node + sizeof(node->super), 0, sizeof(*node) - sizeof(node->super));
}

static void module_destruct(node_module_t *node)
{
    area_leave(node);
}

OBJ_CLASS_INSTANCE(node_module_t, mca_coll_base_module_t, module_construct, module_destruct);

/* Has it several processes, all of this job and on this node? */
static bool is_of_node(ompi_communicator_t *comm)
{
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return false;
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        const ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
        if (!proc || !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) ||
            proc->super.proc_name.jobid != OPAL_PROC_MY_NAME.jobid)
            return false;
    }
    return true;
}

mca_coll_base_module_t *node_module_new(ompi_communicator_t *comm)
{
    node_module_t *node = is_of_node(comm) ? OBJ_NEW(node_module_t) : NULL;

    if (!node)
        return NULL;
    node->comm = comm;
    node->me = (uint32_t) ompi_comm_rank(comm);
    node->turns.ranks = (uint32_t) ompi_comm_size(comm);
    node->super.coll_module_enable = module_enable;
    node->super.coll_module_disable = module_disable;
    return &node->super;
}
