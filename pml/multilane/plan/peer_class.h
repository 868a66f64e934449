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

/* What a plan says for one range of sizes, in the words of the data path. */
struct route {
    size_t untimed;    /* of a plan's first one: shorter messages take it, and are not timed */
    size_t largest;    /* of the last one: SIZE_MAX */
    size_t eager_mask; /* 0 where the data waits for the receiver, else all ones */
    int (*post)(const struct outgoing *out, const struct route *route); /* the protocol's */
    uint8_t lane_count;
    bool in_place;                  /* the plan has chosen that, against a copy */
    bool counted;                   /* some route of the plan stripes: pieces are marked */
    uint8_t buffer;                 /* enum class_buffer */
    uint8_t lanes[MODEL_LANES_MAX]; /* indices into the peer's lanes */
    _Atomic uint64_t messages;      /* sent this way; for people, so exact only without threads */
    _Atomic uint64_t bytes;
    const struct protocol *protocol;
    const struct plan_entry *entry;
    struct route *next; /* of those that are tried */
};

/* A plan and its routes, one for each entry. Another may take its place; requests go on by the
 * routes that they began with, so all stay until the class ends. */
struct planned {
    struct planned *before; /* the one whose place it took */
    struct plan *plan;
    struct route routes[];
};

/* What a message's memory may look like, as far as plans differ by it. */
enum class_buffer {
    CLASS_CONTIGUOUS, /* in host memory, */
    CLASS_PACKED,     /* there in several pieces, */
    CLASS_SYNC, /* the same two, of a send that ends when its message was matched with its receive;
                 */
    CLASS_SYNC_PACKED,
    CLASS_LEAVING, /* contiguous in host memory, large, of a sender that may compute next, */
    CLASS_STREAM,  /* and while other messages to the peer are under way: contiguous, */
    CLASS_STREAM_PACKED,
    CLASS_DEVICE, /* in device memory, */
    CLASS_DEVICE_PACKED,
    CLASS_SENDS, /* so many are of messages that this process sends; and of what it receives: */
    CLASS_TO_DEVICE = CLASS_SENDS, /* what is announced from host memory, to a device, */
    CLASS_FROM_DEVICE,             /* and from a device, to host memory */
    CLASS_BUFFERS
};

/* Messages that are long enough to be timed, of one range of sizes. Both relaxed: a message more or
 * less between two that are timed does no harm. */
struct tally {
    _Atomic uint64_t messages;
    _Atomic uint64_t timed_at; /* the number of the next one that is timed */
};

struct peer_class {
    struct peer_class *next;
    uint32_t peers; /* how many share it now; their lanes may have changed since */
    enum profile_placement placement; /* of these peers */
    struct model_group group;         /* what all lanes carry together; bandwidth 0: not measured */
    uint8_t lane_count;
    uint8_t control;                /* the lane for control messages */
    bool has_device_lane;           /* which stands behind the others in what follows */
    struct cost_line device_copy;   /* between host and device */
    mca_btl_base_module_t **btls;   /* of the lanes, and */
    uint32_t *flags;                /* what BML r2 made of their flags */
    struct model_lane *lanes;       /* what the model was given of them, */
    struct model_lane *mixed;       /* and for messages between host and device; null: the same */
    struct lane_observed *observed; /* and what peers that are gone have shown */
    /* Null for device memory where there is no driver, and for those who leave where that makes no
     * difference. Release, with the component's lock held: another plan; acquire: class_planned. */
    struct planned *_Atomic planned[CLASS_BUFFERS];
    /* Routes of no plan, that some messages try: the newest first. Release, under a lock of
     * learning.c; acquire. */
    struct route *_Atomic tried[CLASS_BUFFERS];
    struct tally tally[CLASS_BUFFERS][LEARNED_BUCKETS];
    bool is_recalled; /* it knows what earlier jobs have learned */
    bool is_forced;   /* by the user, or by a program that measures: plans stay */
    bool is_measured; /* by such a program: each message is timed */
    double answer_s;  /* what a short message takes from another host; the lock of timer.c */
    /* By plan/learning.c; null: no message of the kind was timed yet. */
    struct learning *_Atomic learning[CLASS_BUFFERS];
    /* What plans know of it. Written and read with the component's lock, but for the pointer. */
    const struct model_learned *_Atomic learned[CLASS_BUFFERS];
    /* Bytes that stripes took over each lane, as the page was filled last. */
    uint64_t striped[MODEL_LANES_MAX];
    struct plan_move *moves; /* of its plans, the last one first */
    uint32_t move_count;
};

