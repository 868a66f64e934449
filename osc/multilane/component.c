/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of osc/multilane: it refuses windows in device memory, which Open MPI would read
 * and write with the processor. Windows in host memory it leaves to the others. */
#include <limits.h>

#include "common/compat/named.h"
#include "common/compat/osc.h"
#include "common/compat/version.h"
#include "common/memory/memory.h"
#include "opal/util/output.h"

static int component_register(void)
{
    return version_accepts_running("osc", "multilane") ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* An error: Open MPI forgets this component. */
static int component_init(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    return named_is_wanted("pml", "multilane") && driver_load() ? OMPI_SUCCESS
                                                                : OMPI_ERR_NOT_AVAILABLE;
}

/* Below 0: it does not want the window. */
static int component_query(struct ompi_win_t *window, void **base, size_t bytes,
                           compat_disp_unit unit, ompi_communicator_t *comm,
                           struct opal_info_t *info, int flavor)
{
    struct memory memory = {.kind = MEMORY_HOST};

    (void) window;
    (void) unit;
    (void) comm;
    (void) info;
    if (flavor == MPI_WIN_FLAVOR_CREATE && bytes > 0)
        memory_look(*base, &memory);
    return memory.kind == MEMORY_HOST ? OMPI_ERR_NOT_SUPPORTED : INT_MAX;
}

static int component_select(struct ompi_win_t *window, void **base, size_t bytes,
                            compat_disp_unit unit, ompi_communicator_t *comm,
                            struct opal_info_t *info, int flavor, int *model)
{
    (void) window;
    (void) unit;
    (void) comm;
    (void) info;
    (void) flavor;
    (void) model;
    opal_output(0,
                "multilane: MPI_Win_create: the %zu bytes at %p are device memory, which this Open "
                "MPI cannot read or write for other processes; make the window in host memory, or "
                "send messages.",
                bytes, *base);
    return OMPI_ERR_NOT_SUPPORTED;
}

static int component_finalize(void)
{
    return OMPI_SUCCESS;
}

extern ompi_osc_base_component_t mca_osc_multilane_component;
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
