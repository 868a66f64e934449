/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol as the model sees it: what it needs of lanes and what it costs over them. */
#ifndef COMMON_MODEL_PROTOCOL_H
#define COMMON_MODEL_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/error.h"
#include "common/model/lane.h"

/* The protocols of this product: the one list of them, for the model's table and for that of the
 * PML (pml/multilane/protocol/table.c). Its order settles ties of equal kind. EACH(index, object).
 */
#define MODEL_PROTOCOL_LIST(EACH)                                                                  \
    EACH(EAGER_SHORT, eager_short)                                                                 \
    EACH(EAGER_COPY, eager_copy)                                                                   \
    EACH(EAGER_ZCOPY, eager_zcopy)                                                                 \
    EACH(RNDV_AM, rndv_am)                                                                         \
    EACH(RNDV_GET, rndv_get)                                                                       \
    EACH(RNDV_PUT, rndv_put)                                                                       \
    EACH(RNDV_BOTH, rndv_both)                                                                     \
    EACH(RNDV_STAGED, rndv_staged)

#define MODEL_PROTOCOL_INDEX(index, object) MODEL_##index,
enum model_protocol_index { MODEL_PROTOCOL_LIST(MODEL_PROTOCOL_INDEX) MODEL_PROTOCOLS };

enum model_protocol_kind { MODEL_EAGER, MODEL_RNDV };

/* What a message's memory looks like. */
struct model_buffer {
    enum model_memory memory;
    uint32_t pieces; /* 1: contiguous; 0: many, or not counted */
};

/* "contiguous host memory", for errors and reports. */
const char *model_buffer_name(struct model_buffer buffer);

/* What keeps a protocol from carrying more. */
enum model_bound {
    MODEL_BOUND_LANE,     /* the largest message that the lane takes this way */
    MODEL_BOUND_CREDIT,   /* eager: what a receiver promises to keep (flow.h) */
    MODEL_BOUND_EAGER_MAX /* eager: what the user sets */
};

/* Whose calls of MPI move the bytes of a message after its match. */
enum model_calls {
    MODEL_CALLS_BOTH,     /* both ends', again and again */
    MODEL_CALLS_SENDER,   /* one of the sender's; then the device moves them */
    MODEL_CALLS_RECEIVER, /* likewise */
    MODEL_CALLS_EITHER    /* whichever end calls moves all */
};

enum model_operation {
    MODEL_OPERATION_SEND,     /* complete when the buffer may be used again */
    MODEL_OPERATION_SEND_SYNC /* complete when it has met its receive: an eager one is acknowledged
                               */
};

const char *model_operation_name(enum model_operation operation);

/* d of the threshold equation: what a rendezvous counts as, and the most that it can be set to. */
#define MODEL_BIAS_DEFAULT 0.99
#define MODEL_BIAS_MAX     100

/* A protocol that needs the calls of a sender that has left counts as so much slower: it is taken
 * where it clearly wins. How long the sender computes is not known. */
#define MODEL_LEAVING_FACTOR 1.5

/* Everything that a protocol's cost may depend on beside its lanes. */
struct model_surroundings {
    struct model_buffer buffer; /* at the sender, */
    enum model_memory receiver; /* and at the receiver; 0: such memory too */
    enum model_operation operation;
    double bias;              /* d: multiplies every rendezvous */
    bool registration_cached; /* count reg_cached_s where a lane has it */
    bool handshake_on_all;    /* as the equation has it; a job's goes by one lane */
    bool sender_leaves;       /* MPI, once it has started the message */
    bool wire_is_processors;  /* in a stream: those of both ends move the bytes */
    bool copies;              /* lanes that can send in place or copy do the latter */
    /* A processor's copy into or out of what a lane sends, by bit number of enum model_memory. All
     * 0: what the lanes measured for sends holds the copies already. fixed_s below 0: this memory
     * cannot be copied here (no driver). */
    struct cost_line copy[MODEL_MEMORIES];
    uint64_t stage_bytes;          /* one slot of the staging ring; 0: 512 KiB */
    uint32_t header_bytes;         /* of the PML, in every first fragment */
    uint64_t eager_max_bytes;      /* no eager protocol above; 0: no such bound */
    enum model_bound eager_max_is; /* what sets it */
    struct model_groups groups;
};

/* No eager message is larger than `bytes`, which is such a bound; the least bound holds. */
void model_bound_eager(struct model_surroundings *around, enum model_bound is, uint64_t bytes);

/* What registering with one lane costs one end of a message: {0, 0} for a lane that need not. */
struct cost_line model_registration(const struct model_lane *lane,
                                    const struct model_lane_range *range,
                                    const struct model_surroundings *around);

/* Can the lane both send such a message from where it lies and copy it into its fragments? */
bool model_lane_chooses(const struct model_lane *lane, const struct model_surroundings *around);

/* The selector: which lanes a protocol can use. */
struct model_needs {
    uint32_t all_of;    /* enum model_ability */
    enum model_way way; /* whose costs count, and give the lane its score */
    bool device_only;   /* for memory of devices alone */
    bool in_place;      /* the lane itself must reach the buffer, all its pieces; else copies do */
    bool one_fragment;  /* of one lane, header and data: no larger message */
    bool may_copy;      /* sends in place, or copies: whichever a plan finds cheaper */
};

/* A message over some lanes, at least one. */
struct model_message {
    const struct model_lane *const *lanes;
    uint32_t lane_count;
    const struct model_surroundings *around;
    uint64_t bytes;
};

/* One way of moving a message: a constant in protocol.c. */
struct model_protocol {
    const char *name;
    enum model_protocol_kind kind;
    enum model_calls calls;
    struct model_needs needs;

    /* Adds what the message costs, and bounds how far from its size on the same lines hold, by the
     * functions of cost.h between cost_begin and cost_end. The bias is none of its terms. */
    void (*cost)(const struct model_message *of, struct cost *cost);
};

/* The table, MODEL_PROTOCOLS long. */
extern const struct model_protocol *const model_protocols[MODEL_PROTOCOLS];

/* The index of `name` in the table, or below 0 with a sentence that lists the known names. */
int model_protocol_find(const char *name, struct error_text *error);

/* The largest message that the lane takes this way. False: not even an empty one fits. */
bool model_protocol_fits(const struct model_protocol *protocol, const struct model_lane *lane,
                         uint32_t header_bytes, uint64_t *most_bytes);

/* Can this protocol use this lane for such a message? If not, *error names what the lane lacks. */
bool model_protocol_allows(const struct model_protocol *protocol, const struct model_lane *lane,
                           const struct model_surroundings *around, struct error_text *error);

#endif
