/* SPDX-License-Identifier: BSD-3-Clause */
/* What protocols have in common. */
#ifndef MULTILANE_PROTOCOL_COMMON_H
#define MULTILANE_PROTOCOL_COMMON_H

#include "lane/lane.h"
#include "plan/stripe.h"
#include "request/recv_request.h"
#include "request/send_request.h"

/* The `post` of protocols that cannot do without a request. */
int post_by_request(const struct outgoing *out, const struct route *route);

/* The `start` of protocols that post the whole message: what its lane does not take at once goes by
 * a fragment that holds a copy of it. */
int eager_start(struct send_request *request);

/* A `post` by the lane's own copy of the message. */
int eager_post_packed(const struct outgoing *out, struct lane *lane);

/* A synchronous send is complete only with an ACK; arranges for it, once. */
int eager_expect_ack(struct send_request *request);

/* eager_in_place for a message with extensions in its header: seldom, so it is no part of that. */
bool eager_in_place_extended(const struct outgoing *out, struct lane *lane);

/* Writes an eager message straight into a lane that lets us; false: it has to be copied there. */
static inline bool eager_in_place(const struct outgoing *out, struct lane *lane)
{
    const size_t header = sizeof(struct wire_plain);
    if (OPAL_UNLIKELY(!comm_is_plain(out->comm, out->peer, out->answer)))
        return eager_in_place_extended(out, lane);
    unsigned char *bytes = lane_reserve(lane, header, out->size);
    if (OPAL_UNLIKELY(!bytes))
        return false;
    outgoing_copy_to_lane(out, lane, bytes + header);
    comm_write_plain(out->comm, bytes, WIRE_EAGER, out->sequence, out->tag);
    lane_commit(lane, header, out->size);
    return true;
}

/* The `post` of an eager message; a lane that lets it not write there gets it by `copy`. */
static inline int eager_post(const struct outgoing *out, const struct route *route,
                             int (*copy)(const struct outgoing *out, struct lane *lane))
{
    struct lane *lane = stripe_whole(route, out->peer, out->size);
    if (OPAL_UNLIKELY(!lane))
        return LANE_AGAIN;
    return OPAL_LIKELY(eager_in_place(out, lane)) ? LANE_LEFT : copy(out, lane);
}

/* Announces a message: RTS with the protocol's method and, for a get, the key of its bytes. */
int rndv_announce(struct send_request *request, struct lane *lane, const struct wire_key *key,
                  const void *key_bytes);

/* Tells the receiver that so many bytes have come (WIRE_FIN) or will not come (WIRE_CANCEL). The
 * request, if it is not null, makes a step when that has left. */
void bytes_report(struct lane *lane, uint8_t type, struct wire_handle receiver, uint64_t bytes,
                  struct send_request *request);

/* That has left. */
void bytes_reported(void *request, int status);

/* A request's message never needs more than one lane's pieces of this many under way to keep the
 * lane busy; more would only take fragments from other messages. */
#define PIECES_IN_FLIGHT 8

/* The end of a transfer whose pieces are messages: a step of the request, or its lane has failed.
 */
void pieces_finish(struct transfer *transfer, int status);

/* The `start` of transfers that get. */
int get_piece(struct transfer *transfer, size_t offset, size_t *size);

/* Announces device memory: with its key on the lane of device memory, where it has one. */
int device_announce(struct send_request *request);

/* Sends the bytes up to `end` as active messages to the request's receiver: the data phase of
 * rndv-am, which other rendezvous fall back to. */
void rndv_am_move(struct send_request *request, size_t end);

/* The same for device memory, which goes through slots of host memory. */
void rndv_staged_move(struct send_request *request, size_t end);

#endif
