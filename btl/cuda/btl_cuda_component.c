/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of btl/cuda, the lane over the memory of CUDA devices: its parameters and its place
 * in Open MPI. */
#include "opal_config.h"
#include "opal/constants.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/output.h"

#include "common/compat/compat.h"
#include "common/compat/named.h"
#include "common/compat/param.h"
#include "common/compat/version.h"

static int btl_cuda_register(void);
static mca_btl_base_module_t **btl_cuda_init(int *count, bool progress_threads, bool mpi_threads);

__attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_cuda_component = {
    .btl_version =
        {
            MCA_BTL_DEFAULT_VERSION("cuda"),
            .mca_register_component_params = btl_cuda_register,
        },
    .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .btl_init = btl_cuda_init,
};

static const char *lane_latency = "auto";
static const char *lane_bandwidth = "auto";
static const char *lane_overhead = "auto";
static const char *lane_reg_cost = "auto";
static const char *lane_reg_growth = "auto";

static const struct param params[] = {
    {"lane_latency", PARAM_STRING, &lane_latency, "latency of the lane in seconds, or auto"},
    {"lane_bandwidth", PARAM_STRING, &lane_bandwidth,
     "bandwidth of the lane in bytes a second, or auto"},
    {"lane_overhead", PARAM_STRING, &lane_overhead,
     "time of sender and receiver for one message in seconds, or auto"},
    {"lane_reg_cost", PARAM_STRING, &lane_reg_cost, "time to register memory in seconds, or auto"},
    {"lane_reg_growth", PARAM_STRING, &lane_reg_growth,
     "time to register one byte more in seconds, or auto"},
};

static int btl_cuda_register(void)
{
    if (!version_accepts_running("btl", "cuda")) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return param_register(&mca_btl_cuda_component.btl_version, params,
                          sizeof(params) / sizeof(params[0]));
}

static mca_btl_base_module_t **btl_cuda_init(int *count, bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    *count = 0;
    if (named_btl_is_wanted("cuda")) {
        opal_output_verbose(1, opal_btl_base_framework.framework_output,
                            "btl/cuda: offers no lane, since its transfers are not written yet");
    }
    return NULL;
}
