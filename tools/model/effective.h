/* SPDX-License-Identifier: BSD-3-Clause */
/* From the measured times of protocols over one lane to attributes that reproduce them. */
#ifndef TOOLS_MODEL_EFFECTIVE_H
#define TOOLS_MODEL_EFFECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/model/fit.h"
#include "common/model/plan.h"

/* One-way times of one protocol over one lane, in any order; several of a size are welcome. */
struct effective_curve {
    const struct sample *samples;
    uint32_t count; /* 0: it was not measured */
};

/* How far the model is from what was measured, of one protocol. */
struct effective_quality {
    uint32_t sizes;       /* that the protocol can carry and were measured */
    double median, worst; /* of |predicted / measured - 1|, measured being the median of the size */
    uint64_t worst_bytes;
};

/* Half of the samples farther off their line than this: worth measuring again; and not a lane that
 * a model holds for. In between, what was measured is still nearer to the truth than any table. */
#define EFFECTIVE_RESIDUAL_GOOD 0.10
#define EFFECTIVE_RESIDUAL_MOST 0.33

/* Replaces the costs of `lane` by those with which the lines of the protocols, before the bias,
 * give the measured times:
 *
 *   sends    of each size from the first eager protocol of the table that carries it (their lines
 *            are one), above all of them from rndv-am; the latency from rndv-am's handshake
 *   gets     from rndv-get, puts from rndv-put, both ends from rndv-both; the part of a handshake
 *            that is latency is taken to be that of sends
 *
 * in as many ranges of sizes as it takes. Ways whose protocol was not measured keep what they had.
 * Registration, and the sender's copy where the lane can choose, are kept: they are measured by
 * themselves, and `around` says which registration the times have in them, a new one or one found
 * in the cache. False: the sentence names protocol and range of the samples that no line fits; the
 * lane is then untouched. */
bool effective_fit(const struct effective_curve curves[MODEL_PROTOCOLS],
                   const struct model_surroundings *around, double most_residual,
                   struct model_lane *lane, struct model_error *error);

/* What the model says of this protocol over this lane alone, before the bias; not a number where
 * the protocol cannot carry the size. */
double effective_predict(const struct model_lane *lane, const struct model_surroundings *around,
                         uint32_t protocol, uint64_t bytes);

void effective_judge(const struct model_lane *lane, const struct model_surroundings *around,
                     uint32_t protocol, const struct effective_curve *curve,
                     struct effective_quality *quality);

/* Between which sizes a switch point may lie: as long as the two protocols differ by less than
 * both are known to (`relative_error` of their times). Both included; `bytes` is between them. */
void effective_confidence(const struct model_lane *lane, const struct model_surroundings *around,
                          uint32_t protocol_below, uint32_t protocol_above, uint64_t bytes,
                          double relative_error, uint64_t *least, uint64_t *most);

#endif
