/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of btl/verbs, the lane over InfiniBand, RoCE and soft RoCE: its parameters, its
 * beginning and its end. */
#include "btl/verbs/verbs.h"

#include <errno.h>
#include <string.h>

#include "common/compat/component.h"
#include "common/compat/modex.h"
#include "common/compat/named.h"
#include "common/lane/host.h"
#include "btl/verbs/library.h"
#include "btl/verbs/route.h"

/* So long works under way may take to end when the module ends; their receivers may have ended. */
#define DRAIN_MS 2000u

static int verbs_register(void);
static mca_btl_base_module_t **verbs_init(int *count, bool progress_threads, bool mpi_threads);
static int verbs_finalize(mca_btl_base_module_t *btl);

COMPONENT_DEFINE(verbs, verbs_register, verbs_init, verbs_progress_all);

/* The exclusivity is that of Open MPI's own network lanes except tcp. */
static mca_btl_base_module_t module_template = {
    .btl_component = &mca_btl_verbs_component,
    .btl_add_procs = verbs_add_procs,
    .btl_del_procs = verbs_del_procs,
    .btl_finalize = verbs_finalize,
    .btl_alloc = verbs_work_alloc,
    .btl_free = verbs_work_free,
    .btl_prepare_src = verbs_work_prepare,
    .btl_send = verbs_send_start,
    .btl_sendi = verbs_send_immediate,
    .btl_put = verbs_remote_put,
    .btl_get = verbs_remote_get,
    .btl_atomic_fop = verbs_remote_fetch_atomic,
    .btl_atomic_cswap = verbs_remote_compare_swap,
    .btl_register_mem = verbs_remote_register,
    .btl_deregister_mem = verbs_remote_deregister,
    .btl_register_error = lane_error_to,
    .btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT,
    .btl_latency = 4,
    .btl_bandwidth = 0, /* the port's own */
    .btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_FOPS |
                 COMPAT_BTL_FLAGS_REMOTE_COMPLETION,
    .btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP,
    .btl_get_limit = 1u << 30,
    .btl_put_limit = 1u << 30,
    .btl_get_local_registration_threshold = 0,
    .btl_put_local_registration_threshold = 0, /* the queue pairs' inline size */
    .btl_eager_limit = 12 << 10,
    .btl_rndv_eager_limit = 12 << 10,
    .btl_max_send_size = 16 << 10,
    .btl_rdma_pipeline_send_length = 64 << 10,
    .btl_rdma_pipeline_frag_size = 1 << 20,
    .btl_min_rdma_pipeline_size = 256 << 10,
};

static const struct param params[] = {
    {"lane", PARAM_LANE, &verbs.lane, NULL, NULL},
    {"devices", PARAM_STRING, &verbs.devices, NULL,
     "the ports to use, as mlx5_0,mlx5_1:2; after ^ all but these; or auto: all"},
    {"pairing", PARAM_WORD, &verbs.pairing, "subnet, route or order",
     "which ports of two processes make a lane, the fastest with the fastest and equal ones in "
     "their order: subnet (only ports of one subnet), route (also RoCE v2 ports of two subnets "
     "between which this node's routes lead by that port) or order (any)"},
    {"rails", PARAM_INT, &verbs.rails, "0 to 16",
     "the most ports used toward one process; 0: two, nearest ports first"},
    {"same_node", PARAM_WORD, &verbs.same_node, "auto, yes or no",
     "a lane to processes of this node as well: yes, no, or auto: only where btl leaves out shm, "
     "vader and sm"},
    {"dmabuf", PARAM_WORD, &verbs.dmabuf, "auto or none",
     "device memory that the port reads and writes itself (GPU-direct): auto, where the CUDA "
     "driver "
     "gives a dmabuf of it and the port registers that; or none"},
    {"gid_index", PARAM_INT, &verbs.gid_index, "-1 to 255",
     "the GID of each port by its index, or -1: by rule, RoCE v2 before v1 and IPv4 before IPv6"},
    {"pkey", PARAM_INT, &verbs.pkey, "0 to 65535",
     "the partition by its key, wherever it is in a port's table; 0: the first that the port is a "
     "full member of"},
    {"service_level", PARAM_INT, &verbs.service_level, "0 to 15",
     "InfiniBand service level or RoCE priority, 0 to 15"},
    {"traffic_class", PARAM_INT, &verbs.traffic_class, "0 to 255",
     "traffic class of RoCE v2 packets (DSCP and ECN), 0 to 255"},
    {"timeout", PARAM_INT, &verbs.timeout, "1 to 31",
     "wait for an acknowledgement 4.096 us * 2^timeout before sending again, 1 to 31"},
    {"retry_count", PARAM_INT, &verbs.retry_count, "0 to 7",
     "times to send again before the lane counts as lost, 0 to 7; soft RoCE takes 7 as for ever"},
    {"queue_depth", PARAM_INT, &verbs.queue_depth, "16 to 16384, or 0",
     "most messages, puts and gets under way to one peer, 16 to 16384; 0: 128, or 32 where the job "
     "has over 256 processes on other nodes"},
    {"receive_buffers", PARAM_INT, &verbs.receive_buffers, "16 to 65536",
     "messages that a port can hold before they are looked at, of btl_verbs_max_send_size bytes, "
     "16 to 65536"},
    {"receive_buffers_most", PARAM_INT, &verbs.receive_buffers_most, "16 to 65536",
     "the same after it has grown, which it does when three quarters are in use, 16 to 65536"},
    {.name = NULL}};

