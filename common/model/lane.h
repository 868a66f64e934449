/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane as the model sees it: numbers and abilities, whatever BTL provides them. */
#ifndef COMMON_MODEL_LANE_H
#define COMMON_MODEL_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/attribute.h"
#include "common/model/error.h"

/* Most lanes that one plan considers, and size ranges that one way of a lane distinguishes. (A lane
 * file gives all ways the same ranges; so many are what lines of every way come to.) */
#define MODEL_LANES_MAX       16
#define MODEL_LANE_RANGES_MAX 40

/* Where a value comes from, the strongest first: a stronger source replaces a weaker one. */
enum model_source {
    MODEL_SOURCE_USER,       /* a parameter or the file that the user wrote */
    MODEL_SOURCE_PROFILE,    /* a profile that multilane-calibrate measured earlier */
    MODEL_SOURCE_MEASURED,   /* measured by this job */
    MODEL_SOURCE_DECLARED,   /* a BTL of ours says so */
    MODEL_SOURCE_LINK,       /* the speed that the kernel says the device's link runs at */
    MODEL_SOURCE_STOCK_BTL,  /* converted from what another BTL says */
    MODEL_SOURCE_DEFAULT,    /* our table of defaults */
    MODEL_SOURCE_UNMEASURED, /* only a measurement would tell */
    MODEL_SOURCES
};

const char *model_source_name(enum model_source source);

/* The ways of moving bytes that may cost differently on one lane; the first three in the order of
 * include/multilane/extension.h. */
enum model_way {
    MODEL_BY_SEND, /* active messages */
    MODEL_BY_GET,  /* the reader works */
    MODEL_BY_PUT,  /* the writer works */
    MODEL_BY_BOTH, /* both work at once; where it was not measured, as a get beside a put */
    MODEL_WAYS
};

/* "send", "get", "put", "both". */
const char *model_way_name(enum model_way way);

/* What one way costs. The last range ends at UINT64_MAX. */
struct model_lane_cost {
    uint32_t range_count; /* 0: the lane cannot go this way */
    struct model_lane_range ranges[MODEL_LANE_RANGES_MAX];
};

/* What the lane can do toward this peer. Protocols name what they need in these words. */
enum model_ability {
    MODEL_CAN_SEND = 1 << 0,    /* active messages */
    MODEL_CAN_SHORT = 1 << 1,   /* header and data at once, without a descriptor */
    MODEL_CAN_GET = 1 << 2,     /* reads the peer's memory, truly: not emulated by messages */
    MODEL_CAN_PUT = 1 << 3,     /* writes the peer's memory, truly */
    MODEL_CAN_ATOMICS = 1 << 4, /* changes words of the peer's memory */
    MODEL_CAN_CONTROL = 1 << 5, /* a control line that both ends have mapped */
    MODEL_CAN_COPY = 1 << 6,    /* synchronous copy_from and copy_to */
    MODEL_CAN_DELIVER = 1 << 7, /* completed means delivered */
    MODEL_CAN_FENCE = 1 << 8,
    MODEL_CAN_RING = 1 << 9, /* messages are copied into a ring in shared memory and out of it */
    MODEL_ABILITIES = 10     /* how many there are */
};

/* The name of the lowest of these bits. */
const char *model_ability_name(uint32_t abilities);

/* Kinds of memory, as bits: what a lane reaches directly, or where one buffer lies. */
enum model_memory {
    MODEL_MEMORY_HOST = 1 << 0,
    MODEL_MEMORY_CUDA = 1 << 1,
    MODEL_MEMORY_MANAGED = 1 << 2, /* moves between both; a lane reaches it if it says so */
    MODEL_MEMORIES = 3             /* how many there are */
};

const char *model_memory_name(uint32_t memories);
/* The number of the bit of that name; MODEL_MEMORIES: there is none. */
int model_memory_find(const char *name);

/* For which part of the traffic the lane is meant. */
enum model_use { MODEL_USE_EAGER = 1 << 0, MODEL_USE_RNDV = 1 << 1, MODEL_USE_BOTH = 3 };

