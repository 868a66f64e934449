/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension: what Multilane's PML uses beside btl.h. */
#include "btl/cuda/cuda.h"

#include <string.h>

/* The start of a copy and its end by an event, on current devices. From published figures, not
 * measured here; used until the user gives better values. */
static const struct multilane_lane_range get_range = {.largest_bytes = UINT64_MAX,
                                                      .latency_s = 1e-6,
                                                      .bandwidth_bytes_s = 100e9,
                                                      .overhead_send_s = 2e-6,
                                                      .overhead_receive_s = 4e-6,
                                                      .registration_s = 1e-6,
                                                      .registration_s_byte = 0};

/* The ring: four latencies for RTS and RTR through shared memory; three overheads for a kernel at
 * each end, started and ended like a copy, both at the same time; the rate of one block of threads.
 * An estimate, not measured on a device. */
static const struct multilane_lane_range ring_range = {.largest_bytes = UINT64_MAX,
                                                       .latency_s = 0.5e-6,
                                                       .bandwidth_bytes_s = 4e9,
                                                       .overhead_send_s = 1e-6,
                                                       .overhead_receive_s = 1.5e-6,
                                                       .registration_s = 0,
                                                       .registration_s_byte = 0};

static void cost_set(struct multilane_lane_cost *cost, const struct multilane_lane_range *range)
{
    cost->range_count = 1;
    cost->ranges[0] = *range;
    user_attributes_apply(&cuda.user, cost->ranges, 1);
}

static int extension_attributes(mca_btl_base_module_t *btl, cuda_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    (void) btl;
    memset(out, 0, sizeof(*out));
    if (!peer)
        return OPAL_ERR_NOT_AVAILABLE;
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_DEVICE_MEMORY;
    out->memory = MULTILANE_MEMORY_CUDA;
    out->zcopied_max_bytes = SIZE_MAX;
    cost_set(&out->cost[MULTILANE_BY_GET], &get_range);
    cost_set(&out->cost[MULTILANE_BY_PUT], &get_range);
    if (cuda_ring_is_offered(peer)) {
        out->capabilities |= MULTILANE_CAN_DEVICE_RING;
        cost_set(&out->cost[MULTILANE_BY_SEND], &ring_range);
    }
    strcpy(out->device, "ipc");
    return OPAL_SUCCESS;
}

MULTILANE_EXTENSION_DEFINE(cuda) = {
    MULTILANE_EXTENSION_HEAD,    .attributes = extension_attributes, .ring_offer = cuda_ring_offer,
    .ring_take = cuda_ring_take, .ring_send = cuda_ring_send,        .ring_stop = cuda_ring_stop,
};