_Static_assert(CHOICE_PORTS_MAX == 16, "rails may be these");

static int verbs_register(void)
{
    int status = component_register(&mca_btl_verbs_component, params, &module_template);

    if (status == OPAL_SUCCESS)
        status = component_counter(
            &mca_btl_verbs_component.btl_version, "copied_bytes",
            "Bytes that were copied into fragments of this lane to be sent, without the headers",
            &verbs.copied_bytes);
    if (status == OPAL_SUCCESS)
        status = component_counter(&mca_btl_verbs_component.btl_version, "in_place_bytes",
                                   "Bytes that were sent from the user's memory as messages",
                                   &verbs.in_place_bytes);
    return status;
}

/* --- parameters --- */

/* Within a node the port's bus carries each byte twice, and takes it from the network. */
static bool leaves_node(void)
{
    if (strcmp(verbs.same_node.text, "auto") != 0)
        return strcmp(verbs.same_node.text, "no") == 0;
    return named_btl_is_listed("shm") || named_btl_is_listed("vader") || named_btl_is_listed("sm");
}

/* --- beginning --- */

static bool library_open(void)
{
    struct error_text why;

    if (!verbs_library_wanted())
        VERBS_VERBOSE(
            "no lane, since this node has no RDMA device (/sys/class/infiniband is empty)");
    else if (verbs_library_open(&why))
        return true;
    else if (opal_process_info.my_local_rank == 0) /* one for the node */
        VERBS_SAY("no lane: %s. Other lanes are used, if there are any.", why.text);
    return false;
}

static bool begin(void)
{
    if (!param_check(&mca_btl_verbs_component.btl_version, params) || !library_open())
        return false;
    verbs.pair_rule.pairing = (enum choice_pairing) verbs.pairing.number;
    verbs.pair_rule.routes = verbs_route_leaves_by;
    verbs.leaves_node = leaves_node();
    component_limits_clip(&module_template, VERBS_FRAG_SMALL, 1u << 20);
    uint32_t job = modex_job_size(), here = (uint32_t) opal_process_info.num_local_peers + 1;
    verbs_choice_depth(job > here ? job - here : 0, (uint32_t) verbs.queue_depth, &verbs.depth);
    verbs.module_count = 0;
    OBJ_CONSTRUCT(&verbs.record_lock, opal_mutex_t);
    memset(&verbs.record, 0, sizeof(verbs.record));
    verbs.paired_nonce = 0;
    if (!host_random(&verbs.record.nonce, sizeof(verbs.record.nonce))) {
        VERBS_SAY("no random numbers from the system: %s. Other lanes are used, if there are any.",
                  strerror(errno));
        return false;
    }
    /* Before any memory is registered: a child of fork() gets pages of its own where the device
     * writes to the parent's. Newer kernels copy them by themselves, and then this does nothing. */
    if (ibv_fork_init() != 0)
        VERBS_VERBOSE(
            "memory was registered before; a program that forks may lose what is received "
            "after that");
    verbs_device_open_all(&module_template);
    verbs.record.version = VERBS_RECORD_VERSION;
    verbs.record.turn = OPAL_PROC_MY_NAME.vpid;
    verbs.record.message_bytes = module_template.btl_max_send_size;
    verbs.record.port_count = verbs.module_count;
    return verbs.module_count > 0;
}

static mca_btl_base_module_t **verbs_init(int *count, bool progress_threads, bool mpi_threads)
{
    *count = 0;
    if (!named_btl_is_wanted("verbs") || !begin())
        return NULL;
    mca_btl_base_module_t **modules = component_offer(&mca_btl_verbs_component, &verbs.record,
                                                      VERBS_RECORD_BYTES(verbs.record.port_count),
                                                      verbs.modules, verbs.module_count, count);
    while (!modules && verbs.module_count > 0)
        verbs_device_close(verbs.modules[--verbs.module_count]);
    return modules;
}

/* --- end --- */

static int verbs_finalize(mca_btl_base_module_t *btl)
{
    struct verbs_module *module = module_of(btl);

    module->finalized = true;
    if (module->dmabuf.pd)
        VERBS_VERBOSE("%s: %llu messages were flushed to device memory", module->device,
                      (unsigned long long) atomic_load(&module->flushes));
    if (!verbs_progress_drain(module, DRAIN_MS))
        VERBS_VERBOSE("%s: something was still under way at the end", module->device);
    for (uint32_t i = 0; i < verbs.module_count; i++)
        if (module == verbs.modules[i]) {
            verbs.modules[i] = verbs.modules[--verbs.module_count];
            break;
        }
    verbs_device_close(module);
    if (verbs.module_count == 0)
        (void) lane_error_to(btl, NULL);
    return OPAL_SUCCESS;
}
