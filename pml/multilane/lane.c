/* SPDX-License-Identifier: BSD-3-Clause */
/* What BTLs do differently, each case handled once. */
#include "lane.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common/compat/tsan.h"
#include "delivery.h"
#include "errors.h"
#include "multilane.h"
#include "wire.h"

/* The BTL frees the descriptor when it is done with it; nobody waits for it. */
#define FIRE_AND_FORGET (MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)

/* Every descriptor's callback says when its bytes have left: what a BTL returns does not, as vader
 * queues and hands over with the same answer, and tcp hands over or queues by its socket. */
#define WITH_CALLBACK (FIRE_AND_FORGET | MCA_BTL_DES_SEND_ALWAYS_CALLBACK)

int lane_send_descriptor(struct lane *lane, mca_btl_base_descriptor_t *descriptor, lane_left left,
                         void *owner)
{
    struct wire_handle departure;
    if (OPAL_UNLIKELY(!departure_begin(lane, lane->peer, descriptor, left, owner, &departure))) {
        lane->btl->btl_free(lane->btl, descriptor);
        return LANE_AGAIN;
    }
    tsan_release(descriptor); /* to whom the BTL gives it next */
    int rc = lane->btl->btl_send(lane->btl, lane->endpoint, descriptor, WIRE_TAG);
    /* 1: handed over; 0: under way; busy: queued by the BTL, which is under way too. tcp may call
     * back with an error, and return it as well: the owner is told then. */
    if (rc >= 0 || rc == OPAL_ERR_RESOURCE_BUSY || !departure_revoke(departure))
        return LANE_UNDER_WAY;
    /* After an error tcp may have it in a list of its own still: there it stays. */
    if (rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE || lane->extension)
        lane->btl->btl_free(lane->btl, descriptor);
    return rc == OPAL_ERR_TEMP_OUT_OF_RESOURCE ? LANE_AGAIN : rc;
}

int lane_send_packed(struct lane *lane, const void *header, size_t length,
                     opal_convertor_t *convertor, size_t size)
{
    /* A refusal means that the BTL has no room, not that the bytes are too many: the plan keeps to
     * its limit. */
    int rc = lane->sendi(lane->btl, lane->endpoint, convertor, (void *) header, length, size,
                         MCA_BTL_NO_ORDER, FIRE_AND_FORGET, WIRE_TAG, NULL);
    if (OPAL_LIKELY(rc == OPAL_SUCCESS))
        return LANE_LEFT;
    return lane->extension && rc == OPAL_ERR_RESOURCE_BUSY ? LANE_FULL : LANE_AGAIN;
}

int lane_send_immediately(struct lane *lane, const void *bytes, size_t length)
{
    /* It takes all of it as "header": so no convertor is needed. */
    return OPAL_LIKELY(lane->sendi != NULL) ? lane_send_packed(lane, bytes, length, NULL, 0)
                                            : LANE_AGAIN;
}

