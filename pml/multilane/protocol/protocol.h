/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol: one way of moving a message, a constant table at the end of a file of its own. */
#ifndef MULTILANE_PROTOCOL_H
#define MULTILANE_PROTOCOL_H

#include "liveness/errors.h"
#include "request/recv_request.h"
#include "request/send_request.h"

struct protocol {
    const char *name;

    /* The way of data phase that its RTS proposes; 0 for the eager ones. */
    uint32_t method;

    /* Sends a message at once and without a request: LANE_LEFT; anything else: nothing is done. */
    int (*post)(const struct outgoing *out, const struct route *route);

    /* Starts a request, which ends when its bytes have left, or later; LANE_AGAIN: nothing is done,
     * call again from progress. */
    int (*start)(struct send_request *request);

    /* Sender: the receiver is ready to have its bytes this way. */
    void (*ready)(struct send_request *request, struct lane *lane, const struct wire_rtr *rtr,
                  const unsigned char *key);

    /* Receiver: the RTS has met its receive. */
    void (*receive)(struct recv_request *request, const struct arrival *arrival);
};

extern const struct protocol eager_short, eager_copy, eager_zcopy;
extern const struct protocol rndv_am, rndv_get, rndv_put, rndv_both, rndv_staged, rndv_device,
    rndv_ring;

/* By index of the model's table; null where there is none. */
extern const struct protocol *const protocols[MODEL_PROTOCOLS];
const struct protocol *protocol_of_method(uint32_t method);

/* The `post` of protocols that cannot do without a request. */
int post_by_request(const struct outgoing *out, const struct route *route);

/* An eager message that its lane did not take at once, by a fragment or a frame that holds a copy
 * of it; the request makes a step when that has left. */
int eager_send_kept(struct send_request *request);

/* A synchronous send is complete only with an ACK; arranges for it, once. */
int eager_expect_ack(struct send_request *request);

/* eager_in_place for a message with extensions in its header: seldom, so it is no part of that. */
bool eager_in_place_extended(const struct outgoing *out, struct lane *lane);

/* Writes an eager message straight into a lane that lets us; false: it has to be copied there. */
static inline bool eager_in_place(const struct outgoing *out, struct lane *lane)
{
    const size_t header = sizeof(struct wire_plain);
    if (OPAL_UNLIKELY(!comm_is_plain(out->comm, out->peer, out->synchronous)))
        return eager_in_place_extended(out, lane);
    unsigned char *bytes = lane_reserve(lane, header, out->size);
    if (OPAL_UNLIKELY(!bytes))
        return false;
    outgoing_copy(out, bytes + header);
    comm_write_plain(out->comm, bytes, WIRE_EAGER, out->sequence, out->tag);
    lane_commit(lane, header, out->size);
    return true;
}

/* Announces a message: RTS with the protocol's method and, for a get, the key of its bytes. */
int rndv_announce(struct send_request *request, struct lane *lane, const struct wire_key *key,
                  const void *key_bytes);

/* Tells the receiver that so many bytes have come (WIRE_FIN) or will not come (WIRE_CANCEL). The
 * request, if it is not null, makes a step when that has left. */
void tell_of_bytes(const struct peer *peer, struct lane *lane, uint8_t type,
                   struct wire_handle receiver, uint64_t bytes, struct send_request *request);

/* Sends the bytes [from, end) as active messages to the request's receiver. */
void rndv_am_move(struct send_request *request, size_t from, size_t end);
/* The same for device memory, which goes through slots of host memory. */
void rndv_staged_move(struct send_request *request, size_t from, size_t end);

/* The sender has copied the last chunk of a message by rndv-both. False: that was said already. */
bool rndv_both_last(struct recv_request *request);

/* No message is sent to the peer by the ring in device memory any more, or received from it: what
 * is under way goes another way, or ends where the peer is lost. */
void rndv_ring_stop(struct peer *peer, bool sends);

/* A request's message never needs more than one lane's pieces of this many under way to keep the
 * lane busy; more would only take fragments from other messages. */
#define PIECES_IN_FLIGHT 8

#endif
