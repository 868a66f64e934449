/* SPDX-License-Identifier: BSD-3-Clause */
/* A class of peers: all have equal lanes and share plans. */
#ifndef MULTILANE_PEER_CLASS_H
#define MULTILANE_PEER_CLASS_H

#include <stdatomic.h>

#include "common/compat/pml.h"
#include "common/lane/profile.h"
#include "common/model/plan.h"
#include "base/counter.h"
#include "base/protocol.h"
#include "peer/peer.h"
#include "peer/samples.h"

/* What a plan says for one range of sizes, in the words of the data path. */
struct route {
    size_t largest;    /* of the last one: SIZE_MAX */
    size_t eager_mask; /* 0 where the data waits for the receiver, else all ones */
    /* The protocol's own, or samples_post around it where messages are timed. */
    int (*post)(const struct outgoing *out, const struct route *route);
    uint8_t lane_count;
    bool in_place;                  /* the plan has chosen that, against a copy */
    bool counted;                   /* some route of the plan stripes: pieces are marked */
    uint8_t lanes[MODEL_LANES_MAX]; /* indices into the peer's lanes */
    _Atomic uint64_t messages;      /* sent this way; for people, so exact only without threads */
    _Atomic uint64_t bytes;
    const struct protocol *protocol;
    struct samples *samples; /* behind the last route, in the same memory; null: none are taken */
};

/* What a message's memory may look like, as far as plans differ by it. */
enum class_buffer {
    CLASS_CONTIGUOUS, /* in host memory, */
    CLASS_PACKED,     /* there in several pieces, */
    CLASS_SYNC,       /* the same two, of a send that ends when its message has met its receive; */
    CLASS_SYNC_PACKED,
    CLASS_LEAVING, /* contiguous in host memory, large, of a sender that may compute next, */
    CLASS_DEVICE,  /* in device memory, */
    CLASS_DEVICE_PACKED,
    CLASS_BUFFERS
};

struct peer_class {
    struct peer_class *next;
    uint32_t peers; /* how many share it now; their lanes may have changed since */
    enum profile_placement placement; /* of these peers */
    struct model_group group;         /* what all lanes carry together; bandwidth 0: not measured */
    uint8_t lane_count;
    uint8_t control;                     /* the lane for control messages */
    bool has_device_lane;                /* which stands behind the others in what follows */
    struct model_copy device_copy;       /* between host and device */
    mca_btl_base_module_t **btls;        /* of the lanes, and */
    uint32_t *flags;                     /* what BML r2 made of their flags */
    struct model_lane *lanes;            /* what the model was told of them */
    struct lane_seen *seen;              /* and what peers that are gone have shown */
    struct plan *plans[CLASS_BUFFERS];   /* null for device memory where there is no driver, and for
                                          * those who leave where that makes no difference */
    struct route *routes[CLASS_BUFFERS]; /* one for each entry of the plan */
};

/* Speeds that lanes have shown while they carried parts of messages, by stripe.c: by messages, and
 * by gets and puts. */
struct lane_seen {
    double bytes_s[2]; /* the sum of so many peers' */
    uint32_t peers[2];
};

/* The lane of device memory among them. */
static inline int class_lanes_described(const struct peer_class *class)
{
    return class->lane_count + class->has_device_lane;
}

/* The class of a peer with the lanes that it has now; null if they cannot carry messages of all
 * sizes, which was said. With the component's lock held. */
struct peer_class *class_of_peer(const struct peer *peer);

/* What the data path walks instead of a plan; null: no memory. The caller frees it. */
struct route *routes_of_plan(const struct plan *plan);

/* What plans depend on beside lanes and buffers. */
void class_surroundings(struct model_surroundings *around);

/* The inputs of the plan for such messages, for reports. */
void class_plan_input(const struct peer_class *class, enum class_buffer buffer,
                      struct plan_input *input);

/* Is there a plan for such messages that reports are to show? */
bool class_shows(const struct peer_class *class, enum class_buffer buffer);

/* Where the plan over each lane of the profile alone, or over each of ours as it declares itself,
 * switches: one line of text, made anew in a place of its own by each call. */
const char *class_switch_points(void);

/* Shorter messages are over before a program has begun to compute. */
#define CLASS_LEAVING_BYTES ((size_t) 256 << 10)

/* What holds for messages to this peer that are sent now. */
static inline struct peer_class *peer_class_now(const struct peer *peer)
{
    return atomic_load_explicit(&peer->class, memory_order_acquire); /* peer_plan */
}

/* The first of all classes, linked by `next`. Acquire, against class_of_peer: reports walk the list
 * without the lock, and find each class whole. */
static inline struct peer_class *classes_first(void)
{
    return atomic_load_explicit(&multilane.peer_classes, memory_order_acquire);
}

static inline struct route *class_route_at(struct peer_class *class, enum class_buffer buffer,
                                           size_t size)
{
    struct route *route = class->routes[buffer];
    while (size > route->largest)
        route++;
    return route;
}

/* The same, for a message that is now sent this way: each is counted once. */
static inline struct route *class_route_use(struct peer_class *class, enum class_buffer buffer,
                                            size_t size)
{
    struct route *route = class_route_at(class, buffer, size);
    counter_add(&route->messages, 1);
    counter_add(&route->bytes, size);
    return route;
}

static inline struct lane *route_lane(const struct route *route, const struct peer *peer, int index)
{
    return &peer->lanes[route->lanes[index]];
}

void classes_fini(void);

#endif
