/* SPDX-License-Identifier: BSD-3-Clause */
/* Stand-ins for what lies around lanes and plans: BTLs, the BML's tables, the protocols' functions,
 * and the sending of reports. */
#include "lanes_standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "delivery/delivery.h"
#include "lane/departure.h"
#include "base/parameters.h"
#include "protocol/common.h"
#include "liveness/watch.h"

struct multilane multilane;
uint64_t standin_now_ns = 1000000000;

uint64_t clock_now_ns(void)
{
    return standin_now_ns;
}

struct parameters parameters = {.lane_attr = NULL, .profile = "none", .bias = 0.99};

static const struct protocol standin_protocols[MODEL_PROTOCOLS] = {
    {.name = "eager-short"}, {.name = "eager-copy"}, {.name = "eager-zcopy"}, {.name = "rndv-am"},
    {.name = "rndv-get"},    {.name = "rndv-put"},   {.name = "rndv-both"}};
const struct protocol *const protocols[MODEL_PROTOCOLS] = {
    &standin_protocols[0], &standin_protocols[1], &standin_protocols[2], &standin_protocols[3],
    &standin_protocols[4], &standin_protocols[5], &standin_protocols[6]};
const struct protocol rndv_device = {.name = "rndv-get"};

/* Open MPI's own needs a process that was initialised. */
__attribute__((visibility("default"))) void opal_output(int stream, const char *format, ...);

void opal_output(int stream, const char *format, ...)
{
    va_list values;
    (void) stream;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
}

/* The end of a lane toward one peer: it keeps what was last said there. */
struct mca_btl_base_endpoint_t {
    uint64_t reported;
    uint32_t introduced; /* plus 1 */
};

/* What it sends is there at once. */
struct fragment {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segment;
    unsigned char bytes[256];
};

static mca_btl_base_descriptor_t *standin_alloc(mca_btl_base_module_t *btl,
                                                struct mca_btl_base_endpoint_t *endpoint,
                                                uint8_t order, size_t size, uint32_t flags)
{
    static struct fragment fragment; /* one at a time */
    (void) btl;
    (void) endpoint;
    (void) order;
    if (size > sizeof(fragment.bytes))
        abort();
    fragment.segment.seg_addr.pval = fragment.bytes;
    fragment.segment.seg_len = size;
    fragment.super.des_segments = &fragment.segment;
    fragment.super.des_segment_count = 1;
    fragment.super.des_flags = flags;
    return &fragment.super;
}

static int standin_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    const struct wire_base *base = descriptor->des_segments[0].seg_addr.pval;
    (void) tag;
    if (base->type == WIRE_SEEN)
        memcpy(&endpoint->reported, base + 1, sizeof(endpoint->reported));
    if (base->type == WIRE_LANE) {
        memcpy(&endpoint->introduced, base + 1, sizeof(endpoint->introduced));
        endpoint->introduced++;
    }
    descriptor->des_cbfunc(btl, endpoint, descriptor, OPAL_SUCCESS);
    return 1;
}

/* No message is kept here. */
int delivery_send(struct lane *lane, const void *bytes, size_t length, bool is_expected,
                  lane_left left, void *owner)
{
    (void) lane;
    (void) bytes;
    (void) length;
    (void) is_expected;
    (void) left;
    (void) owner;
    abort();
}

void delivery_park(struct delivery *delivery)
{
    (void) delivery;
    abort();
}

void watch_alone(struct lane *lane)
{
    (void) lane;
}

uint64_t standin_reported(const struct lane *lane)
{
    return lane->endpoint->reported;
}

uint32_t standin_introduced(const struct lane *lane)
{
    return lane->endpoint->introduced;
}

void lane_failed(struct lane *lane, const char *what, int rc)
{
    fprintf(stderr, "lane %d %s: %d\n", lane->index, what, rc);
    abort();
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
    static struct peer *all; /* so that none of them counts as lost memory */
    struct peer *peer = calloc(1, sizeof(*peer));
    peer->next_foreign = all;
    all = peer;
    mca_bml_base_endpoint_t *endpoint = OBJ_NEW(mca_bml_base_endpoint_t);
    mca_bml_base_btl_array_reserve(&endpoint->btl_eager, MODEL_LANES_MAX);
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, MODEL_LANES_MAX);
    peer->proc = calloc(1, sizeof(*peer->proc));
    peer->proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    return peer;
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

void standin_begin(void)
{
    OBJ_CONSTRUCT(&multilane.lock, opal_mutex_t);
    pending_open();
    departures_init();
    OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
}
