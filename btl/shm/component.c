/* SPDX-License-Identifier: BSD-3-Clause */
/* The component of btl/shm, the lane over shared memory: its parameters, its beginning and its end.
 */
#include "btl/shm/shm.h"

#include <string.h>

#include "common/compat/component.h"
#include "common/compat/named.h"
#include "common/lane/cgroup.h"
#include "common/lane/crowd.h"
#include "common/lane/readers.h"
#include "common/model/number.h"
#include "opal/util/proc.h"

static int shm_register(void);
static mca_btl_base_module_t **shm_init(int *count, bool progress_threads, bool mpi_threads);
static int shm_finalize(mca_btl_base_module_t *btl);

COMPONENT_DEFINE(shm, shm_register, shm_init, shm_receive_progress);

static const struct param params[] = {
    {"lane", PARAM_LANE, &shm.lane, NULL, NULL},
    {"single_copy", PARAM_WORD, &shm.single_copy, "auto, cma or none",
     "how one process reads another's memory: auto, cma (process_vm_readv) or none"},
    {"ring_bytes", PARAM_STRING, &shm.ring_bytes_text, NULL,
     "bytes that the ring to a peer may grow to, a power of two from 16k to 4m, or auto: 256k, or "
     "more where no processes share a processor and all rings take half of the last-level cache"},
    {"memory_max", PARAM_STRING, &shm.memory_max_text, NULL,
     "most bytes of the grown rings of one process together, with k, m or g behind the number, or "
     "auto: 448m, or an eighth of the cgroup's memory.max, divided by the job's processes on the "
     "node, at most 64m"},
    {.name = NULL}};

/* Room for the headers of the PML, so that messages and halves of 16, 32, 64 KiB are not a few
 * bytes too long. */
#define HEADERS_BYTES 128

/* What Open MPI's BML sees. The exclusivity is that of vader and sm, and so are the figures,
 * roughly: r2 only ranks lanes by them. */
static void module_describe(void)
{
    mca_btl_base_module_t *btl = &shm_module;

    *btl = (mca_btl_base_module_t){
        .btl_component = &mca_btl_shm_component,
        .btl_add_procs = shm_add_procs,
        .btl_del_procs = shm_del_procs,
        .btl_finalize = shm_finalize,
        .btl_alloc = shm_send_alloc,
        .btl_free = shm_send_free,
        .btl_prepare_src = shm_send_prepare,
        .btl_send = shm_send_start,
        .btl_sendi = shm_send_immediate,
        .btl_put = shm_remote_put,
        .btl_get = shm_remote_get,
        .btl_atomic_op = shm_remote_atomic,
        .btl_atomic_fop = shm_remote_fetch_atomic,
        .btl_atomic_cswap = shm_remote_compare_swap,
        .btl_register_mem = registered_add_inside,
        .btl_deregister_mem = registered_remove,
        .btl_register_error = lane_error_to,
    };
    btl->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH;
    btl->btl_latency = 1;
    btl->btl_bandwidth = 40000;
    btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
                     MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS |
                     COMPAT_BTL_FLAGS_REMOTE_COMPLETION;
    btl->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND |
                            MCA_BTL_ATOMIC_SUPPORTS_OR | MCA_BTL_ATOMIC_SUPPORTS_XOR |
                            MCA_BTL_ATOMIC_SUPPORTS_LAND | MCA_BTL_ATOMIC_SUPPORTS_LOR |
                            MCA_BTL_ATOMIC_SUPPORTS_LXOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP |
                            MCA_BTL_ATOMIC_SUPPORTS_CSWAP | MCA_BTL_ATOMIC_SUPPORTS_32BIT |
                            MCA_BTL_ATOMIC_SUPPORTS_GLOB;
    btl->btl_registration_handle_size = sizeof(struct mca_btl_base_registration_handle_t);
    btl->btl_get_limit = btl->btl_put_limit = SIZE_MAX;
    btl->btl_get_alignment = btl->btl_put_alignment = 0;
    btl->btl_get_local_registration_threshold = SIZE_MAX;
    btl->btl_put_local_registration_threshold = SIZE_MAX;
    btl->btl_eager_limit = 4096;
    btl->btl_rndv_eager_limit = 8192;
    btl->btl_max_send_size = 16384 + HEADERS_BYTES;
    btl->btl_rdma_pipeline_send_length = btl->btl_eager_limit;
    btl->btl_rdma_pipeline_frag_size = 1 << 20;
    btl->btl_min_rdma_pipeline_size = SIZE_MAX;
}

