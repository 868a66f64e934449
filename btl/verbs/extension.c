/* SPDX-License-Identifier: BSD-3-Clause */
/* The extension: what Multilane's PML uses beside btl.h. */
#include "btl/verbs/verbs.h"

#include <string.h>

static int extension_attributes(mca_btl_base_module_t *btl, verbs_peer_t *peer,
                                struct multilane_lane_attributes *out)
{
    if (!btl)
        return verbs_cost_expect(out) ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
    struct verbs_module *module = module_of(btl);

    memset(out, 0, sizeof(*out));
    /* A reliable connection acknowledges data that has reached the other end's memory. */
    bool is_dead = atomic_load_explicit(&module->dead, memory_order_relaxed);
    out->capabilities = MULTILANE_CAN_DELIVER | MULTILANE_CAN_FENCE | MULTILANE_CAN_BREAK |
                        (is_dead ? 0 : MULTILANE_CAN_RENEW) |
                        (!module->dmabuf.pd ? 0 : MULTILANE_CAN_DEVICE_MEMORY);
    out->memory = MODEL_MEMORY_HOST | (!module->dmabuf.pd ? 0 : MODEL_MEMORY_CUDA);
    out->capacity_group = module->device_group == 0 ? 0 : 100 + module->device_group;
    out->short_max_bytes = module->inline_max;
    out->copied_max_bytes = btl->btl_max_send_size;
    out->zcopied_max_bytes = btl->btl_get_limit;
    verbs_cost_fill(module, &peer->port.address, out);
    memcpy(out->device, module->device, sizeof(module->device));
    return OPAL_SUCCESS;
}

_Static_assert(sizeof(((struct multilane_lane_attributes *) 0)->device) >= CHOICE_NAME_BYTES,
               "a device's name fits");

static int extension_poll(mca_btl_base_module_t *btl, verbs_peer_t *peer)
{
    return verbs_progress_module(module_of(btl));
}

MULTILANE_EXTENSION_DEFINE(verbs) = {
    MULTILANE_EXTENSION_HEAD,
    .attributes = extension_attributes,
    .poll = extension_poll,
    .fence = verbs_fence,
    .flush = verbs_flush_start,
    .prepare_in_place = verbs_work_in_place,
    .fence_ask = verbs_fence_message,
    .fence_hear = verbs_fence_message_heard,
    .return_to = verbs_return_to,
    .quiet_ms = verbs_quiet_ms,
    .under_way = verbs_cost_under_way,
};
