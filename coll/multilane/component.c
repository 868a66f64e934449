/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of coll/multilane: it works only in jobs of Multilane's PML, on nodes with a
 * device. */
#include "coll/multilane/coll.h"
#include "common/compat/named.h"
#include "common/compat/version.h"
#include "common/memory/driver.h"
#include "opal/util/output.h"

static bool is_open;

static int component_register(void)
{
    return version_accepts_running("coll", "multilane") ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/* An error: Open MPI forgets this component. */
static int component_init(bool progress_threads, bool mpi_threads)
{
    if (!named_is_wanted("pml", "multilane"))
        return OMPI_ERR_NOT_AVAILABLE;
    if (!driver_load() && !device_memory_possible) {
        opal_output_verbose(10, ompi_coll_base_framework.framework_output,
                            "coll/multilane: not used: %s", driver_why());
        return OMPI_ERR_NOT_AVAILABLE;
    }
    requests_open();
    pack_open();
    is_open = true;
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    if (is_open) {
        pack_close();
        requests_close();
    }
    is_open = false;
    return OMPI_SUCCESS;
}

/* Above all others, whose functions it calls. */
static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority)
{
    *priority = 100;
    return module_new(comm);
}

extern mca_coll_base_component_t mca_coll_multilane_component;
__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_multilane_component = {
    .collm_version =
        {
            COMPAT_COLL_BASE_VERSION,
            .mca_component_name = "multilane",
            COMPAT_COMPONENT_VERSION,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init,
    .collm_comm_query = component_query,
};
