/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a get or put over several lanes: registered with each at this end, named by a
 * key for each at the other. */
#ifndef MULTILANE_RMA_H
#define MULTILANE_RMA_H

#include "peer/peer.h"
#include "plan/peer_class.h"
#include "lane/transfer.h"

/* More than are useful in any machine; their keys fit one control message. */
#define RMA_LANES_MAX 8

struct rma_lane {
    struct lane *lane;
    struct registration local;
    uint32_t key_at; /* where the other end's key is in `keys` */
    uint32_t key_length;
    size_t bytes;        /* moved over the lane by this end */
    _Atomic bool failed; /* one of these moves failed */
};

/* Zeroed, it has no lane and nothing to release. */
struct rma {
    uint32_t count;
    bool is_device;      /* this end's memory is device memory; set before all else */
    _Atomic bool landed; /* of a receive: a get, or a put with its FIN, has brought bytes */
    struct rma_lane lanes[RMA_LANES_MAX];
    uint64_t remote;           /* where the message lies at the other end */
    struct transfer *transfer; /* that the pieces belong to */
    _Alignas(8) unsigned char keys[WIRE_KEY_MAX + 8 * RMA_LANES_MAX];
};

/* The end that offers memory: registers it with the route's lanes. Leaves out lanes that refuse,
 * or whose key does not fit the message. False: none is left. */
bool rma_offer(struct rma *rma, const struct route *route, struct peer *peer, void *address,
               size_t size, uint32_t access);
bool rma_offer_lane(struct rma *rma, struct lane *lane, void *address, size_t size,
                    uint32_t access);

/* The registration by which the lane, one with `in_place`, may send this memory, which is made
 * where there is none. Null: it is not to be had, for this message. */
mca_btl_base_registration_handle_t *rma_in_place(struct rma *rma, struct lane *lane, void *address,
                                                 size_t size);

/* Writes the keys for a message on the first of these lanes. Tells the peer the indices of the
 * other lanes, once. */
void rma_write_keys(const struct rma *rma, struct wire_key *key, unsigned char bytes[WIRE_KEY_MAX]);

/* The end that gets or puts: takes the lanes whose keys the peer has sent on `lane` (null:
 * unknown), as far as it knows which lane is which. */
void rma_read_keys(struct rma *rma, struct peer *peer, struct lane *lane,
                   const struct wire_key *key, const unsigned char *bytes);

/* Leaves out lanes that cannot get (put) these bytes in place, or cannot register this end's
 * memory where they need that. False: none is left. */
bool rma_can_get(struct rma *rma, void *local, size_t size);
bool rma_can_put(struct rma *rma, void *local, size_t size);

/* As `start` of struct transfer_steps: starts a get (put) of up to *size bytes at `offset` of
 * `total`; its callback ends the piece of rma->transfer. */
int rma_get(struct rma *rma, char *local, size_t offset, size_t total, size_t *size);
int rma_put(struct rma *rma, const char *local, size_t offset, size_t total, size_t *size);

/* After a failure, with nothing under way at this end. OMPI_SUCCESS: earlier puts write nothing
 * any more. LANE_AGAIN: not yet. */
int rma_fence(struct rma *rma);

/* Releases the registrations. Nothing may be under way. */
void rma_release(struct rma *rma);

/* By which all of it goes; null: by several. */
static inline struct lane *rma_only_lane(const struct rma *rma)
{
    return rma->count == 1 ? rma->lanes[0].lane : NULL;
}

#endif
