/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of pml/multilane: its parameters and its place in Open MPI. */
#include "common/compat/version.h"
#include "common/memory/kernels.h"
#include "report/report.h"
#include "common/model/flow.h"
#include "plan/costs.h"
#include "base/multilane.h"
#include "entry/calls.h"
#include "base/parameters.h"
#include "plan/peer_class.h"
#include "contact/contact.h"
#include "base/own_page.h"

static int component_register(void)
{
    if (!version_accepts_running("pml", "multilane"))
        return OMPI_ERR_NOT_AVAILABLE;
    int rc = parameters_register(&mca_pml_multilane_component.pmlm_version);
    if (rc != OMPI_SUCCESS)
        return rc;
    used_profile_load();
    parameters.profile_used = used_profile_story();
    parameters_expect();
    parameters.switch_points = class_switch_points();
    parameters.device_code_off = kernels_expected(parameters.device_code);
    rc = parameters_register_shown(&mca_pml_multilane_component.pmlm_version);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = counters_register(&mca_pml_multilane_component.pmlm_version);
    return rc == OMPI_SUCCESS ? tool_events_register(&mca_pml_multilane_component.pmlm_version)
                              : rc;
}

static int component_close(void)
{
    used_profile_fini();
    return OMPI_SUCCESS;
}

/* Runs only in jobs that select this component. */
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    *priority = 10;
    if (parameters_parse(&mca_pml_multilane_component.pmlm_version) != OMPI_SUCCESS)
        return NULL;
    if (OMPI_PROC_MY_NAME->vpid == 0)
        version_say_unchecked();
    progress_thread_prepare();
    used_profile_load();
    if (used_profile_complaint() && ompi_process_info.my_local_rank == 0)
        opal_output(0, "multilane: %s; the lanes' defaults are used.", used_profile_complaint());
    /* From Open MPI 5.0 on the PML opens the BML. 4.1 has opened it; then this does nothing. */
    if (mca_base_framework_open(&ompi_bml_base_framework, 0) != OMPI_SUCCESS)
        return NULL;
    if (mca_bml_base_init(progress_threads, mpi_threads) != OMPI_SUCCESS)
        return NULL;

    if (!driver_load())
        opal_output_verbose(10, ompi_pml_base_framework.framework_output,
                            "multilane: device memory is not looked for: %s", driver_why());

    multilane.window = flow_divide(parameters.unexpected_max_bytes,
                                   (uint32_t) ompi_process_info.num_procs, &multilane.pool);
    attributes_publish(&multilane.ends);
    if (record_publish(multilane.window, &multilane.ends) != OMPI_SUCCESS)
        return NULL;
    used_history_load();
    node_costs_publish();
    device_costs_publish();
    return module_of_job();
}

static int component_finalize(void)
{
    module_fini();
    int rc = mca_base_framework_close(&ompi_bml_base_framework);
    sigpipe_restore();
    return rc;
}

__attribute__((visibility("default"))) mca_pml_base_component_t mca_pml_multilane_component = {
    .pmlm_version =
        {
            COMPAT_PML_BASE_VERSION,
            .mca_component_name = "multilane",
            COMPAT_COMPONENT_VERSION,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .pmlm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = component_init,
    .pmlm_finalize = component_finalize,
};