/* A plan has changed by what messages have taken. */
struct plan_move {
    struct plan_move *next;
    double at_s; /* since MPI_Init */
    enum class_buffer buffer;
    uint32_t bucket;                     /* the first range of sizes that goes another way; */
    const struct plan_entry *from, *to;  /* so it went, and goes, */
    double from_s, to_s;                 /* for the largest size of it: the medians */
    uint32_t from_messages, to_messages; /* of so many */
};

static inline bool class_is_stream(enum class_buffer buffer)
{
    return buffer == CLASS_STREAM || buffer == CLASS_STREAM_PACKED;
}

static inline bool class_is_received(enum class_buffer buffer)
{
    return buffer >= CLASS_SENDS;
}

/* Speeds that lanes have shown while they carried parts of messages, by stripe.c: by messages, and
 * by gets and puts. */
struct lane_observed {
    double bytes_s[2]; /* the sum of so many peers' */
    uint32_t peers[2];
};

/* The lane with its device ("tcp:eth0"), by its peer's class. */
const char *class_lane_name(const struct lane *lane);

/* The lane of device memory among them. */
static inline int class_lanes_described(const struct peer_class *class)
{
    return class->lane_count + class->has_device_lane;
}

/* The class of a peer with the lanes that it has now; null if they cannot carry messages of all
 * sizes, which was said. With the component's lock held. */
struct peer_class *class_of_peer(const struct peer *peer);

/* A plan for such messages; `stay` as in the plan's input. Null: there is none, which was said. */
struct planned *class_plan(const struct peer_class *class, enum class_buffer buffer, double stay);
/* From now on messages go by it. With the component's lock held. */
void class_set_plan(struct peer_class *class, enum class_buffer buffer, struct planned *planned);

/* With what the data path walks; takes the plan over. Null: no memory, or no plan. */
struct planned *planned_of_plan(struct plan *plan, enum class_buffer buffer);
void planned_free(struct planned *planned);
/* A route by an entry of no plan, to be tried. Null: no memory. */
struct route *route_of_entry(const struct peer_class *class, const struct plan_entry *entry,
                             enum class_buffer buffer);

/* What plans depend on beside lanes and buffers. */
void class_surroundings(struct model_surroundings *around);

/* The inputs of the plan for such messages, for reports. */
void class_plan_input(const struct peer_class *class, enum class_buffer buffer,
                      struct plan_input *input);

/* Do plans for such peers follow what messages take? Not within a node where calls leave the
 * processor (lane/waiting.h): there a message's time is that of the processes that have it before
 * the two ends. Between nodes lanes differ by more than that. */
bool class_learns(const struct peer_class *class);

/* Does this process write a report of how messages went? */
bool reports_are_written(void);

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

static inline struct planned *class_planned(const struct peer_class *class,
                                            enum class_buffer buffer)
{
    return atomic_load_explicit(&class->planned[buffer], memory_order_acquire);
}

/* For a message: a class whose peers cannot be left may be the peer's since its buffer was chosen.
 */
static inline struct planned *class_planned_for(const struct peer_class *class,
                                                enum class_buffer buffer)
{
    struct planned *planned = class_planned(class, buffer);
    return OPAL_LIKELY(planned != NULL) ? planned : class_planned(class, CLASS_CONTIGUOUS);
}

static inline struct route *class_route_at(struct peer_class *class, enum class_buffer buffer,
                                           size_t size)
{
    struct route *route = class_planned_for(class, buffer)->routes;
    while (size > route->largest)
        route++;
    return route;
}

/* Every route that messages may have gone by, one after the other: those of the plan, of the plans
 * whose place it took, and those that were tried. The first one (null), or the one behind `at`;
 * null: no more.
 */
const struct route *class_route_next(const struct peer_class *class, enum class_buffer buffer,
                                     const struct route *at);

/* A message is now sent this way: each is counted once. The number of it. */
static inline uint64_t route_count(struct route *route, size_t size)
{
    counter_add(&route->bytes, size);
    return counter_add(&route->messages, 1) + 1;
}

static inline struct lane *route_lane(const struct route *route, const struct peer *peer, int index)
{
    return &peer->lanes[route->lanes[index]];
}

void classes_fini(void);

#endif
