/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of osc/multilane: it refuses device memory, which Open MPI would read and write
 * with the processor. It takes each window, has the best of the other components make it, and
 * stands before those of its functions that are given buffers. Where that is osc/rdma, it has the
 * PML contact the other nodes' processes of the window. */
#include "osc/multilane/guard.h"

#include <limits.h>
#include <string.h>

#include "common/compat/named.h"
#include "common/compat/pml.h"
#include "common/compat/version.h"
#include "common/memory/memory.h"
#include "multilane/service.h"
#include "opal/util/output.h"

extern ompi_osc_base_component_t mca_osc_multilane_component;

static int component_register(void)
{
    return version_accepts_running("osc", "multilane") ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* An error: Open MPI forgets this component. Also where there is no driver: all processes of a
 * window agree on it. */
static int component_init(bool progress_threads, bool mpi_threads)
{
    (void) driver_load();
    return named_is_wanted("pml", "multilane") ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static int component_query(struct ompi_win_t *window, void **base, size_t bytes,
                           compat_disp_unit unit, ompi_communicator_t *comm,
                           struct opal_info_t *info, int flavor)
{
    return INT_MAX;
}

/* osc/rdma keeps to one lane toward each process. When that lane breaks, what it has not delivered
 * goes by another one, but only toward a process that the PML has contacted. */
static void others_contact(const ompi_osc_base_component_t *chosen, ompi_communicator_t *comm)
{
    bool is_rdma = strcmp(chosen->osc_version.mca_component_name, "rdma") == 0;
    const struct multilane_service *service = multilane_service_find();

    for (int rank = 0; is_rdma && service && rank < ompi_comm_size(comm); rank++)
        if (!OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, rank)->super.proc_flags))
            service->contact(comm, rank);
}

/* As Open MPI does it, among all others; but osc/monitoring would choose this one again. */
static int others_select(struct ompi_win_t *window, void **base, size_t bytes,
                         compat_disp_unit unit, ompi_communicator_t *comm, struct opal_info_t *info,
                         int flavor, int *model)
{
    const ompi_osc_base_component_t *best = NULL;
    int best_priority = -1;
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        const ompi_osc_base_component_t *component =
            (const ompi_osc_base_component_t *) item->cli_component;

        if (component == &mca_osc_multilane_component ||
            strcmp(component->osc_version.mca_component_name, "monitoring") == 0)
            continue;
        int priority = component->osc_query(window, base, bytes, unit, comm, info, flavor);
        if (priority == OMPI_ERR_RMA_SHARED && flavor == MPI_WIN_FLAVOR_SHARED)
            return priority;
        if (priority > best_priority) {
            best = component;
            best_priority = priority;
        }
    }
    if (!best)
        return OMPI_ERR_NOT_SUPPORTED;
    others_contact(best, comm); /* one that is lost is found by the window */
    return best->osc_select(window, base, bytes, unit, comm, info, flavor, model);
}

/* Does any process of the window give device memory? Who gave host memory would wait for ever for
 * one that refuses alone. An error of the communicator. */
static int device_agree(ompi_communicator_t *comm, bool is_mine, bool *is_any)
{
    int mine = is_mine, any = 0;
    int status = comm->c_coll->coll_allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm,
                                              comm->c_coll->coll_allreduce_module);

    *is_any = any != 0;
    return status;
}

static int component_select(struct ompi_win_t *window, void **base, size_t bytes,
                            compat_disp_unit unit, ompi_communicator_t *comm,
                            struct opal_info_t *info, int flavor, int *model)
{
    bool is_mine = flavor == MPI_WIN_FLAVOR_CREATE && bytes > 0 && memory_is_of_device(*base);
    bool is_any = false;
    int status =
        flavor == MPI_WIN_FLAVOR_CREATE ? device_agree(comm, is_mine, &is_any) : OMPI_SUCCESS;

    if (is_mine)
        opal_output(0,
                    "multilane: MPI_Win_create: the %zu bytes at %p are device memory, which this "
                    "Open MPI cannot read or write for other processes; make the window in host "
                    "memory, or send messages.",
                    bytes, *base);
    if (status == OMPI_SUCCESS && is_any)
        status = OMPI_ERR_NOT_SUPPORTED;
    if (status == OMPI_SUCCESS)
        status = others_select(window, base, bytes, unit, comm, info, flavor, model);
    if (status == OMPI_SUCCESS && device_memory_possible)
        guard_begin(window);
    return status;
}

static int component_finalize(void)
{
    return OMPI_SUCCESS;
}

__attribute__((visibility("default"))) ompi_osc_base_component_t mca_osc_multilane_component = {
    .osc_version =
        {
            COMPAT_OSC_BASE_VERSION,
            .mca_component_name = "multilane",
            COMPAT_COMPONENT_VERSION,
            .mca_register_component_params = component_register,
        },
    .osc_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .osc_init = component_init,
    .osc_query = component_query,
    .osc_select = component_select,
    .osc_finalize = component_finalize,
};
