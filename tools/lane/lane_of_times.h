/* SPDX-License-Identifier: BSD-3-Clause */
/* From what messages of each protocol have taken over one lane to attributes with which the
 * protocols' lines give these times again. */
#ifndef TOOLS_LANE_LANE_OF_TIMES_H
#define TOOLS_LANE_LANE_OF_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/learned.h"
#include "common/model/plan.h"
#include "multilane/measure.h"

/* Bucket k is of messages of 2^k bytes: of the quickest round, its spread or that of the medians of
 * all rounds, whichever is larger; no messages: none went this way. */
struct lane_times {
    struct multilane_times at[MODEL_PROTOCOLS][LEARNED_BUCKETS];
};

/* Replaces the costs of `lane`: as few lines as pass all times within 5 %, each from one size to
 * another, for
 *
 *   sends    through the times of the first eager protocol of the table that carries the size, the
 *            latency from what rndv-am takes more; through those of rndv-am where it is the
 *            quicker one, and above all eager ones
 *   gets     through those of rndv-get, puts rndv-put, both ends rndv-both; as much of a handshake
 *            is latency as of sends
 *
 * Ways of fewer than two sizes keep what they had. Registration, and the sender's copy where the
 * lane can choose, are kept: they are measured by themselves, and `around` says which registration
 * the times have in them. False: the model cannot compute with what came of it. */
bool lane_of_times(const struct lane_times *times, const struct model_surroundings *around,
                   struct model_lane *lane, struct error_text *error);

/* What the model says of this protocol over this lane alone, before the bias; not a number where
 * the protocol cannot carry the size. */
double lane_predict(const struct model_lane *lane, const struct model_surroundings *around,
                    uint32_t protocol, uint64_t bytes);

#endif
