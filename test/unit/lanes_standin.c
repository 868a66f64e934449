/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies around lanes and plans: BTLs, the BML's tables, a clock. */
#include "lanes_standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parameters.h"
#include "lane/lane.h"

uint64_t standin_now_ns = 1000000000;
unsigned standin_said, standin_failures;
char standin_sentence[512];
bool standin_expects_failures;
mca_btl_base_tag_t standin_tag;
bool (*standin_takes)(const mca_btl_base_module_t *btl,
                      const struct mca_btl_base_endpoint_t *endpoint, const unsigned char *bytes,
                      size_t length);

/* Named by the product; Open MPI reads it. */
mca_pml_base_component_t mca_pml_multilane_component;

uint64_t clock_now_ns(void)
{
    return standin_now_ns;
}

/* Open MPI's own need a process that was initialised. */
__attribute__((visibility("default"))) void opal_output(int stream, const char *format, ...);

void opal_output(int stream, const char *format, ...)
{
    va_list values;
    (void) stream;
    va_start(values, format);
    vsnprintf(standin_sentence, sizeof(standin_sentence), format, values);
    va_end(values);
    standin_said++;
    fprintf(stderr, "%s\n", standin_sentence);
}

static __typeof__(opal_get_proc_hostname(NULL)) standin_hostname(const opal_proc_t *proc)
{
    (void) proc;
    return NULL;
}

/* A variable from Open MPI 5.0 on, a function before. */
#if COMPAT_SERIES >= 50000
static void hostname_replace(void)
{
    opal_get_proc_hostname = standin_hostname;
}
#else
__attribute__((visibility("default"))) char *opal_get_proc_hostname(const opal_proc_t *proc);

char *opal_get_proc_hostname(const opal_proc_t *proc)
{
    return standin_hostname(proc);
}

static void hostname_replace(void)
{
}
#endif

/* The end of a lane toward one peer: it keeps what was last said there. */
struct mca_btl_base_endpoint_t {
    struct wire_received said;
    uint32_t introduced; /* plus 1 */
};

/* What it sends is there at once. */
struct fragment {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segment;
    unsigned char bytes[];
};

static mca_btl_base_descriptor_t *standin_alloc(mca_btl_base_module_t *btl,
                                                struct mca_btl_base_endpoint_t *endpoint,
                                                uint8_t order, size_t size, uint32_t flags)
{
    struct fragment *fragment = malloc(sizeof(*fragment) + size);
    (void) btl;
    (void) endpoint;
    (void) order;
    memset(fragment, 0, sizeof(*fragment));
    fragment->segment.seg_addr.pval = fragment->bytes;
    fragment->segment.seg_len = size;
    fragment->super.des_segments = &fragment->segment;
    fragment->super.des_segment_count = 1;
    fragment->super.des_flags = flags;
    return &fragment->super;
}

static int standin_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    (void) btl;
    free(descriptor);
    return OPAL_SUCCESS;
}

/* The message is packed behind the room for its header. */
static mca_btl_base_descriptor_t *standin_prepare_src(mca_btl_base_module_t *btl,
                                                      struct mca_btl_base_endpoint_t *endpoint,
                                                      struct opal_convertor_t *convertor,
                                                      uint8_t order, size_t reserve, size_t *size,
                                                      uint32_t flags)
{
    mca_btl_base_descriptor_t *descriptor =
        standin_alloc(btl, endpoint, order, reserve + *size, flags);
    struct iovec iov = {.iov_base =
                            (unsigned char *) descriptor->des_segments[0].seg_addr.pval + reserve,
                        .iov_len = *size};
    uint32_t count = 1;
    opal_convertor_pack(convertor, &iov, &count, size);
    descriptor->des_segments[0].seg_len = reserve + *size;
    return descriptor;
}

static int standin_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    const mca_btl_base_segment_t *segment = descriptor->des_segments;
    const struct wire_base *base = segment->seg_addr.pval;
    standin_tag = tag;
    if (standin_takes && !standin_takes(btl, endpoint, segment->seg_addr.pval, segment->seg_len))
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    if (base->type == WIRE_RECEIVED)
        memcpy(&endpoint->said, base + 1, sizeof(endpoint->said));
    if (base->type == WIRE_LANE) {
        memcpy(&endpoint->introduced, base + 1, sizeof(endpoint->introduced));
        endpoint->introduced++;
    }
    descriptor->des_cbfunc(btl, endpoint, descriptor, OPAL_SUCCESS);
    free(descriptor);
    return 1;
}

