/* SPDX-License-Identifier: BSD-3-Clause */
/* A message whose rest its sender offers (base/offer_word.h), at its receiver. */
#ifndef MULTILANE_OFFERED_H
#define MULTILANE_OFFERED_H

#include "peer/peer.h"

struct inbound;
struct recv_request;

/* In the list of its peer, whose lock guards it, until the message is whole. */
struct offered {
    struct offered *next;
    struct peer *peer;
    struct lane *lane;
    struct wire_offer offer;
    uint64_t size;                 /* of the message */
    struct inbound *assembly;      /* that its parts come to, and that knows the receiver; */
    struct recv_request *receiver; /* or the receiver that its pieces come to, when it has asked */
    /* The bytes from `from` on are copied, or were not. With the peer's lock held, which it
     * releases. */
    void (*taken)(struct offered *offered, uint64_t from, bool good);
    bool is_busy;   /* they are being copied: neither the message nor its receive ends meanwhile */
    bool is_futile; /* this process cannot copy them */
};

/* All that a peer offers. Guarded by its lock. */
struct peer_offers {
    struct peer *peer;
    struct offered *first;  /* the oldest */
    struct pending pending; /* looks at them */
    bool is_pending;
    uint64_t arrived;  /* how much of them had come when something came last, */
    uint64_t since_ns; /* and when that was */
};

/* Null: there is no lane for it, or no memory; then the sender moves all. With the peer's lock
 * held, as the next. */
struct offered *offered_new(struct peer *peer, const struct wire_offer *offer, uint64_t size,
                            void (*taken)(struct offered *offered, uint64_t from, bool good));
/* All its bytes are there, or its receive has ended. */
void offered_end(struct offered *offered);

#endif
