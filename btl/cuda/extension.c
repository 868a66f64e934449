/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension: what Multilane's PML uses beside btl.h. */
#include "btl/cuda/cuda.h"

#include <string.h>

/* It depends on the device: the PML measures it. */
static void cost_set(struct multilane_lane_cost *cost)
{
    cost->range_count = 1;
    cost->ranges[0] = (struct model_lane_range){.largest_bytes = UINT64_MAX};
}

static int extension_attributes(mca_btl_base_module_t *btl, cuda_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    (void) btl;
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
