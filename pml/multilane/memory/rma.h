/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a get or put, known to several lanes at once: registered with each of them at this
 * end, named by a key for each of them at the other. */
#ifndef MULTILANE_RMA_H
#define MULTILANE_RMA_H

#include <stdatomic.h>

#include "peer/peer.h"
#include "peer/peer_class.h"
#include "lane/transfer.h"

/* More than pay in any machine; the keys of so many fit one control message. */
#define RMA_LANES_MAX 8

struct rma_lane {
    struct lane *lane;
    struct registration local;
    uint32_t key_at; /* in keys; the other end's */
    uint32_t key_length;
    size_t bytes;        /* of this end's gets or puts over the lane */
    _Atomic bool failed; /* one of them did */
};

/* Zeroed, it has no lane and nothing to be released. */
struct rma {
    uint32_t count;
    bool is_device;      /* this end's memory; set before it is offered or worked on */
    _Atomic bool landed; /* of a receive: gets, or puts that a FIN told of, brought some of it */
    struct rma_lane lanes[RMA_LANES_MAX];
    uint64_t remote; /* where byte remote_offset of the message lies at the other end */
    size_t remote_offset;
    struct transfer *transfer; /* that the pieces belong to */
    _Alignas(8) unsigned char keys[WIRE_KEY_MAX + 8 * RMA_LANES_MAX];
};

/* The end that lets the other one work. Registers memory with the route's lanes; one that refuses,
 * or whose key has no room in a message, is left out. False: that is all of them. */
bool rma_offer(struct rma *rma, const struct route *route, struct peer *peer, void *address,
               size_t size, uint32_t access);
bool rma_offer_lane(struct rma *rma, struct lane *lane, void *address, size_t size,
                    uint32_t access);

/* The registration by which the lane, one with `in_place`, may send this memory, which is made
 * where there is none. Null: it is not to be had, for this message. */
mca_btl_base_registration_handle_t *rma_in_place(struct rma *rma, struct lane *lane, void *address,
                                                 size_t size);

/* Writes the keys of what is offered, for a message on the first of its lanes, and tells the peer
 * which of our lanes the others are, where it was not told yet. */
void rma_write_keys(const struct rma *rma, struct wire_key *key, unsigned char bytes[WIRE_KEY_MAX]);

/* The end that works. Takes the lanes whose keys the peer has sent on `lane` (null: not known) and
 * that are known to lead to the same lanes there. */
void rma_read_keys(struct rma *rma, struct peer *peer, struct lane *lane,
                   const struct wire_key *key, const unsigned char *bytes);

/* Leaves out lanes that cannot get (put) these bytes in place, and those that do not register the
 * memory here where they need it. False: that is all of them. */
bool rma_can_get(struct rma *rma, void *local, size_t size);
bool rma_can_put(struct rma *rma, void *local, size_t size);

/* Starts to get (put) up to *size bytes from `offset` of `total`; the callback ends the piece of
 * rma->transfer. As the start of a struct transfer_steps. */
int rma_get(struct rma *rma, char *local, size_t offset, size_t total, size_t *size);
int rma_put(struct rma *rma, const char *local, size_t offset, size_t total, size_t *size);

/* After a failure, nothing being under way at this end: OMPI_SUCCESS, and what was put can write
 * nothing any more either; LANE_AGAIN: not yet. */
int rma_fence(struct rma *rma);

/* Registrations are given back. Nothing may be under way. */
void rma_release(struct rma *rma);

#endif
