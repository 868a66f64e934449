/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of pml/multilane: its parameters and its place in Open MPI. */
#include "ompi_config.h"
#include "ompi/constants.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "opal/util/output.h"

#include "common/compat/compat.h"
#include "common/compat/param.h"
#include "common/compat/version.h"

static int pml_multilane_register(void);
static int pml_multilane_open(void);
static mca_pml_base_module_t *pml_multilane_init(int *priority, bool progress_threads,
                                                 bool mpi_threads);
static int pml_multilane_finalize(void);

__attribute__((visibility("default"))) mca_pml_base_component_t mca_pml_multilane_component = {
    .pmlm_version =
        {
            COMPAT_PML_BASE_VERSION,
            .mca_component_name = "multilane",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_open_component = pml_multilane_open,
            .mca_register_component_params = pml_multilane_register,
        },
    .pmlm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = pml_multilane_init,
    .pmlm_finalize = pml_multilane_finalize,
};

static int explain;
static const char *explain_file;
static const char *protocol = "auto";
static const char *rndv_bias = "0.99";
static int eager_lanes;
static int rndv_lanes;
static const char *unexpected_max = "256m";
static int failover = 1;
static int suspect_ms = 1000;
static int lost_s = 60;
static const char *lane_attr;
static int progress_thread;
static const char *profile = "auto";
static int untested;

static const struct param params[] = {
    {"explain", PARAM_INT, &explain,
     "1: at finalize, rank 0 prints the plans it used and how often; 2: every rank does"},
    {"explain_file", PARAM_STRING, &explain_file,
     "where explain writes instead of the standard error; JSON if the name ends in .json"},
    {"protocol", PARAM_STRING, &protocol,
     "auto, a protocol's name, or NAME:LO-HI,... with sizes in bytes (k, m, g, inf)"},
    {"rndv_bias", PARAM_STRING, &rndv_bias,
     "what a rendezvous protocol's predicted time is multiplied by; below 1 favours it"},
    {"eager_lanes", PARAM_INT, &eager_lanes,
     "most lanes that an eager message uses; 0: as many as pay"},
    {"rndv_lanes", PARAM_INT, &rndv_lanes,
     "most lanes that a rendezvous message uses; 0: as many as pay"},
    {"unexpected_max", PARAM_STRING, &unexpected_max,
     "bytes of eager data without a receive that this process will hold (k, m, g)"},
    {"failover", PARAM_INT, &failover, "1: go on over the other lanes when one is lost; 0: do not"},
    {"suspect_ms", PARAM_INT, &suspect_ms, "milliseconds of silence after which a lane is suspect"},
    {"lost_s", PARAM_INT, &lost_s,
     "seconds of silence on every lane after which a peer counts as lost"},
    {"lane_attr", PARAM_STRING, &lane_attr,
     "attributes of lanes: BTL[:device]:key=value,... in seconds and bytes a second"},
    {"progress_thread", PARAM_INT, &progress_thread,
     "1: a thread moves messages on while the program computes"},
    {"profile", PARAM_STRING, &profile, "measured attributes: auto, none, or a file"},
    {"untested", PARAM_INT, &untested,
     "1: load into an Open MPI other than the versions known to be laid out alike"},
};

static int pml_multilane_register(void)
{
    if (!version_accepts_running("pml", "multilane")) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    return param_register(&mca_pml_multilane_component.pmlm_version, params,
                          sizeof(params) / sizeof(params[0]));
}

static int pml_multilane_open(void)
{
    return OMPI_SUCCESS;
}

static mca_pml_base_module_t *pml_multilane_init(int *priority, bool progress_threads,
                                                 bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    *priority = 0;
    opal_output_verbose(1, ompi_pml_base_framework.framework_output,
                        "pml/multilane: declines, since it cannot carry messages yet");
    return NULL;
}

static int pml_multilane_finalize(void)
{
    return OMPI_SUCCESS;
}
