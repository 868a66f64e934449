/* SPDX-License-Identifier: BSD-3-Clause */
/* eager-copy: the message is copied into the lane, or into one fragment of it. */
#include "protocol/common.h"

#include "peer/stripe.h"

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
    if (!lane->sendi) /* not tried again before there is room: that would copy for nothing */
        return eager_post_framed(out, lane) == LANE_LEFT ? LANE_LEFT : LANE_AGAIN;
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

/* A large one goes in parts where the peer bounds what is under way: parts are counted. */
static int eager_copy_start(struct send_request *request)
{
    const struct outgoing *out = &request->out;
    if (OPAL_LIKELY(out->size <= STRIPE_LARGE_BYTES || out->memory.kind != MEMORY_HOST ||
                    !stripe_bound(route_lane(request->route, out->peer, 0))))
        return eager_start(request);
    request->protocol = protocols.of_model[MODEL_EAGER_ZCOPY];
    return request->protocol->start(request);
}

const struct protocol eager_copy = {
    .name = "eager-copy",
    .post = eager_copy_post,
    .start = eager_copy_start,
};