/* Through a descriptor of the lane's. */
static int lane_send_copied(struct lane *lane, const void *bytes, size_t length, lane_left left,
                            void *owner)
{
    mca_btl_base_module_t *btl = lane->btl;
    mca_btl_base_descriptor_t *descriptor =
        btl->btl_alloc(btl, lane->endpoint, MCA_BTL_NO_ORDER, length, WITH_CALLBACK);
    if (!descriptor)
        return LANE_AGAIN;
    tsan_acquire(descriptor);
    if (descriptor->des_segments[0].seg_len < length) {
        btl->btl_free(btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    memcpy(descriptor->des_segments[0].seg_addr.pval, bytes, length);
    descriptor->des_segments[0].seg_len = length;
    return lane_send_descriptor(lane, descriptor, left, owner);
}

int lane_send_plain(struct lane *lane, const void *bytes, size_t length, lane_left left,
                    void *owner)
{
    mca_btl_base_module_t *btl = lane->btl;
    if (lane->plain_sendi &&
        lane->plain_sendi(btl, lane->endpoint, NULL, (void *) bytes, length, 0, MCA_BTL_NO_ORDER,
                          FIRE_AND_FORGET, WIRE_TAG, NULL) == OPAL_SUCCESS)
        return LANE_LEFT;
    return lane_send_copied(lane, bytes, length, left, owner);
}

/* For what has no owner: accepted is as good as left. */
static int taken(int rc)
{
    return rc == LANE_UNDER_WAY ? OMPI_SUCCESS : rc;
}

int lane_send_copy(struct lane *lane, const void *bytes, size_t length)
{
    return taken(lane->framed ? delivery_send(lane, bytes, length, false, NULL, NULL)
                              : lane_send_plain(lane, bytes, length, NULL, NULL));
}

/* A control message that its lane has refused, or has not handed over yet. */
struct control {
    struct pending pending;
    struct lane *lane;
    lane_left left; /* atomic: null once its owner was told, or where it has none */
    void *owner;
    uint64_t until_ns; /* its owner waits no longer; 0: for ever */
    uint32_t looks;    /* of its owner's patience: a crowded node leaves little of any time */
    uint32_t holders;  /* atomic: the queue of what is pending, and the lane */
    bool is_under_way;
    size_t length;
    unsigned char bytes[];
};

static void control_drop(struct control *control)
{
    /* Release and acquire: who frees it comes behind all who used it. */
    if (__atomic_sub_fetch(&control->holders, 1, __ATOMIC_ACQ_REL) == 0)
        free(control);
}

/* The first to come tells the owner. Acquire and release: between the lane's callback and the
 * queue, which may be in different threads. */
static void control_tell(struct control *control, int status)
{
    lane_left left = __atomic_exchange_n(&control->left, NULL, __ATOMIC_ACQ_REL);
    if (left)
        left(control->owner, status);
}

static void control_left(void *owner, int status)
{
    struct control *control = owner;
    control_tell(control, status);
    control_drop(control);
}

static int control_send(struct control *control)
{
    struct lane *lane = control->lane;
    __atomic_add_fetch(&control->holders, 1, __ATOMIC_RELAXED); /* control_drop orders */
    control->is_under_way = true;
    int rc =
        lane->framed
            ? delivery_send(lane, control->bytes, control->length, false, control_left, control)
            : lane_send_plain(lane, control->bytes, control->length, control_left, control);
    if (rc == LANE_UNDER_WAY)
        return rc;
    control->is_under_way = false;
    control_drop(control);
    return rc;
}

/* So often a message with an owner is looked at before that stops waiting. */
#define LOOKS_LEAST 100

/* Does it still have to be looked at? Its owner is told where that is decided. */
static bool control_waits(struct control *control, int rc)
{
    if (rc != LANE_AGAIN && rc != LANE_UNDER_WAY) {
        if (rc != LANE_LEFT) /* dropped unheard, it would leave the peer waiting for ever */
            lane_failed(control->lane, "could not send a control message", rc);
        control_tell(control, rc);
        return false;
    }
    if (rc == LANE_UNDER_WAY && !__atomic_load_n(&control->left, __ATOMIC_ACQUIRE))
        return false; /* its owner was told: control_tell */
    if (control->until_ns && ++control->looks >= LOOKS_LEAST &&
        clock_now_ns() >= control->until_ns) {
        control_tell(control, OMPI_SUCCESS);
        control->until_ns = 0;
    }
    return rc == LANE_AGAIN || control->until_ns;
}

static int control_retry(struct pending *pending)
{
    struct control *control = (struct control *) pending;
    if (OPAL_UNLIKELY(lost_or_dead(control->lane->peer))) {
        control_tell(control, OMPI_ERR_UNREACH);
        control_drop(control);
        return OMPI_SUCCESS;
    }
    int rc = control->is_under_way ? LANE_UNDER_WAY : control_send(control);
    if (control_waits(control, rc))
        return LANE_AGAIN;
    control_drop(control);
    return OMPI_SUCCESS;
}

/* Null: there is no memory, which gives up the lane: the message is not to be lost unheard. */
static struct control *control_new(struct lane *lane, const void *bytes, size_t length)
{
    struct control *control = malloc(sizeof(*control) + length);
    if (!control) {
        lane_failed(lane, "could not keep a control message", OMPI_ERR_OUT_OF_RESOURCE);
        return NULL;
    }
    *control = (struct control){.pending = {.retry = control_retry, .is_unsent = true},
                                .lane = lane,
                                .holders = 1,
                                .length = length};
    memcpy(control->bytes, bytes, length);
    return control;
}

static void control_begin(struct control *control)
{
    if (control_waits(control, control_send(control)))
        pending_add(&multilane.pending, &control->pending);
    else
        control_drop(control);
}

void lane_send_owned(struct lane *lane, const void *bytes, size_t length, uint64_t patience_ns,
                     lane_left left, void *owner)
{
    if (OPAL_LIKELY(lane_send_immediately(lane, bytes, length) == LANE_LEFT)) {
        left(owner, OMPI_SUCCESS);
        return;
    }
    struct control *control = control_new(lane, bytes, length);
    if (!control) {
        left(owner, OMPI_ERR_OUT_OF_RESOURCE);
        return;
    }
    control->left = left;
    control->owner = owner;
    control->until_ns = patience_ns ? clock_now_ns() + patience_ns : 0;
    control_begin(control);
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
    struct control *control = control_new(lane, bytes, length);
    if (!control)
        return OMPI_ERR_OUT_OF_RESOURCE;
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
    int rc = lane->framed ? taken(delivery_send(lane, bytes, length, true, NULL, NULL))
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
