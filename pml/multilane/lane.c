/* SPDX-License-Identifier: BSD-3-Clause */
/* What BTLs do differently, each case handled once. */
#include "lane.h"

#include <stdlib.h>
#include <string.h>

#include "common/compat/order.h"
#include "delivery.h"
#include "errors.h"
#include "lost.h"
#include "multilane.h"
#include "wire.h"

/* The BTL frees the descriptor when it is done with it; nobody waits for it. */
#define FIRE_AND_FORGET (MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)

static void forget(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   mca_btl_base_descriptor_t *descriptor, int status)
{
    /* Some BTLs call back without having been asked to, and none checks that there is a function.
     * An error is all that some ever say of a lane that broke. */
    order_acquired(descriptor);
    struct lane *lane = descriptor->des_cbdata;
    order_released(descriptor);
    (void) btl;
    (void) endpoint;
    if (OPAL_UNLIKELY(status != OPAL_SUCCESS))
        lane_failed(lane, "could not deliver a message that it had accepted", status);
}

int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor)
{
    order_released(descriptor); /* to whom the BTL gives it next */
    int rc = lane->btl->btl_send(lane->btl, lane->endpoint, descriptor, WIRE_TAG);
    /* 1: sent; 0: under way; busy: queued by the BTL, which is under way too. */
    if (rc >= 0 || rc == OPAL_ERR_RESOURCE_BUSY)
        return OMPI_SUCCESS;
    lane->btl->btl_free(lane->btl, descriptor);
    return rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE ? LANE_AGAIN : rc;
}

int lane_send_immediately(struct lane *lane, const void *bytes, size_t length)
{
    /* It takes all of it as "header": so no convertor is needed. A refusal means that the BTL has
     * no room, not that the bytes are too many: the plan keeps to its limit. */
    if (OPAL_UNLIKELY(!lane->sendi))
        return lane->framed ? delivery_send(lane, bytes, length, false) : LANE_AGAIN;
    int rc = lane->sendi(lane->btl, lane->endpoint, NULL, (void *) bytes, length, 0,
                         MCA_BTL_NO_ORDER, FIRE_AND_FORGET, WIRE_TAG, NULL);
    return OPAL_LIKELY(rc == OPAL_SUCCESS) ? OMPI_SUCCESS : LANE_AGAIN;
}

