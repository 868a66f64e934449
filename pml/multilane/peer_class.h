/* SPDX-License-Identifier: BSD-3-Clause */
/* A class of peers: all with equal lanes, who therefore share plans. */
#ifndef MULTILANE_PEER_CLASS_H
#define MULTILANE_PEER_CLASS_H

#include "common/compat/pml.h"

#include "peer.h"

struct protocol;

/* The largest message of eager-short, whatever a lane would take: it is built on the stack. */
#define EAGER_SHORT_MAX 512

#define ROUTE_LANES_MAX 16

/* What a plan says for one range of sizes. */
struct route {
    size_t largest; /* of the last one: SIZE_MAX */
    const struct protocol *protocol;
    uint8_t lane_count;
    uint8_t lanes[ROUTE_LANES_MAX]; /* indices into the peer's lanes */
    uint64_t messages;              /* sent this way; a count for people, not exact among threads */
    uint64_t bytes;
};

struct route_list {
    int count;
    struct route *routes;
};

struct peer_class {
    struct peer_class *next;
    uint8_t lane_count;
    mca_btl_base_module_t **btls;
    uint32_t *flags;
    uint32_t peers; /* how many share it */
    struct route_list contiguous;
    struct route_list packed; /* messages that are not contiguous in memory */
};

/* The class of a peer whose lanes are known; null if its lanes cannot carry messages of all sizes,
 * which was said. */
struct peer_class *class_of_peer(const struct peer *peer);

static inline struct route *class_route(struct peer_class *class, bool is_contiguous, size_t size)
{
    struct route *route = is_contiguous ? class->contiguous.routes : class->packed.routes;
    while (size > route->largest)
        route++;
    route->messages++;
    route->bytes += size;
    return route;
}

static inline struct lane *route_lane(const struct route *route, const struct peer *peer, int index)
{
    return &peer->lanes[route->lanes[index]];
}

void classes_fini(void);

#endif
