/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of btl/cuda: its parameters, its peers, its beginning and its end. */
#include "btl/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/component.h"
#include "common/compat/named.h"
#include "common/lane/host.h"
#include "common/lane/readers.h"
#include "opal/mca/hwloc/hwloc-internal.h"
#include "opal/runtime/opal_progress.h"

extern mca_btl_base_component_t mca_btl_cuda_component;

struct cuda_state cuda = {
    .handles_max = 256,
    .off = "",
};

mca_btl_base_module_t cuda_module; /* filled in cuda_register */

static const struct param params[] = {
    {"lane", PARAM_LANE, &cuda.lane, NULL, NULL},
    {"handles_max", PARAM_INT, &cuda.handles_max, "1 or more",
     "the most allocations and chunks of mapped memory of other processes that are kept open here, "
     "and the most chunks of this process that are shared"},
    {"off", PARAM_SHOWN, &cuda.off, NULL,
     "why this node has no such lane; empty where it may have one (for reading only)"},
    {.name = NULL}};

/* --- peers --- */

static bool record_fits(const void *data, size_t bytes)
{
    const struct cuda_record *record = data;

    return bytes == sizeof(*record) && record->version == CUDA_RECORD_VERSION &&
           record->key_bytes == sizeof(cuda_key_t);
}

/* Did the process publish this lane in this version? Then copies what else it published. */
static bool record_copy(const opal_proc_t *proc, cuda_peer_t *peer)
{
    struct cuda_record *record = component_record_of(&mca_btl_cuda_component, proc, record_fits);

    if (!record)
        return false;
    peer->knows_pids = cuda.pid_namespace != 0 && record->pid_namespace == cuda.pid_namespace;
    free(record);
    return true;
}

/* Under the lock. The peer, or NULL if its device memory cannot be shared, which is no error. */
static cuda_peer_t *peer_add(const opal_proc_t *proc)
{
    const opal_proc_t *self = opal_proc_local_get();
    cuda_peer_t *peer = peer_table_find(&cuda.peers, &proc->proc_name);
    cuda_peer_t found = {.name = proc->proc_name, .is_self = proc == self};

    if (peer)
        return peer;
    if (proc != self && (proc->proc_name.jobid != self->proc_name.jobid ||
                         !OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) || !record_copy(proc, &found)))
        return NULL;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    *peer = found;
    peer_table_add(&cuda.peers, &peer->entry, &peer->name, peer);
    return peer;
}

/* Leaves `reachable` as it is: this lane carries no messages. */
static int cuda_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                          cuda_peer_t **peers, opal_bitmap_t *reachable)
{
    OPAL_THREAD_LOCK(&cuda.lock);
    for (size_t i = 0; i < count; i++)
        peers[i] = peer_add(procs[i]);
    OPAL_THREAD_UNLOCK(&cuda.lock);
    return OPAL_SUCCESS;
}

/* BML r2 calls it at once for this lane, which it does not admit but the PML uses: peers stay. */
static int cuda_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                          cuda_peer_t **peers)
{
    return OPAL_SUCCESS;
}

static bool peer_free(cuda_peer_t *peer, void *unused)
{
    free(peer);
    return true;
}

static int cuda_finalize(mca_btl_base_module_t *btl)
{
    opal_progress_unregister(cuda_copies_progress);
    copiers_check();
    cuda_copies_close();
    cuda_mappings_close();
    cuda_keys_close();
    peer_table_visit(&cuda.peers, peer_free, NULL);
    memset(&cuda.peers, 0, sizeof(cuda.peers));
    copiers_close();
    if (cuda.readers_allowed)
        readers_forbid();
    cuda.readers_allowed = false;
    OBJ_DESTRUCT(&cuda.mappings);
    OBJ_DESTRUCT(&cuda.lock);
    return OPAL_SUCCESS;
}

/* --- the extension: what Multilane's PML uses beside btl.h --- */

/* It depends on the device: the PML measures it. */
static void cost_set(struct multilane_lane_cost *cost)
{
    cost->range_count = 1;
    cost->ranges[0] = (struct model_lane_range){.largest_bytes = UINT64_MAX};
}

static int extension_attributes(mca_btl_base_module_t *btl, cuda_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    memset(out, 0, sizeof(*out));
    if (!peer)
        return OPAL_ERR_NOT_AVAILABLE;
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_DEVICE_MEMORY;
    out->memory = MODEL_MEMORY_CUDA;
    out->zcopied_max_bytes = SIZE_MAX;
    cost_set(&out->cost[MODEL_BY_GET]);
    cost_set(&out->cost[MODEL_BY_PUT]);
    strcpy(out->device, "ipc");
    return OPAL_SUCCESS;
}

MULTILANE_EXTENSION_DEFINE(cuda) = {
    MULTILANE_EXTENSION_HEAD,
    .attributes = extension_attributes,
};

/* --- beginning --- */

/* It has neither send nor atomics, so BML r2 does not admit it: Multilane's PML calls it itself. */
static void module_describe(void)
{
    cuda_module = (mca_btl_base_module_t){
        .btl_component = &mca_btl_cuda_component,
        .btl_add_procs = cuda_add_procs,
        .btl_del_procs = cuda_del_procs,
        .btl_finalize = cuda_finalize,
        .btl_put = cuda_copy_put,
        .btl_get = cuda_copy_get,
        .btl_register_mem = cuda_key_make,
        .btl_deregister_mem = cuda_key_free,
    };
    cuda_module.btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH;
    cuda_module.btl_latency = 10;
    cuda_module.btl_bandwidth = 1000000;
    cuda_module.btl_flags = MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET;
    cuda_module.btl_registration_handle_size = sizeof(cuda_key_t);
    cuda_module.btl_get_limit = cuda_module.btl_put_limit = SIZE_MAX;
    cuda_module.btl_get_local_registration_threshold = SIZE_MAX;
    cuda_module.btl_put_local_registration_threshold = SIZE_MAX;
    cuda_module.btl_min_rdma_pipeline_size = SIZE_MAX;
}

static int cuda_register(void)
{
    cuda.off = driver_expected();
    module_describe();
    return component_register(&mca_btl_cuda_component, params, NULL);
}

static mca_btl_base_module_t **cuda_init(int *count, bool progress_threads, bool mpi_threads)
{
    struct cuda_record record = {.version = CUDA_RECORD_VERSION, .key_bytes = sizeof(cuda_key_t)};

    *count = 0;
    if (!named_btl_is_wanted("cuda"))
        return NULL;
    if (!driver_load()) {
        CUDA_VERBOSE("offers no lane: %s", driver_why());
        return NULL;
    }
    if (!param_check(&mca_btl_cuda_component.btl_version, params))
        return NULL;
    record.pid_namespace = cuda.pid_namespace = host_namespace("pid");
    mca_btl_base_module_t *own = &cuda_module;
    mca_btl_base_module_t **modules =
        component_offer(&mca_btl_cuda_component, &record, sizeof(record), &own, 1, count);
    if (!modules)
        return NULL;
    OBJ_CONSTRUCT(&cuda.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&cuda.mappings, opal_list_t);
    cuda_copies_init();
    cuda.readers_allowed = readers_allow(); /* they take file descriptors */
    /* BML r2 calls progress only of BTLs that it admits. Registered now, while no other thread
     * walks the list of progress functions, which is freed when it grows. */
    opal_progress_register(cuda_copies_progress);
    return modules;
}

COMPONENT_DEFINE(cuda, cuda_register, cuda_init, cuda_copies_progress);
