/* SPDX-License-Identifier: BSD-3-Clause */
/* rndv-ring: device memory through a ring in device memory, which the lane of device memory keeps:
 * RTS and RTR name the two ends of the ring, kernels of both move the bytes, ACK. Neither end's own
 * memory is opened by the other, so it may be of any kind.
 *
 * What cannot go by the ring at one end is asked for as rndv-am. When the ring fails at one end the
 * other is told, by a CANCEL of nothing or by the asking, and stops its own; then all messages that
 * are in it are asked for, and none is sent that way again. */
#include "protocol/common.h"

#include <string.h>

extern const struct protocol rndv_ring;

#define KEY_BYTES sizeof(struct multilane_ring_key)

_Static_assert(sizeof(struct multilane_ring_key) <= WIRE_KEY_MAX, "it fits a message");

/* The protocol's own data in a receive. */
struct taken {
    _Atomic uint32_t ends; /* the RTR is out, and the ring is done */
    int status;            /* of the ring, once it is done */
};

/* The peer's lane with a ring; null: it has none. */
static struct lane *ring_lane(const struct peer *peer)
{
    struct lane *lane = peer->device_lane;
    return lane && lane->extension->ring_offer ? lane : NULL;
}

static void rndv_ring_stop(struct peer *peer, bool sends)
{
    const struct lane *lane = ring_lane(peer);
    if (lane)
        lane->extension->ring_stop(lane->btl, lane->endpoint, sends);
}

/* --- sender ----------------------------------------------------------------------------------- */

static int rndv_ring_start(struct send_request *request)
{
    struct peer *peer = request->out.peer;
    const struct lane *lane = ring_lane(peer);
    struct multilane_ring_key offer;
    if (!lane || lane->extension->ring_offer(lane->btl, lane->endpoint,
                                             view_contiguous(request->source.view),
                                             &offer) != OPAL_SUCCESS) {
        peer_declined(peer);
        request->protocol = protocols.for_device;
        return request->protocol->start(request);
    }
    struct wire_key key = {.length = KEY_BYTES};
    return rndv_announce(request, peer_control_lane(peer), &key, &offer);
}

/* The buffer is not read any more; the message ends with the ACK, or with what is asked for. */
static void ring_sent(void *context, int status)
{
    struct send_request *request = context;
    /* Relaxed: send_request_ready clears it where the receiver knows. To be told twice does no
     * harm.
     */
    bool is_awaited =
        atomic_exchange_explicit(&request->held_by, NULL, memory_order_relaxed) != NULL;
    if (status != OPAL_SUCCESS && lost_or_dead(request->out.peer))
        send_request_lost(request, request->handle); /* if it was not told yet */
    else if (status != OPAL_SUCCESS && is_awaited)
        tell_of_bytes(peer_control_lane(request->out.peer), WIRE_CANCEL, request->receiver, 0,
                      NULL);
    send_request_step(request);
}

static void rndv_ring_ready(struct send_request *request, struct lane *from,
                            const struct wire_rtr *rtr, const unsigned char *key)
{
    const struct lane *lane = ring_lane(request->out.peer);
    /* Null where the RTS named another protocol: then no end of the ring was offered. */
    const char *data =
        request->protocol == &rndv_ring ? view_contiguous(request->source.view) : NULL;
    struct peer *peer = request->out.peer; /* the request may be gone when the ring has it */
    struct multilane_ring_key answer;
    int rc = OPAL_ERR_NOT_SUPPORTED;
    (void) from;
    /* Relaxed: what takes the steps back is ordered by itself. */
    atomic_fetch_add_explicit(&request->unfinished, 1, memory_order_relaxed);
    atomic_store_explicit(&request->held_by, &rndv_ring, memory_order_relaxed);
    request->state = SEND_ANNOUNCED; /* the receiver has yet to say whether all is well */
    if (lane && data && rtr->key.length == KEY_BYTES) {
        memcpy(&answer, key, KEY_BYTES);
        rc = lane->extension->ring_send(lane->btl, lane->endpoint, data + rtr->offset, rtr->size,
                                        &answer, ring_sent, request);
    }
    if (rc == OPAL_SUCCESS)
        peer_accepted(peer);
    else
        ring_sent(request, rc);
}

/* --- receiver --------------------------------------------------------------------------------- */

/* Two things must have happened, in either order and in any threads: the RTR is out, and the ring
 * does not touch the buffer any more. */
static void rndv_ring_step(struct recv_request *request)
{
    struct taken *own = recv_request_own(request);
    if (atomic_fetch_add_explicit(&own->ends, 1, memory_order_acq_rel) != 1)
        return;
    atomic_store_explicit(&request->held_by, NULL, memory_order_relaxed);
    if (own->status == OPAL_SUCCESS)
        recv_request_finish(request);
    else
        recv_request_ask(request, 0); /* over what was moved come the same bytes */
}

static void ring_taken(void *context, int status)
{
    struct recv_request *request = context;
    struct taken *own = recv_request_own(request);
    own->status = status;
    rndv_ring_step(request);
}

static bool rndv_ring_take(struct recv_request *request, const struct arrival *arrival,
                           struct multilane_ring_key *answer)
{
    const struct lane *lane = ring_lane(recv_request_peer(request));
    char *data = request->sink.view ? view_contiguous(request->sink.view) : NULL;
    struct multilane_ring_key offer;
    if (!lane || !data || arrival->key.length != KEY_BYTES)
        return false;
    memcpy(&offer, arrival->key_bytes, KEY_BYTES);
    return lane->extension->ring_take(lane->btl, lane->endpoint, data, request->wanted, &offer,
                                      answer, ring_taken, request) == OPAL_SUCCESS;
}

static void rndv_ring_receive(struct recv_request *request, const struct arrival *arrival)
{
    struct multilane_ring_key answer;
    const struct wire_key key = {.length = KEY_BYTES};
    if (OPAL_UNLIKELY(!recv_request_can_answer(request)))
        return;
    *(struct taken *) recv_request_own(request) = (struct taken){.ends = 0};
    atomic_store_explicit(&request->held_by, &rndv_ring, memory_order_relaxed);
    if (!rndv_ring_take(request, arrival, &answer)) {
        atomic_store_explicit(&request->held_by, NULL, memory_order_relaxed);
        recv_request_ask(request, 0);
        return;
    }
    recv_request_send_rtr(request, peer_control_lane(recv_request_peer(request)), 0, WIRE_BY_RING,
                          &key, &answer);
    rndv_ring_step(request);
}

const struct protocol rndv_ring = {
    .name = "rndv-ring",
    .method = WIRE_BY_RING,
    .post = post_by_request,
    .start = rndv_ring_start,
    .ready = rndv_ring_ready,
    .receive = rndv_ring_receive,
    .stop = rndv_ring_stop,
    .can_be_declined = true,
};
