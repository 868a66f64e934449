/* SPDX-License-Identifier: BSD-3-Clause */
/* What this BTL offers Multilane's PML beside btl.h. */
#include "btl/verbs/verbs.h"

#include <math.h>
#include <string.h>

#include "opal/runtime/opal_params.h"

/* Estimates until a profile or the user says better: what such devices are commonly measured to
 * take, not what this one was. The bandwidth is the port's, less headers. */
struct estimate {
    double latency_s;
    double overhead_s; /* at each end */
    double read_s;     /* the further way of a get's request */
};

static const struct estimate estimate_infiniband = {1.0e-6, 0.2e-6, 0.8e-6};
static const struct estimate estimate_roce = {1.5e-6, 0.2e-6, 1.2e-6};
static const struct estimate estimate_soft = {20e-6, 5e-6, 20e-6};

#define SHARE_OF_WIRE    0.95
#define MEGABITS_UNKNOWN 1000u
#define COPY_BYTES_S     10e9
/* One registration: found in the cache, or made by the system page by page. */
#define CACHED_S          0.3e-6
#define REGISTERED_S      20e-6
#define REGISTERED_S_BYTE (60e-9 / 4096)

static const struct estimate *estimate_of(const struct verbs_module *module, uint8_t link)
{
    if (module->soft)
        return &estimate_soft;
    return CHOICE_INFINIBAND == link ? &estimate_infiniband : &estimate_roce;
}

/* The slower of the two ports is what the lane carries. */
static double wire_bytes_s(const struct choice_address *mine, const struct choice_address *theirs)
{
    uint32_t megabits = mine->megabits;

    if (0 != theirs->megabits && (0 == megabits || theirs->megabits < megabits))
        megabits = theirs->megabits;
    if (0 == megabits)
        megabits = MEGABITS_UNKNOWN;
    return megabits * 1e6 / 8 * SHARE_OF_WIRE;
}

static void cost_set(struct multilane_lane_attributes *out, const struct estimate *estimate,
                     double bandwidth)
{
    /* Without hooks into the memory allocator nothing is cached. */
    bool cached = opal_leave_pinned > 0;
    const struct multilane_lane_range zero_copy = {
        .largest_bytes = UINT64_MAX,
        .latency_s = estimate->latency_s,
        .bandwidth_bytes_s = bandwidth,
        .overhead_send_s = estimate->overhead_s,
        .registration_s = cached ? CACHED_S : REGISTERED_S,
        .registration_s_byte = cached ? 0 : REGISTERED_S_BYTE,
    };

    for (int way = 0; way < MULTILANE_WAYS; way++) {
        struct multilane_lane_range *range = &out->cost[way].ranges[0];

        out->cost[way].range_count = 1;
        *range = zero_copy;
        if (MULTILANE_BY_GET == way)
            range->latency_s += estimate->read_s;
        if (MULTILANE_BY_SEND == way) {
            range->overhead_receive_s = estimate->overhead_s;
            range->registration_s = range->registration_s_byte = 0;
            range->bandwidth_bytes_s = 1 / (1 / bandwidth + 1 / COPY_BYTES_S);
        }
        user_attributes_apply(&verbs.user, range, 1);
    }
}

/* What a lane of this port may have in flight, in messages that are worth a slot. */
uint32_t lane_slot_depth(const struct verbs_module *module, const struct choice_address *address)
{
    struct multilane_lane_attributes attributes = {0};
    const struct multilane_lane_range *put = attributes.cost[MULTILANE_BY_PUT].ranges;
    double round_trip_s, bandwidth;

    if (0 == verbs.slots || module->inline_max < SLOT_BYTES)
        return 0;
    if (0 < verbs.slots)
        return slot_ring_depth(verbs.slots, 1);
    cost_set(&attributes, estimate_of(module, address->link), wire_bytes_s(address, address));
    round_trip_s = 2 * (put->latency_s + put->overhead_send_s);
    bandwidth = 0 == put->bandwidth_bytes_s ? INFINITY : put->bandwidth_bytes_s;
    return slot_ring_depth(bandwidth * round_trip_s, (double) module->super.btl_rndv_eager_limit);
}

static int extension_attributes(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    struct verbs_module *module = module_of(btl);
    const struct choice_address *mine = &verbs.record.ports[module->place].address;

    memset(out, 0, sizeof(*out));
    /* A reliable connection acknowledges what has reached the other end's memory. */
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_FENCE | MULTILANE_CAN_BREAK |
                        (0 == module->slot_depth ? 0 : MULTILANE_CAN_REMOTE_SLOTS) |
                        (NULL == module->dmabuf.pd ? 0 : MULTILANE_CAN_DEVICE_MEMORY);
    out->memory = MULTILANE_MEMORY_HOST | (NULL == module->dmabuf.pd ? 0 : MULTILANE_MEMORY_CUDA);
    out->capacity_group = 0 == module->device_group ? 0 : 100 + module->device_group;
    out->short_max_bytes = module->inline_max;
    out->copied_max_bytes = btl->btl_max_send_size;
    out->zcopied_max_bytes = btl->btl_get_limit;
    out->piece_min_bytes = 16 << 10;
    cost_set(out, estimate_of(module, mine->link), wire_bytes_s(mine, &peer->port.address));
    memcpy(out->device, module->device, sizeof(module->device));
    return OPAL_SUCCESS;
}

_Static_assert(CHOICE_NAME_BYTES <= sizeof(((struct multilane_lane_attributes *) 0)->device),
               "a device's name fits");

static int extension_poll(mca_btl_base_module_t *btl, verbs_peer_t *peer)
{
    (void) peer;
    return progress_module(module_of(btl));
}

extern const struct multilane_extension mca_btl_verbs_multilane_v2;

__attribute__((visibility("default")))
const struct multilane_extension mca_btl_verbs_multilane_v2 = {
    .version = MULTILANE_EXTENSION_VERSION,
    .struct_bytes = sizeof(struct multilane_extension),
    .attributes = extension_attributes,
    .poll = extension_poll,
    .fence = peer_fence,
    .slot_send = slots_send,
    .slot_expect = slots_expect,
    .flush = flush_start,
};
