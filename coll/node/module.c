/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a communicator that come before the others. */
#include "coll/node/across.h"
#include "coll/node/node.h"

#include <string.h>

#define NODE_FUNCTIONS                                                                             \
    node_barrier, node_bcast, node_reduce, node_allreduce, node_allgather, node_alltoall
#define ACROSS_FUNCTIONS                                                                           \
    across_barrier, across_bcast, across_reduce, across_allreduce, across_allgather, across_alltoall
#define EACH_OF(do_it, f, g, h, i, j, k)                                                           \
    do_it(barrier, f) do_it(bcast, g) do_it(reduce, h) do_it(allreduce, i) do_it(allgather, j)     \
        do_it(alltoall, k)
#define EACH(do_it, ...)          EACH_OF(do_it, __VA_ARGS__)
#define INSTALL(name, function)   COMPAT_COLL_INSTALL(comm, module, &own->below, name, function);
#define UNINSTALL(name, function) COMPAT_COLL_UNINSTALL(comm, module, &own->below, name);

/* --- on a node --- */

static int node_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    node_module_t *own = (node_module_t *) module;

    own->below = *comm->c_coll;
    EACH(INSTALL, NODE_FUNCTIONS)
    return OMPI_SUCCESS;
}

static int node_disable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    node_module_t *own = (node_module_t *) module;

    (void) comm;
    EACH(UNINSTALL, NODE_FUNCTIONS)
    return OMPI_SUCCESS;
}

static void node_construct(node_module_t *own)
{
    memset((char *) own + sizeof(own->super), 0, sizeof(*own) - sizeof(own->super));
}

OBJ_CLASS_INSTANCE(node_module_t, mca_coll_base_module_t, node_construct, area_leave);

static mca_coll_base_module_t *node_new(ompi_communicator_t *comm)
{
    node_module_t *own = OBJ_NEW(node_module_t);

    own->comm = comm;
    own->me = (uint32_t) ompi_comm_rank(comm);
    own->turns.ranks = (uint32_t) ompi_comm_size(comm);
    own->super.coll_module_enable = node_enable;
    own->super.coll_module_disable = node_disable;
    return &own->super;
}

/* --- across nodes --- */

static int across_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    across_module_t *own = (across_module_t *) module;

    own->below = *comm->c_coll;
    EACH(INSTALL, ACROSS_FUNCTIONS)
    return OMPI_SUCCESS;
}

static int across_disable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    across_module_t *own = (across_module_t *) module;

    (void) comm;
    EACH(UNINSTALL, ACROSS_FUNCTIONS)
    return OMPI_SUCCESS;
}

static void across_construct(across_module_t *own)
{
    memset((char *) own + sizeof(own->super), 0, sizeof(*own) - sizeof(own->super));
}

OBJ_CLASS_INSTANCE(across_module_t, mca_coll_base_module_t, across_construct, levels_free);

static mca_coll_base_module_t *across_new(ompi_communicator_t *comm)
{
    across_module_t *own = OBJ_NEW(across_module_t);

    own->comm = comm;
    own->super.coll_module_enable = across_enable;
    own->super.coll_module_disable = across_disable;
    return &own->super;
}

/* --- which --- */

/* Are all its processes of this job and on this node? */
static bool is_of_node(ompi_communicator_t *comm)
{
    for (int rank = 0; rank < ompi_comm_size(comm); rank++)
        if (!node_has(comm, rank) ||
            ompi_group_get_proc_name(comm->c_local_group, rank).jobid != OPAL_PROC_MY_NAME.jobid)
            return false;
    return true;
}

mca_coll_base_module_t *node_module_new(ompi_communicator_t *comm)
{
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    if (is_of_node(comm))
        return node_new(comm);
    return ompi_comm_size(comm) > 2 ? across_new(comm) : NULL;
}