static int shm_register(void)
{
    module_describe();
    return component_register(&mca_btl_shm_component, params, &shm_module);
}

/* --- parameters --- */

static bool size_read(const char *name, const char *text, uint64_t *bytes)
{
    struct error_text error;
    bool good = number_parse_size(text, bytes, &error);

    if (!good)
        SHM_SAY("btl_shm_%s: %s.", name, error.text);
    return good;
}

#define MEMORY_NODE_MAX   (448ull << 20) /* for the rings of all local processes of a job */
#define MEMORY_AUTO_MAX   (64ull << 20)
#define MEMORY_MOST       (4ull << 30) /* bounds the address space */
#define MEMORY_LIMIT_PART 8            /* of a cgroup's limit, that rings may use */

static bool ring_size_read(void)
{
    const struct ring_sizes sizes = last_cache_ring_sizes_here(shm.peers_expected, shm.crowded);
    uint64_t bytes = sizes.most;

    if (strcmp(shm.ring_bytes_text, "auto") != 0 &&
        !size_read("ring_bytes", shm.ring_bytes_text, &bytes))
        return false;
    if (bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX || (bytes & (bytes - 1)) != 0) {
        SHM_SAY("btl_shm_ring_bytes is \"%s\"; it can be a power of two from 16k to 4m, or auto.",
                shm.ring_bytes_text);
        return false;
    }
    shm.ring_lines_max = (uint32_t) (bytes / RING_LINE_BYTES);
    shm.ring_lines_usual = (uint32_t) (sizes.usual < bytes ? sizes.usual : bytes) / RING_LINE_BYTES;
    return true;
}

/* The channel that each local peer may have: as large as memory_max holds for all of them. */
static void fair_share_find(void)
{
    uint32_t lines = shm.ring_lines_max;

    while (lines > RING_BYTES_MIN / RING_LINE_BYTES &&
           shm.memory_max / shm.peers_expected < channel_bytes(lines))
        lines /= 2;
    shm.fair_bytes = channel_bytes(lines);
}

/* Small rings are made whatever the limit; the program should not learn of it by being killed. */
static void limit_check(uint64_t limit)
{
    uint64_t peers = shm.peers_expected, least = peers * peers * sizeof(struct connection);

    shm.memory_is_short = limit / MEMORY_LIMIT_PART < least;
    if (shm.memory_is_short && opal_process_info.my_local_rank == 0)
        SHM_SAY("this control group may use %llu MiB (memory.max), which is little for %u "
                "processes: the small rings between all of them take %llu MiB.",
                (unsigned long long) (limit >> 20), shm.peers_expected,
                (unsigned long long) (least >> 20));
}

static bool sizes_read(void)
{
    double allowed = cgroup_memory(NULL, NULL);
    uint64_t memory_max = MEMORY_NODE_MAX,
             limit = allowed < 0x1p63 ? (uint64_t) allowed : UINT64_MAX;

    shm.peers_expected = (uint32_t) opal_process_info.num_local_peers + 1;
    shm.crowded = shm.peers_expected > crowd_processors(shm.peers_expected);
    shm.connection_count = shm.peers_expected + OTHER_JOBS_CONNECTIONS;
    if (shm.connection_count > SEGMENT_CONNECTIONS_MAX)
        shm.connection_count = SEGMENT_CONNECTIONS_MAX;
    if (strcmp(shm.memory_max_text, "auto") != 0) {
        if (!size_read("memory_max", shm.memory_max_text, &memory_max))
            return false;
    } else {
        if (limit / MEMORY_LIMIT_PART < memory_max)
            memory_max = limit / MEMORY_LIMIT_PART;
        memory_max /= shm.peers_expected;
        if (memory_max > MEMORY_AUTO_MAX)
            memory_max = MEMORY_AUTO_MAX;
    }
    limit_check(limit);
    shm.memory_max = memory_max < MEMORY_MOST ? memory_max : MEMORY_MOST;
    if (!ring_size_read())
        return false;
    fair_share_find();
    return true;
}