/* Through a descriptor of the lane's. */
static int lane_send_copied(struct lane *lane, const void *bytes, size_t length)
{
    mca_btl_base_module_t *btl = lane->btl;
    mca_btl_base_descriptor_t *descriptor =
        btl->btl_alloc(btl, lane->endpoint, MCA_BTL_NO_ORDER, length, FIRE_AND_FORGET);
    if (!descriptor)
        return LANE_AGAIN;
    order_acquired(descriptor);
    if (descriptor->des_segments[0].seg_len < length) {
        btl->btl_free(btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    memcpy(descriptor->des_segments[0].seg_addr.pval, bytes, length);
    descriptor->des_segments[0].seg_len = length;
    descriptor->des_cbfunc = forget;
    descriptor->des_cbdata = lane;
    return lane_send_descriptor(lane, descriptor);
}

int lane_send_copy(struct lane *lane, const void *bytes, size_t length)
{
    int rc = lane_send_immediately(lane, bytes, length);
    if (OPAL_LIKELY(rc == OMPI_SUCCESS) || lane->framed)
        return rc;
    return lane_send_copied(lane, bytes, length);
}

int lane_send_plain(struct lane *lane, const void *bytes, size_t length)
{
    mca_btl_base_module_t *btl = lane->btl;
    if (btl->btl_sendi &&
        btl->btl_sendi(btl, lane->endpoint, NULL, (void *) bytes, length, 0, MCA_BTL_NO_ORDER,
                       FIRE_AND_FORGET, WIRE_TAG, NULL) == OPAL_SUCCESS)
        return OMPI_SUCCESS;
    return lane_send_copied(lane, bytes, length);
}

/* A control message that waits for its lane. */
struct control {
    struct pending pending;
    struct lane *lane;
    size_t length;
    unsigned char bytes[];
};

static int control_retry(struct pending *pending)
{
    struct control *control = (struct control *) pending;
    int rc = peer_is_lost(control->lane->peer)
                 ? OMPI_SUCCESS
                 : lane_send_copy(control->lane, control->bytes, control->length);
    if (rc == LANE_AGAIN)
        return rc;
    if (rc != OMPI_SUCCESS)
        lane_failed(control->lane, "could not send a control message", rc);
    free(control);
    return OMPI_SUCCESS;
}

int lane_send_control(struct lane *lane, const void *bytes, size_t length)
{
    int rc = lane_send_copy(lane, bytes, length);
    if (OPAL_LIKELY(rc == OMPI_SUCCESS))
        return rc;
    if (rc != LANE_AGAIN) {
        lane_failed(lane, "could not send a control message", rc);
        return rc;
    }
    struct control *control = malloc(sizeof(*control) + length);
    if (!control)
        return OMPI_ERR_OUT_OF_RESOURCE;
    control->pending.retry = control_retry;
    control->lane = lane;
    control->length = length;
    memcpy(control->bytes, bytes, length);
    pending_add(&multilane.pending, &control->pending);
    return OMPI_SUCCESS;
}

int lane_fence(struct lane *lane)
{
    if (lane_state(lane) != LANE_BROKEN)
        return OMPI_SUCCESS; /* made anew, so the old one is over at both ends */
    int rc = lane->extension->fence(lane->btl, lane->endpoint);
    return rc == OPAL_ERR_RESOURCE_BUSY ? LANE_AGAIN : rc;
}

bool lane_renew(struct lane *lane)
{
    opal_proc_t *proc = &lane->peer->proc->super;
    struct mca_btl_base_endpoint_t *endpoint = NULL;
    if (lane->btl->btl_add_procs(lane->btl, 1, &proc, &endpoint, NULL) != OPAL_SUCCESS ||
        endpoint != lane->endpoint)
        return false;
    /* What introduced it to the peer may have been lost with it. Relaxed: see rma.c. */
    __atomic_store_n(&lane->introduced, false, __ATOMIC_RELAXED);
    return true;
}

int lane_send_slot(struct lane *lane, const void *bytes, size_t length)
{
    if (!lane->extension || !lane->extension->slot_send ||
        lane->extension->slot_send(lane->btl, lane->endpoint, bytes, length, WIRE_TAG) !=
            OPAL_SUCCESS)
        return LANE_AGAIN;
    return OMPI_SUCCESS;
}

int lane_send_expected(struct lane *lane, const void *bytes, size_t length)
{
    int rc = lane->framed ? delivery_send(lane, bytes, length, true)
                          : lane_send_slot(lane, bytes, length);
    return rc == OMPI_SUCCESS ? rc : lane_send_control(lane, bytes, length);
}

void lane_expect(struct lane *lane, bool expects)
{
    if (lane->extension && lane->extension->slot_expect)
        lane->extension->slot_expect(lane->btl, lane->endpoint, expects);
}

static bool is_aligned(uint64_t value, size_t alignment)
{
    return alignment < 2 || value % alignment == 0;
}

bool lane_can_get(const struct lane *lane, uint64_t remote, const void *local, size_t size)
{
    size_t alignment = lane->btl->btl_get_alignment;
    return (lane->flags & MCA_BTL_FLAGS_GET) && lane->btl->btl_get &&
           is_aligned(remote, alignment) && is_aligned((uintptr_t) local, alignment) &&
           is_aligned(size, alignment);
}

bool lane_can_put(const struct lane *lane)
{
    return (lane->flags & MCA_BTL_FLAGS_PUT) && lane->btl->btl_put &&
           lane->btl->btl_put_alignment < 2;
}

int lane_register(struct lane *lane, void *address, size_t size, uint32_t access,
                  struct registration *registration)
{
    registration->lane = lane;
    registration->handle = NULL;
    if (!lane->btl->btl_register_mem)
        return OMPI_SUCCESS;
    registration->handle =
        lane->btl->btl_register_mem(lane->btl, lane->endpoint, address, size, access);
    if (registration->handle)
        return OMPI_SUCCESS;
    registration->lane = NULL;
    return LANE_AGAIN;
}

int lane_flush(const struct registration *registration, const void *address, size_t size,
               multilane_flush_done done, void *context)
{
    const struct lane *lane = registration->lane;
    return lane->extension->flush(lane->btl, lane->endpoint, registration->handle, address, size,
                                  done, context);
}

void lane_deregister(struct registration *registration)
{
    if (registration->lane && registration->handle)
        registration->lane->btl->btl_deregister_mem(registration->lane->btl, registration->handle);
    registration->lane = NULL;
    registration->handle = NULL;
}
