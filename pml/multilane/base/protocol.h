/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol: one way of moving a message. Each is a constant table at the end of its own file
 * in protocol/; no other file names one. */
#ifndef MULTILANE_PROTOCOL_H
#define MULTILANE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/protocol.h"
#include "wire/wire.h"

struct arrival;
struct lane;
struct outgoing;
struct recv_request;
struct route;
struct send_request;

struct protocol {
    const char *name;

    /* The method that its RTS proposes; 0 for eager protocols. */
    uint32_t method;

    bool host_only; /* the sender's CPU reads the data in place */
    bool puts;      /* its `ready` puts, from one place */

    /* The protocol that takes its place over the lane of device memory; null: itself. */
    const struct protocol *over_device_lane;

    /* --- the sender's end; null: nothing is to be done --- */

    /* Sends a message at once, without a request: LANE_LEFT; any other result: nothing was done.
     * Never null: a protocol that needs a request returns LANE_AGAIN. */
    int (*post)(const struct outgoing *out, const struct route *route);

    /* Starts a request; it ends when its bytes have left, or later. LANE_AGAIN: nothing was
     * done, try again from progress. */
    int (*start)(struct send_request *request);

    /* RTR: the receiver asks for its bytes by this method, which may differ from that of the
     * RTS. */
    void (*ready)(struct send_request *request, struct lane *lane, const struct wire_rtr *rtr,
                  const unsigned char *key);

    /* The request ends: releases what the protocol holds for it. */
    void (*send_end)(struct send_request *request);

    /* --- the receiver's end --- */

    /* A receive has matched the RTS, and is to come by this protocol. False: it cannot now, and
     * nothing was done; the message comes as active messages. Null: another one of its method
     * receives. */
    bool (*receive)(struct recv_request *request, const struct arrival *arrival);

    /* FIN: the sender has moved its bytes. False: impossible. Null: this protocol has no FIN. */
    bool (*fin)(struct recv_request *request, const struct wire_fin *fin);
};

/* The table of protocols, in protocol/table.c; nothing but tests writes it. Of two protocols with
 * one method, which differ only at the sender, the one here handles RTR and RTS. */
struct protocols {
    const struct protocol *of_model[MODEL_PROTOCOLS];
    const struct protocol *of_method[WIRE_METHODS]; /* null: no method */
};

extern __attribute__((visibility("hidden"))) struct protocols protocols;

/* The protocol of the method that the other process named; null: none. */
static inline const struct protocol *protocol_of_method(uint32_t method)
{
    return method < WIRE_METHODS ? protocols.of_method[method] : NULL;
}

/* Carries any message over any lane, as active messages: it takes what another cannot move. */
static inline const struct protocol *protocol_of_messages(void)
{
    return protocols.of_method[WIRE_BY_SEND];
}

#endif
