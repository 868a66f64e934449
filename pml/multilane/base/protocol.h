/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol: one way of moving a message, as the rest of the PML sees it. Each is a constant table
 * at the end of a file of its own in protocol/; outside of that folder none is named. */
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
struct peer;
struct recv_request;
struct route;
struct send_request;

struct protocol {
    const char *name;

    /* The way of moving the data that its RTS proposes; 0 for the eager ones. */
    uint32_t method;

    /* Carries any message of host memory, or, without host_only, of device memory, over whatever
     * lane: what another protocol cannot move goes this way. */
    bool carries_all;
    bool host_only; /* the processor reads or writes the data where they lie */
    bool puts;      /* not over the lane of device memory, which is only got from; from one place */
    bool can_be_declined; /* the receiver may ask for another way, and then again and again */

    /* The same over the lane of device memory, where that is done in another way; else null. */
    const struct protocol *over_device_lane;

    /* --- the sender's end; null: nothing is to be done --- */

    /* Sends a message at once and without a request: LANE_LEFT; anything else: nothing is done.
     * Never null: one that needs a request says LANE_AGAIN. */
    int (*post)(const struct outgoing *out, const struct route *route);

    /* Starts a request, which ends when its bytes have left, or later; LANE_AGAIN: nothing is done,
     * call again from progress. */
    int (*start)(struct send_request *request);

    /* The receiver is ready to have its bytes this way, whatever the RTS has proposed. */
    void (*ready)(struct send_request *request, struct lane *lane, const struct wire_rtr *rtr,
                  const unsigned char *key);

    /* The request ends: what the protocol holds for it is given back. */
    void (*send_end)(struct send_request *request);

    /* --- the receiver's end --- */

    /* The RTS has met its receive. */
    void (*receive)(struct recv_request *request, const struct arrival *arrival);

    /* FIN: the sender has moved so many bytes. False: that cannot be. Null: it has no FIN. */
    bool (*fin)(struct recv_request *request, uint64_t bytes);

    /* --- both --- */

    /* No message is sent to the peer this way any more, or (not `sends`) received from it: what is
     * under way goes another way, or ends where the peer is lost. */
    void (*stop)(struct peer *peer, bool sends);
};

/* The table of protocols: handed down once by protocol/, and only read afterwards. */
struct protocols {
    const struct protocol *of_model[MODEL_PROTOCOLS]; /* null: there is none here */
    const struct protocol *of_method[WIRE_METHODS];
    const struct protocol *for_host, *for_device; /* those that carry all */
};

extern __attribute__((visibility("hidden"))) struct protocols protocols;

void protocols_use(const struct protocol *const of_model[MODEL_PROTOCOLS]);

/* The protocol that the other end has named. Null: there is none. */
static inline const struct protocol *protocol_of_method(uint32_t method)
{
    return method < WIRE_METHODS ? protocols.of_method[method] : NULL;
}

/* All ways that have to be told: see `stop`. */
void protocols_stop(struct peer *peer, bool sends);

#endif
