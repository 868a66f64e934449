/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans for classes of peers. */
#include "peer_class.h"

#include <stdlib.h>
#include <string.h>

#include "multilane.h"
#include "protocol/protocol.h"

static void class_free(struct peer_class *class)
{
    free(class->contiguous.routes);
    free(class->packed.routes);
    free(class->btls);
    free(class->flags);
    free(class);
}

static bool class_fits(const struct peer_class *class, const struct peer *peer)
{
    if (class->lane_count != peer->lane_count)
        return false;
    for (int i = 0; i < peer->lane_count; i++)
        if (class->btls[i] != peer->lanes[i].btl || class->flags[i] != peer->lanes[i].flags)
            return false;
    return true;
}

/* Switch points by the lane's limits alone, until the model chooses them. */
static bool routes_make(struct route_list *list, const struct lane *lane, bool is_contiguous)
{
    list->routes = calloc(3, sizeof(struct route));
    if (!list->routes)
        return false;
    if (lane->btl->btl_sendi)
        list->routes[list->count++] =
            (struct route){.largest = 256, .protocol = &eager_short, .lane_count = 1};
    list->routes[list->count++] =
        (struct route){.largest = lane->btl->btl_eager_limit - WIRE_EAGER_HEADER_MAX,
                       .protocol = &eager_copy,
                       .lane_count = 1};
    list->routes[list->count++] = (struct route){
        .largest = SIZE_MAX,
        .protocol = is_contiguous && lane_can_get(lane, 0, NULL, 0) ? &rndv_get : &rndv_am,
        .lane_count = 1};
    return true;
}

static struct peer_class *class_new(const struct peer *peer)
{
    struct peer_class *class = calloc(1, sizeof(*class));
    if (!class)
        return NULL;
    class->lane_count = peer->lane_count;
    class->btls = calloc(peer->lane_count, sizeof(*class->btls));
    class->flags = calloc(peer->lane_count, sizeof(*class->flags));
    if (!class->btls || !class->flags || !routes_make(&class->contiguous, &peer->lanes[0], true) ||
        !routes_make(&class->packed, &peer->lanes[0], false)) {
        class_free(class);
        return NULL;
    }
    for (int i = 0; i < peer->lane_count; i++) {
        class->btls[i] = peer->lanes[i].btl;
        class->flags[i] = peer->lanes[i].flags;
    }
    return class;
}

struct peer_class *class_of_peer(const struct peer *peer)
{
    struct peer_class *class = multilane.peer_classes;
    while (class && !class_fits(class, peer))
        class = class->next;
    if (!class) {
        class = class_new(peer);
        if (!class)
            return NULL;
        class->next = multilane.peer_classes;
        multilane.peer_classes = class;
    }
    class->peers++;
    return class;
}

void classes_fini(void)
{
    while (multilane.peer_classes) {
        struct peer_class *class = multilane.peer_classes;
        multilane.peer_classes = class->next;
        class_free(class);
    }
}