uint64_t standin_reported(const struct lane *lane)
{
    return lane->endpoint->said.bytes;
}

uint32_t standin_introduced(const struct lane *lane)
{
    return lane->endpoint->introduced;
}

static void failure(const char *name, const char *what, int rc)
{
    standin_failures++;
    if (standin_expects_failures)
        return;
    fprintf(stderr, "lane %s %s: %d\n", name, what, rc);
    abort();
}

static void lane_failure(struct lane *lane, const char *what, int rc)
{
    failure(lane_name(lane), what, rc);
}

static void btl_failure(mca_btl_base_module_t *btl, const char *what, int rc)
{
    failure(lane_name_of(btl), what, rc);
}

mca_btl_base_module_t *standin_btl(const char *name, uint32_t bandwidth)
{
    mca_btl_base_component_t *component = calloc(1, sizeof(*component));
    mca_btl_base_module_t *btl = calloc(1, sizeof(*btl));
    mca_btl_base_selected_module_t *selected = OBJ_NEW(mca_btl_base_selected_module_t);
    snprintf(component->btl_version.mca_component_name,
             sizeof(component->btl_version.mca_component_name), "%s", name);
    btl->btl_component = component;
    btl->btl_flags = MCA_BTL_FLAGS_SEND;
    btl->btl_bandwidth = bandwidth;
    btl->btl_alloc = standin_alloc;
    btl->btl_free = standin_free;
    btl->btl_prepare_src = standin_prepare_src;
    btl->btl_send = standin_send;
    btl->btl_eager_limit = 64 << 10;
    btl->btl_max_send_size = 128 << 10;
    selected->btl_component = component;
    selected->btl_module = btl;
    opal_list_append(&mca_btl_base_modules_initialized, &selected->super);
    return btl;
}

struct peer *standin_peer(void)
{
    static struct {
        struct peer *peer;
        ompi_proc_t *proc;
    } all[4096]; /* so that none of them counts as lost memory */
    static uint32_t count;
    ompi_proc_t *proc = malloc(sizeof(*proc));
    mca_bml_base_endpoint_t *endpoint = OBJ_NEW(mca_bml_base_endpoint_t);
    memset(proc, true, sizeof(*proc)); /* it lives, where Open MPI knows: see peer_is_gone */
    OBJ_CONSTRUCT(&proc->super.super, opal_list_item_t); /* it is only counted */
    proc->super.proc_flags = 0;
    proc->super.proc_convertor = NULL;
    proc->super.proc_name = (opal_process_name_t){.vpid = ++count};
    if (count == sizeof(all) / sizeof(all[0]))
        abort();
    memset(&proc->proc_endpoints, 0, sizeof(proc->proc_endpoints));
    mca_bml_base_btl_array_reserve(&endpoint->btl_eager, MODEL_LANES_MAX);
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, MODEL_LANES_MAX);
    proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    all[count].proc = proc;
    return all[count].peer = peer_new(proc->super.proc_name, proc);
}

void standin_reach(struct peer *peer, mca_btl_base_module_t *btl)
{
    mca_bml_base_endpoint_t *endpoint = peer->proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    struct mca_btl_base_endpoint_t *endpoint_of_lane = calloc(1, sizeof(*endpoint_of_lane));
    mca_bml_base_btl_array_t *arrays[] = {&endpoint->btl_eager, &endpoint->btl_send};
    for (int i = 0; i < 2; i++) {
        mca_bml_base_btl_t *bml_btl = mca_bml_base_btl_array_insert(arrays[i]);
        bml_btl->btl = btl;
        bml_btl->btl_endpoint = endpoint_of_lane;
        bml_btl->btl_flags = btl->btl_flags;
    }
}

void standin_count_failures(void)
{
    lane_events = (struct lane_events){.failed = lane_failure, .btl_failed = btl_failure};
}

void standin_surround(void)
{
    parameters.profile = "none";
    parameters.bias = 0.99;
    parameters.failover = false; /* messages are not kept, unless the test says so */
    parameters.queued_max_bytes = 1 << 20;
    OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
}

void standin_begin(void)
{
    hostname_replace();
    standin_surround();
    standin_count_failures();
    OBJ_CONSTRUCT(&multilane.lock, opal_mutex_t);
    sent_fragments_init();
}
