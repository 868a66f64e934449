/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of a communicator that come before the others. */
#include "coll/node/levels.h"
#include "coll/node/node.h"

#include <string.h>

#include "opal/util/output.h"

#define EACH(do_it)                                                                                \
    do_it(barrier) do_it(bcast) do_it(reduce) do_it(allreduce) do_it(allgather) do_it(alltoall)    \
        do_it(gather)
#define INSTALL(name)                                                                              \
    if (entry->functions->coll_##name) {                                                           \
        COMPAT_COLL_INSTALL(comm, module, &entry->below, name, functions->coll_##name);            \
    }
#define UNINSTALL(name)                                                                            \
    if (entry->functions->coll_##name) {                                                           \
        COMPAT_COLL_UNINSTALL(comm, module, &entry->below, name);                                  \
    }

static int entry_enable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    struct entry *entry = (struct entry *) module;
    const mca_coll_base_comm_coll_t *functions = counted(entry->functions);

    if (compat_coll_has_to_be_last(comm)) /* in all processes alike */
        return OMPI_ERR_NOT_SUPPORTED;
    entry->below = *comm->c_coll;
    EACH(INSTALL)
    tsan_release(entry); /* entry_disable, and its operations */
    return OMPI_SUCCESS;
}

static int entry_disable(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
    struct entry *entry = (struct entry *) module;

    tsan_acquire(entry); /* entry_enable */
    EACH(UNINSTALL)
    return OMPI_SUCCESS;
}

/* Without a module this process would have Open MPI's functions, and the others, which have one,
 * would wait for it at the fifth operation. */
static mca_coll_base_module_t *end_without_memory(ompi_communicator_t *comm)
{
    opal_output(0, "multilane: there is no memory for a communicator of %d processes; the job ends",
                ompi_comm_size(comm));
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
    return NULL;
}

/* Of a module that has so many bytes. */
static mca_coll_base_module_t *entry_begin(struct entry *entry, size_t bytes,
                                           ompi_communicator_t *comm,
                                           const mca_coll_base_comm_coll_t *functions,
                                           enum multilane_way usual)
{
    if (!entry)
        return end_without_memory(comm);
    memset((char *) entry + sizeof(entry->super), 0, bytes - sizeof(entry->super));
    entry->comm = comm;
    entry->functions = functions;
    entry->usual = usual;
    entry->without = MULTILANE_FIRST;
    entry->super.coll_module_enable = entry_enable;
    entry->super.coll_module_disable = entry_disable;
    return &entry->super;
}

/* --- on a node --- */

OBJ_CLASS_INSTANCE(node_module_t, mca_coll_base_module_t, NULL, area_leave);

static mca_coll_base_module_t *node_new(ompi_communicator_t *comm)
{
    node_module_t *own = OBJ_NEW(node_module_t);

    if (!entry_begin((struct entry *) own, sizeof(*own), comm, &node_functions, MULTILANE_BY_NODE))
        return NULL;
    own->me = (uint32_t) ompi_comm_rank(comm);
    own->turns.ranks = (uint32_t) ompi_comm_size(comm);
    return &own->entry.super;
}

/* --- across nodes --- */

OBJ_CLASS_INSTANCE(across_module_t, mca_coll_base_module_t, NULL, levels_free);

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

static mca_coll_base_module_t *left(enum multilane_way why)
{
    count_left(why);
    return NULL;
}

mca_coll_base_module_t *node_module_new(ompi_communicator_t *comm)
{
    if (OMPI_COMM_IS_INTER(comm))
        return left(MULTILANE_INTER);
    if (ompi_comm_size(comm) < 2)
        return left(MULTILANE_SINGLE);
    if (is_of_node(comm))
        return node_new(comm);
    return ompi_comm_size(comm) > 2
               ? entry_begin((struct entry *) OBJ_NEW(across_module_t), sizeof(across_module_t),
                             comm, &across_functions, MULTILANE_BY_LEADERS)
               : left(MULTILANE_APART);
}
