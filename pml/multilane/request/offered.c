/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a peer's offered messages. */
#include "request/offered.h"

#include <stdlib.h>

/* The lane by which a rest of this peer is taken; null: none. */
static struct lane *taking_lane(struct peer *peer)
{
    uint8_t count =
        atomic_load_explicit(&peer->lane_count, memory_order_acquire); /* peer_take_lanes */
    for (uint8_t i = 0; i < count; i++) {
        struct lane *lane = &peer->lanes[i];
        if (lane->extension && lane->extension->control_find && lane->extension->copy_from)
            return lane;
    }
    return NULL;
}

static struct peer_offers *offers_of(struct peer *peer)
{
    if (peer->offers)
        return peer->offers;
    peer->offers = calloc(1, sizeof(*peer->offers));
    if (peer->offers)
        peer->offers->peer = peer;
    return peer->offers;
}

struct offered *offered_new(struct peer *peer, const struct wire_offer *offer, uint64_t size,
                            void (*taken)(struct offered *offered, uint64_t from, bool good))
{
    struct lane *lane = taking_lane(peer);
    struct offered *offered = lane && offers_of(peer) ? calloc(1, sizeof(*offered)) : NULL;
    if (OPAL_UNLIKELY(!offered))
        return NULL;
    offered->peer = peer;
    offered->lane = lane;
    offered->offer = *offer;
    offered->size = size;
    offered->taken = taken;
    struct offered **last = &peer->offers->first; /* the older ones first */
    while (*last)
        last = &(*last)->next;
    *last = offered;
    return offered;
}

void offered_end(struct offered *offered)
{
    struct offered **at = &offered->peer->offers->first;
    while (*at != offered)
        at = &(*at)->next;
    *at = offered->next;
    free(offered);
}
