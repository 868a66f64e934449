/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of protocols. A new one is a new file and one line here. */
#include "protocol/protocol.h"

#include <string.h>

#include "base/multilane.h"

/* In the order of the model's table, which knows what each needs and costs. */
const struct protocol *const protocols[MODEL_PROTOCOLS] = {
    [MODEL_EAGER_SHORT] = &eager_short, [MODEL_EAGER_COPY] = &eager_copy,
    [MODEL_EAGER_ZCOPY] = &eager_zcopy, [MODEL_RNDV_AM] = &rndv_am,
    [MODEL_RNDV_GET] = &rndv_get,       [MODEL_RNDV_PUT] = &rndv_put,
    [MODEL_RNDV_BOTH] = &rndv_both,     [MODEL_RNDV_STAGED] = &rndv_staged,
    [MODEL_RNDV_RING] = &rndv_ring,
};

const struct protocol *protocol_of_method(uint32_t method)
{
    static const struct protocol *const by_method[WIRE_METHODS] = {
        [WIRE_BY_SEND] = &rndv_am,   [WIRE_BY_GET] = &rndv_get,       [WIRE_BY_PUT] = &rndv_put,
        [WIRE_BY_BOTH] = &rndv_both, [WIRE_BY_DEVICE] = &rndv_device, [WIRE_BY_RING] = &rndv_ring};
    return method < WIRE_METHODS ? by_method[method] : NULL;
}

int post_by_request(const struct outgoing *out, const struct route *route)
{
    (void) out;
    (void) route;
    return LANE_AGAIN;
}

/* The answer is one more thing that the request waits for. */
static int answer_expect(struct send_request *request)
{
    if (handle_is_set(request->handle))
        return OMPI_SUCCESS;
    request->unfinished++; /* before anybody finds the request, and makes a step */
    int rc = handle_acquire(&multilane.handles, HANDLE_SEND, request, &request->handle);
    if (rc != OMPI_SUCCESS)
        request->unfinished--;
    else if (OPAL_UNLIKELY(peer_is_lost(request->out.peer)))
        send_request_lost(request, request->handle); /* lost_end may have looked before */
    return rc;
}

int eager_expect_ack(struct send_request *request)
{
    if (request->base.req_send_mode != MCA_PML_BASE_SEND_SYNCHRONOUS)
        return OMPI_SUCCESS;
    int rc = answer_expect(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    request->out.synchronous = request->handle;
    handle_goes_out(request);
    return OMPI_SUCCESS;
}

int rndv_announce(struct send_request *request, struct lane *lane, const struct wire_key *key,
                  const void *key_bytes)
{
    int rc = answer_expect(request);
    if (rc != OMPI_SUCCESS)
        return rc;
    const struct outgoing *out = &request->out;
    unsigned char bytes[WIRE_CONTROL_MAX];
    size_t length = comm_write_match(out->comm, out->peer, bytes, WIRE_RTS, out->sequence, out->tag,
                                     (struct wire_handle){0});
    struct wire_rts rts = {
        .size = out->size, .sender = request->handle, .method = request->protocol->method};
    if (key)
        rts.key = *key;
    size_t rest = sizeof(rts) - sizeof(rts.match);
    memcpy(bytes + length, (char *) &rts + sizeof(rts.match), rest);
    length += rest;
    if (wire_keys_length(&rts.key)) {
        memcpy(bytes + length, key_bytes, wire_keys_length(&rts.key));
        length += wire_keys_length(&rts.key);
    }
    request->state = SEND_ANNOUNCED; /* before it is true: the answer may come inside the send */
    handle_goes_out(request);
    rc = lane_send_copy(lane, bytes, length);
    if (rc == OMPI_SUCCESS)
        send_request_step(request);
    else
        request->state = SEND_STARTED;
    return rc;
}

bool eager_in_place_extended(const struct outgoing *out, struct lane *lane)
{
    size_t header = comm_match_length(out->comm, out->peer, out->synchronous);
    unsigned char *bytes = lane_reserve(lane, header, out->size);
    if (!bytes)
        return false;
    outgoing_copy(out, bytes + header);
    comm_write_extended(out->comm, out->peer, bytes, WIRE_EAGER, out->sequence, out->tag,
                        out->synchronous);
    lane_commit(lane, header, out->size);
    return true;
}

static void told_of_bytes(void *owner, int status)
{
    if (OPAL_LIKELY(status == OMPI_SUCCESS))
        send_request_step(owner);
    else
        send_request_broke(owner);
}

void tell_of_bytes(const struct peer *peer, struct lane *lane, uint8_t type,
                   struct wire_handle receiver, uint64_t bytes, struct send_request *request)
{
    unsigned char message[WIRE_CONTROL_MAX];
    struct wire_fin fin = {.receiver = receiver, .size = bytes};
    unsigned char *end = peer_write_base(peer, message, type, 0);
    memcpy(end, &fin, sizeof(fin));
    size_t length = (size_t) (end + sizeof(fin) - message);
    if (request)
        lane_send_owned(lane, message, length, 0, told_of_bytes, request);
    else
        lane_send_control(lane, message, length);
}
