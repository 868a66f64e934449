/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive of a matched message, and the receiver's choice of a protocol. */
#include "request/receive_way.h"

#include "contact/peer_lanes.h"
#include "plan/peer_class.h"

static enum class_buffer buffer_of(bool from_device, bool to_device)
{
    if (from_device)
        return to_device ? CLASS_DEVICE : CLASS_FROM_DEVICE;
    return to_device ? CLASS_TO_DEVICE : CLASS_CONTIGUOUS;
}

/* Has the sender made ready what this method needs? Bytes that lie in one piece it can put. */
static bool is_possible(uint32_t method, const struct arrival *arrival)
{
    bool puts =
        method == WIRE_BY_PUT || (method == WIRE_BY_DEVICE && !(arrival->memory & WIRE_ON_DEVICE));
    return puts ? arrival->memory & WIRE_IN_ONE_PIECE
                : method == WIRE_BY_SEND || method == arrival->method;
}

/* In host memory the sender's plan is this end's as well, and may try another way to learn what it
 * takes. In a process itself what the sender has ready is one copy. And a receiver without a driver
 * has no plan for devices. */
static bool sender_decides(const struct recv_request *request, enum class_buffer buffer)
{
    const struct peer *peer = recv_request_peer(request);
    return buffer == CLASS_CONTIGUOUS || peer->is_self ||
           !class_planned(peer_class_now(peer), buffer);
}

/* By the plan for memory of both kinds; what it would take may not be there. */
static const struct protocol *planned(struct recv_request *request, const struct arrival *arrival,
                                      enum class_buffer buffer)
{
    struct route *route =
        class_route_at(peer_class_now(recv_request_peer(request)), buffer, request->wanted);
    uint32_t method = route->protocol->method;
    if (!method) /* eager, had the sender known */
        method = WIRE_BY_SEND;
    request->route = route;
    if (!is_possible(method, arrival))
        return protocol_of_messages();
    if (class_is_received(buffer))
        route_count(route, request->wanted);
    return protocol_of_method(method);
}

static void receive_choose(struct recv_request *request, const struct arrival *arrival)
{
    bool to_device, from_device = arrival->memory & WIRE_ON_DEVICE;
    const char *place = recv_request_place(request, &to_device);
    enum class_buffer buffer = buffer_of(from_device, to_device);
    request->is_expected = arrival->method == WIRE_BY_PUT;
    request->protocol = protocol_of_method(arrival->method);
    if (OPAL_UNLIKELY(buffer != CLASS_CONTIGUOUS))
        peer_follow_devices(recv_request_peer(request));
    if (from_device != to_device) /* a time that the sender's plan does not mean */
        request->timer = (struct wire_handle){0};
    if (!place)
        request->protocol = protocol_of_messages(); /* to several pieces nothing else writes */
    else if (OPAL_UNLIKELY(!sender_decides(request, buffer)))
        request->protocol = planned(request, arrival, buffer);
    else
        request->route = class_route_at(peer_class_now(recv_request_peer(request)),
                                        CLASS_CONTIGUOUS, request->wanted);
}

void recv_request_take(struct recv_request *request, const struct arrival *arrival)
{
    recv_request_met(request, arrival);
    if (OPAL_LIKELY(arrival->type == WIRE_EAGER)) {
        recv_request_write(request, 0, arrival->payload, arrival->payload_count);
        recv_request_finish(request);
        return;
    }
    if (request->wanted == 0) {
        recv_request_finish(request);
        return;
    }
    if (OPAL_UNLIKELY(peer_is_lost(arrival->peer))) { /* its RTS was kept */
        recv_request_fail(request, COMPAT_ERR_PROC_FAILED);
        return;
    }
    /* What an earlier use of the request may have left, if it was cut short. Relaxed: no other
     * thread uses this one yet. */
    atomic_store_explicit(&request->held_by, NULL, memory_order_relaxed);
    request->is_shared = false;
    request->is_summed = arrival->memory & WIRE_SUMMED;
    request->sum = arrival->sum;
    receive_choose(request, arrival);
    if (!request->protocol->receive(request, arrival))
        recv_request_ask(request, 0);
}