/* Messages are no longer than the rings of every process can take. Fragments are as long as without
 * that: Open MPI's get by messages, from 5.0 on, has the peer answer with messages as long as those
 * of the process that asks, whose rings may be larger. They go in pieces. */
static void limits_clip(void)
{
    const size_t smallest = ring_length_max(RING_BYTES_MIN / RING_LINE_BYTES),
                 usual = ring_length_max(shm.ring_lines_usual),
                 largest = ring_length_max(RING_BYTES_MAX / RING_LINE_BYTES);

    component_limits_clip(&shm_module, SHM_FRAG_SMALL, largest);
    shm.fragment_bytes = shm_module.btl_max_send_size;
    component_limits_clip(&shm_module, SHM_FRAG_SMALL, usual > smallest ? usual : smallest);
}

/* --- beginning --- */

static int lists_init(void)
{
    OBJ_CONSTRUCT(&shm.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&shm.channel_lock, opal_mutex_t);
    peer_list_open(&shm.pending);
    registered_init();
    return shm_remote_init() |
           fragments_open(&shm.frags_small, sizeof(struct shm_frag) + SHM_FRAG_SMALL, 0, 0, 16,
                          NULL) |
           fragments_open(&shm.frags_large, sizeof(struct shm_frag) + shm.fragment_bytes, 0, 0, 16,
                          NULL);
}

static void lists_finish(void)
{
    shm_remote_finish();
    registered_finish();
    OBJ_DESTRUCT(&shm.frags_small);
    OBJ_DESTRUCT(&shm.frags_large);
    peer_list_close(&shm.pending);
    OBJ_DESTRUCT(&shm.channel_lock);
    OBJ_DESTRUCT(&shm.lock);
}

static bool begin(void)
{
    if (!param_check(&mca_btl_shm_component.btl_version, params) || !sizes_read())
        return false;
    limits_clip();
    int error = shm_identity_fill(&shm.record);
    if (error != 0) {
        SHM_SAY("no random numbers from the system: %s. Other lanes are used, if there are any.",
                strerror(error));
        return false;
    }
    if (!shm_own_segment_ready(SEGMENT_MEMFD))
        return false;
    shm.record.fd = shm_identity_is_open() ? shm.segments[SEGMENT_MEMFD].fd : -1;
    shm.part_tried = false;
    atomic_store_explicit(&shm.copies_work, false, memory_order_relaxed);
    shm_own_part_make();
    atomic_store_explicit(&shm.bells, BELLS_AND_RINGS, memory_order_relaxed);
    if (shm.single_copy.number != SHM_COPY_NONE)
        shm.readers_allowed = readers_allow();
    return true;
}

static void readers_end(void)
{
    if (shm.readers_allowed)
        readers_forbid();
    shm.readers_allowed = false;
}

static mca_btl_base_module_t **shm_init(int *count, bool progress_threads, bool mpi_threads)
{
    *count = 0;
    if (!named_btl_is_wanted("shm") || !begin())
        return NULL;
    mca_btl_base_module_t *own = &shm_module, **modules = NULL;
    if (lists_init() == OPAL_SUCCESS)
        modules = component_offer(&mca_btl_shm_component, &shm.record, sizeof(shm.record), &own, 1,
                                  count);
    if (!modules) {
        shm_own_segments_destroy();
        readers_end();
        return NULL;
    }
    shm.finalized = false;
    shm.memory_used = 0;
    shm.channel_count = 0;
    return modules;
}

/* --- end --- */

static int shm_finalize(mca_btl_base_module_t *btl)
{
    if (shm.finalized)
        return OPAL_SUCCESS;
    shm.finalized = true;
    (void) lane_error_to(btl, NULL);
    shm_own_segments_are(SEGMENT_FINALIZED);
    shm_peers_close();
    shm_own_segments_destroy();
    readers_end();
    lists_finish();
    return OPAL_SUCCESS;
}
