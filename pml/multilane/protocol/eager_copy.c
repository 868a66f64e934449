/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into the lane, or into one fragment of it. */
#include "protocol.h"

#include <string.h>

#include "common/compat/tsan.h"

#include "../delivery.h"

/* --- at once ------------------------------------------------------------------------------------
 */

/* Sets up the convertor for what is sent: the user's memory, or the packed copy of it. */
static void outgoing_prepare(const struct outgoing *out, opal_convertor_t *convertor)
{
    const opal_convertor_t *of = out->peer->proc->super.proc_convertor;
    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    if (OPAL_LIKELY(out->data != NULL))
        opal_convertor_copy_and_prepare_for_send(of, &ompi_mpi_packed.dt.super, out->size,
                                                 out->data, 0, convertor);
    else
        opal_convertor_copy_and_prepare_for_send(of, &out->datatype->super, out->count, out->buffer,
                                                 0, convertor);
}

static __attribute__((noinline)) int eager_copy_packed(const struct outgoing *out,
                                                       struct lane *lane)
{
    opal_convertor_t convertor;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    if (!lane->sendi)
        return LANE_AGAIN;
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    outgoing_prepare(out, &convertor);
    int rc = lane_send_packed(lane, header, length, &convertor, out->size);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

static int eager_copy_post(const struct outgoing *out, const struct route *route)
{
    struct lane *lane = route_lane(route, out->peer, 0);
    return OPAL_LIKELY(eager_in_place(out, lane)) ? LANE_LEFT : eager_copy_packed(out, lane);
}

/* --- by a copy that stays until it has left -----------------------------------------------------
 */

/* What the copy takes: a BTL's fragments are as long as its longest eager message. */
static size_t kept_cost(const struct send_request *request)
{
    const struct lane *lane = route_lane(request->route, request->out.peer, 0);
    size_t least = lane->framed ? 0 : lane->btl->btl_eager_limit;
    return request->out.size < least ? least : request->out.size;
}

static void kept_left(void *owner, int status)
{
    struct send_request *request = owner;
    peer_unqueue(request->out.peer, kept_cost(request));
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        send_request_step(request);
    else
        send_request_broke(request);
}

static int kept_by_frame(struct send_request *request, struct lane *lane)
{
    int rc;
    const struct outgoing *out = &request->out;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    struct frame *frame = frame_begin(lane, length + out->size, &rc);
    if (!frame)
        return rc;
    memcpy(frame_message(frame), header, length);
    outgoing_copy(out, frame_message(frame) + length);
    frame_send(frame, length + out->size, false, kept_left, request);
    return LANE_UNDER_WAY;
}

static int kept_by_fragment(struct send_request *request, struct lane *lane)
{
    const struct outgoing *out = &request->out;
    unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = comm_write_match(out->comm, out->peer, header, WIRE_EAGER, out->sequence,
                                     out->tag, out->synchronous);
    mca_btl_base_descriptor_t *descriptor =
        lane->btl->btl_alloc(lane->btl, lane->endpoint, MCA_BTL_NO_ORDER, length + out->size,
                             MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP |
                                 MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    if (OPAL_UNLIKELY(!descriptor))
        return LANE_AGAIN;
    tsan_acquire(descriptor);
    if (OPAL_UNLIKELY(descriptor->des_segments[0].seg_len < length + out->size)) {
        lane->btl->btl_free(lane->btl, descriptor);
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    }
    unsigned char *bytes = descriptor->des_segments[0].seg_addr.pval;
    memcpy(bytes, header, length);
    outgoing_copy(out, bytes + length);
    descriptor->des_segments[0].seg_len = length + out->size;
    return lane_send_descriptor(lane, descriptor, kept_left, request);
}

int eager_send_kept(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    size_t cost = kept_cost(request); /* the request may be gone when its lane has it */
    struct lane *lane = route_lane(request->route, peer, 0);
    if (!peer_queue(peer, cost))
        return LANE_AGAIN;
    int rc = lane->framed ? kept_by_frame(request, lane) : kept_by_fragment(request, lane);
    if (rc == LANE_UNDER_WAY)
        return OMPI_SUCCESS;
    peer_unqueue(peer, cost);
    return rc;
}

static int eager_copy_start(struct send_request *request)
{
    int rc = eager_expect_ack(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = eager_copy_post(&request->out, request->route);
    if (rc != LANE_LEFT)
        return rc == LANE_FULL ? LANE_AGAIN : eager_send_kept(request);
    send_request_step(request);
    return OMPI_SUCCESS;
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_copy_start,
};
