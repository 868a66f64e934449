/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan is made from: lanes, surroundings, and what the user forces. */
#ifndef COMMON_MODEL_PLAN_INPUT_H
#define COMMON_MODEL_PLAN_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cost.h"
#include "common/model/error.h"
#include "common/model/lane.h"
#include "common/model/protocol.h"
#include "common/model/learned.h"

/* A protocol forced for first_bytes to last_bytes. Where it cannot carry a size the plan chooses as
 * if it had not been forced and says so in its note. Later overrides win over earlier ones. */
struct plan_override {
    uint32_t protocol_index;
    uint64_t first_bytes;
    uint64_t last_bytes;
};

#define PLAN_OVERRIDES_MAX 16

/* Reads "auto" (none), "NAME" (from 0 to inf) or "NAME:LO-HI,LO-HI,NAME:LO-HI,...". */
bool plan_overrides_parse(const char *text, struct plan_override overrides[PLAN_OVERRIDES_MAX],
                          uint32_t *count, struct error_text *error);

struct plan_input {
    const struct model_lane *lanes;
    uint32_t lane_count; /* at most MODEL_LANES_MAX */

    struct model_surroundings around;
    enum cost_view view;

    const struct plan_override *overrides;
    uint32_t override_count;

    /* Most lanes that a message uses; 0: as many as pay. */
    uint32_t most_eager_lanes;
    uint32_t most_rndv_lanes;

    /* Use every lane that a protocol allows (up to the bounds above) instead of as many as pay: the
     * sets of the equation. */
    bool every_lane;

    uint32_t without; /* bit i: leave protocol i of the table out */

    /* What is planned is how a message is received that its sender has announced: by a rendezvous,
     * whatever its size. */
    bool is_announced;

    /* What messages have taken; null: nothing is known of that. For a plan: what is in use counts
     * as `stay` of its time, so that it changes for a gain only, and what was not tried does not
     * take the place of what was. 0: only to predict. */
    const struct model_learned *learned;
    double stay;
};

/* An input for contiguous host memory, plain sends, single messages, bias 0.99, no override and no
 * lane: what the caller then changes is what it means. */
void plan_input_init(struct plan_input *input);

/* Can a plan be made from it? If not, *error names the lane or the value that is wrong. */
bool plan_input_check(const struct plan_input *input, struct error_text *error);

#endif
