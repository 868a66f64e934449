/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives a kept message to its receive. */
#include "join/meet.h"

#include "match/credit.h"
#include "request/receive_way.h"
#include "request/taking.h"

/* Copies all, also bytes of missing parts, which those parts will overwrite. */
void inbound_attach(struct inbound *assembly, struct recv_request *receiver)
{
    recv_request_met(receiver, &assembly->arrival);
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
    credit_tell_if_due(peer);
    return is_large;
}
