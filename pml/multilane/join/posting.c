/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts receives; a message is matched with its receive, and the receiver chooses a protocol. */
#include "join/posting.h"

#include "base/multilane.h"
#include "base/pending.h"
#include "request/pieces.h"
#include "contact/peer_lanes.h"
#include "plan/peer_class.h"

/* The receive of a matched message, and the receiver's choice of a protocol. */

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
    recv_request_matched(request, arrival);
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
        recv_request_ask(request);
}

/* Gives a kept message to its receive. */

/* Copies all, also bytes of missing parts, which those parts will overwrite. */
void inbound_attach(struct inbound *assembly, struct recv_request *receiver)
{
    recv_request_matched(receiver, &assembly->arrival);
    if (assembly->data) {
        struct iovec whole = {.iov_base = assembly->data, .iov_len = assembly->arrival.size};
        recv_request_write(receiver, 0, &whole, 1);
    }
    /* An earlier use of the request may have left it set, and a cancel would believe it.
     * Relaxed: the match has ordered that use before this one. */
    atomic_store_explicit(&receiver->held_by, NULL, memory_order_relaxed);
    assembly->receiver = receiver;
    if (OPAL_UNLIKELY(assembly->offered != NULL))
        taking_begin(assembly->offered);
}

bool inbound_take(struct inbound *inbound, struct recv_request *receiver)
{
    struct arrival *arrival = &inbound->arrival;
    struct peer *peer = arrival->peer;
    bool is_plain = inbound->is_plain, is_whole = true, is_lost = false;
    biased_lock(&peer->lock);
    inbound_release(inbound);
    bool is_large = arrival->type != WIRE_EAGER;
    arrival->timer = (struct wire_handle){0}; /* it has waited for its receive */
    if (arrival->type == WIRE_PART) {         /* the last part frees it, at any time from here on */
        is_whole = false;
        is_lost = peer_is_lost(peer);
        if (!is_lost)
            inbound_attach(inbound, receiver); /* part_arrived goes on */
    }
    biased_unlock(&peer->lock);
    if (OPAL_UNLIKELY(is_lost))
        recv_request_fail(receiver, COMPAT_ERR_PROC_FAILED);
    if (is_plain) {
        recv_request_take_whole(receiver, peer, &arrival->match, inbound->data, arrival->size);
        inbound_free(inbound);
    } else if (is_whole) {
        struct iovec whole = {.iov_base = inbound->data, .iov_len = arrival->size};
        arrival->payload = &whole;
        arrival->payload_count = 1;
        recv_request_take(receiver, arrival);
        inbound_free(inbound);
    }
    credit_send_if_due(peer);
    return is_large;
}

struct direct_receive *direct_receive;

static inline void request_list(struct recv_request *request, struct mca_pml_comm_t *comm,
                                int32_t source, int32_t tag)
{
    request->base.req_base.req_sequence = comm->stamp;
    request->node.source = source;
    request->node.tag = tag;
    request->node.stamp = comm->stamp++;
    match_insert(&comm->posted, &request->node);
}

/* Takes a message that has come, or begun to. A large one moves on in this call: the next one may
 * be far. */
static void receive_kept(struct inbound *inbound, struct recv_request *request)
{
    struct peer *peer = inbound->arrival.peer;
    if (inbound_take(inbound, request))
        taking_drive(peer);
}

void receive_start(struct recv_request *request)
{
    mca_pml_base_request_t *base = &request->base.req_base;
    struct mca_pml_comm_t *comm = base->req_comm->c_pml_comm;
    int32_t source = base->req_peer, tag = base->req_tag;

    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);

    direct_post();
    biased_lock(&comm->lock);
    struct inbound *inbound = inbound_find(comm, source, tag);
    int error = OMPI_SUCCESS;
    if (inbound) {
        inbound_remove(comm, inbound);
        request->matched = true;
    } else if (OPAL_UNLIKELY(compat_comm_refuses(base->req_comm, tag))) {
        request->matched = true;
        error = compat_comm_refusal(base->req_comm);
    } else if (comm_lost(comm, source)) {
        request->matched = true;
        error = COMPAT_ERR_PROC_FAILED;
    } else {
        if (OPAL_UNLIKELY(match_is_full(&comm->posted)))
            match_table_grow(&comm->posted);
        request_list(request, comm, source, tag);
    }
    biased_unlock(&comm->lock);

    if (inbound)
        receive_kept(inbound, request);
    else if (OPAL_UNLIKELY(error != OMPI_SUCCESS))
        recv_request_fail(request, error);
}

static __attribute__((noinline)) struct recv_request *request_post_any(void *buffer, size_t count,
                                                                       ompi_datatype_t *datatype,
                                                                       int source, int tag,
                                                                       ompi_communicator_t *comm)
{
    struct recv_request *request =
        recv_request_new(buffer, count, datatype, source, tag, comm, false);
    if (OPAL_LIKELY(request != NULL))
        receive_start(request);
    return request;
}

/* Short path: one thread, and the receive can only wait. receive_start handles all other cases. */
static inline bool request_just_waits(const struct mca_pml_comm_t *comm, int tag)
{
    return !opal_using_threads() && !work_is_counted && !direct_receive &&
           comm->unexpected.count == 0 && !match_is_full(&comm->posted) &&
           !compat_comm_refuses(comm->ompi, tag) &&
           atomic_load_explicit(&multilane.lost_peers, memory_order_relaxed) == 0;
}

struct recv_request *receive_post(void *buffer, size_t count, ompi_datatype_t *datatype, int source,
                                  int tag, ompi_communicator_t *comm)
{
    struct recv_request *request = NULL;
    if (OPAL_LIKELY(request_just_waits(comm->c_pml_comm, tag)))
        request = (struct recv_request *) opal_lifo_pop_st(&mca_pml_base_recv_requests.super);
    if (OPAL_UNLIKELY(!request))
        return request_post_any(buffer, count, datatype, source, tag, comm);
    recv_request_init(request, buffer, count, datatype, source, tag, comm, false);
    MCA_PML_BASE_RECV_START(&request->base);
    recv_request_begin(request);
    request_list(request, comm->c_pml_comm, source, tag);
    return request;
}

bool direct_can_be(const ompi_communicator_t *comm, int tag, const struct lane *lane)
{
    return lane && request_just_waits(comm->c_pml_comm, tag) && request_may_poll();
}

void direct_post_now(void)
{
    struct direct_receive *receive = direct_receive;
    direct_receive = NULL;
    receive->is_over = true;
    receive->request = receive_post(receive->buffer, receive->count, receive->datatype,
                                    receive->source, receive->tag, receive->comm);
    if (OPAL_LIKELY(receive->request != NULL))
        receive->request->looks = receive->looks;
}

static bool is_over(const void *receive)
{
    return ((const struct direct_receive *) receive)->is_over;
}

void direct_wait(struct direct_receive *receive, struct lane *lane)
{
    receive->looks = looks_now();
    direct_receive = receive;
    if (!request_poll_until(is_over, receive, lane))
        direct_post(); /* unless it came in the last round */
}