/* By its name: eager, rndv, both. False: it has none. */
bool model_use_find(const char *name, uint32_t *use);

/* What this lane and its peer are like. */
struct model_lane {
    char name[48];  /* as reports call it: "shm", "verbs:mlx5_0:1" */
    uint32_t can;   /* enum model_ability */
    uint32_t reach; /* enum model_memory */
    uint32_t use;   /* enum model_use */
    bool verify;    /* its messages have sums */

    uint32_t distance; /* of its device from this process; 0 is near */
    uint32_t card;     /* lanes of one number other than 0 are ports of one card */
    uint32_t group;    /* lanes of one group other than 0 share what carries them */

    /* Largest payload of one immediate send, of one fragment that the lane copies, of one piece
     * that it moves in place. 0: it has none. */
    uint64_t short_max_bytes;
    uint64_t copied_max_bytes;
    uint64_t zcopied_max_bytes;
    uint32_t pieces_max; /* pieces of memory that it gathers in place into one; at least 1 */

    /* A registration that is found in the cache costs this and does not grow; below 0: the lane has
     * no cache, every message registers anew. */
    double reg_cached_s;

    /* What the sender's copy of a message into the lane's fragments takes a byte, where the lane
     * could send it from where it lies: a plan chooses between that copy and a registration. 0: its
     * sends are in place, or copied, as zcopied_max_bytes says, and there is nothing to choose. */
    double copy_growth_s_byte;

    /* What the lane's device carries in each direction for all processes of a node that use it; 0:
     * the lane is each process's own. The bandwidths in `cost` are what one process gets when it is
     * alone; model_lane_share makes them its share. */
    double shared_bytes_s;

    struct model_lane_cost cost[MODEL_WAYS];
    /* Of each way, range and attribute: enum model_source. */
    uint8_t source[MODEL_WAYS][MODEL_LANE_RANGES_MAX][MODEL_ATTRIBUTES];
};

/* Lanes of one group count together at most this. A group that was not measured carries what its
 * fastest lane carries alone. */
struct model_group {
    uint32_t id;
    double bandwidth_bytes_s;
};

struct model_groups {
    const struct model_group *list;
    uint32_t count;
};

/* A lane with no ability, host memory, both uses, no cache, no costs, every source the default. */
void model_lane_init(struct model_lane *lane, const char *name);

/* Gives one way, or send, get and put with `MODEL_WAYS`, a single range from 1 byte to UINT64_MAX.
 */
void model_lane_set_cost(struct model_lane *lane, enum model_way way,
                         const struct model_lane_range *range);

/* Says where an attribute of one way comes from in all ranges, or of every way with MODEL_WAYS;
 * every attribute with MODEL_ATTRIBUTES. */
void model_lane_set_source(struct model_lane *lane, enum model_way way,
                           enum model_attribute attribute, enum model_source source);

/* Has an attribute of the lane this source? */
bool model_lane_has_source(const struct model_lane *lane, enum model_source source);

/* Who uses a shared device: so many processes of a node, and whether the peer is one of them. */
struct model_sharers {
    uint32_t processes; /* 0 counts as 1 */
    bool same_node;     /* a message passes the device twice, out and in */
};

/* Of more processes than this it is not assumed that all of them send at the same time. */
#define MODEL_SHARERS_MOST 8

/* Lowers every bandwidth of the lane that is above what one of them gets of its device. */
void model_lane_share(struct model_lane *lane, struct model_sharers sharers);

/* Is every value one that the model can compute with? Negative, NaN and (but for bandwidth)
 * infinite values, zero bandwidth, ranges out of order: refused by lane, attribute and value. */
bool model_lane_check(const struct model_lane *lane, struct error_text *error);

/* The range that holds for a message of `bytes`; null if the lane cannot go this way. */
const struct model_lane_range *model_lane_range_at(const struct model_lane *lane,
                                                   enum model_way way, uint64_t bytes);

/* The first end, from `bytes` on, of a range of the first so many ways. */
uint64_t model_lane_next_end(const struct model_lane *lane, int ways, uint64_t bytes);

#endif
