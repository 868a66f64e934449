/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of coll/node: it works only in jobs of Multilane's PML. */
#include "coll/node/levels.h"
#include "coll/node/node.h"
#include "common/compat/component.h"
#include "common/compat/named.h"
#include "common/compat/param.h"
#include "common/compat/version.h"
#include "opal/mca/base/mca_base_var.h"

/* Above Open MPI's own, and below coll/multilane, which takes device memory out of the way. */
#define PRIORITY 90

int node_bytes_max = 64 << 20;
int node_looking_ranks = 2; /* more were not measured */
_Atomic uint64_t node_operations;
bool across_always;
_Atomic uint64_t across_operations;

extern mca_coll_base_component_t mca_coll_node_component;

static const struct param params[] = {
    {"bytes_max", PARAM_INT, &node_bytes_max, "0 to 2147483647",
     "Collective operations go through the memory of a node up to so many bytes of a process, "
     "MPI_Alltoall also only up to 16 KiB for each, and where each process has a processor up to 4 "
     "KiB. If processes have different values the least counts"},
    {"looking_ranks", PARAM_INT, &node_looking_ranks, "0 or more",
     "Up to so many processes, each with a processor, have their collective operations up to 4 KiB "
     "go through the memory of a node, where each reads what the others have left; those of more "
     "processes go by messages"},
    {.name = NULL}};

static int parameters_register(void)
{
    if (!version_accepts_running("coll", "node"))
        return OMPI_ERR_NOT_AVAILABLE;
    (void) param_register(&mca_coll_node_component.collm_version, params);
    (void) mca_base_component_var_register(&mca_coll_node_component.collm_version, "across_always",
                                           "Collective operations between nodes go by a leader of "
                                           "each node also where no process shares "
                                           "its processor",
                                           MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_5,
                                           MCA_BASE_VAR_SCOPE_LOCAL, &across_always);
    (void) component_counter(
        &mca_coll_node_component.collm_version, "operations",
        "Collective operations of this process that went through the memory of the node",
        &node_operations);
    (void) component_counter(
        &mca_coll_node_component.collm_version, "across_operations",
        "Collective operations of this process that went by a leader of each node",
        &across_operations);
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    if (!named_is_wanted("pml", "multilane"))
        return OMPI_ERR_NOT_AVAILABLE;
    /* The least counts: no process of the job goes through the memory, as all must alike. */
    if (!param_check(&mca_coll_node_component.collm_version, params))
        node_bytes_max = node_looking_ranks = 0;
    count_into(node_calls());
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority)
{
    *priority = PRIORITY;
    return node_module_new(comm);
}

__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_node_component = {
    .collm_version =
        {
            COMPAT_COLL_BASE_VERSION,
            .mca_component_name = "node",
            COMPAT_COMPONENT_VERSION,
            .mca_register_component_params = parameters_register,
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init,
    .collm_comm_query = component_query,
};
