/* SPDX-License-Identifier: BSD-3-Clause */
/* A broadcast over a binomial tree, as the cluster model predicts it. */
#ifndef TOOLS_MODEL_BROADCAST_H
#define TOOLS_MODEL_BROADCAST_H

#include "tools/model/cluster.h"

/* Binomial broadcast of `packets` packets to `processes` processes, without the copy at the root
 * (ctm of the message, which both formulas add first). */
struct cluster_broadcast {
    bool undisturbed;   /* (2.8) applies, not (2.9) */
    double printed_s;   /* the formula as printed, log2 p not rounded */
    double simulated_s; /* packet by packet through the tree: the truth */
};

/* The simulation walks every packet at every process; more than this would take minutes. */
#define CLUSTER_STEPS_MAX (UINT64_C(1) << 24)

/* False with a sentence: processes or packets are 0, both together are more than CLUSTER_STEPS_MAX,
 * or there is no memory. */
bool cluster_broadcast(const struct cluster_point *point, uint32_t processes, uint64_t packets,
                       struct cluster_broadcast *result, struct model_error *error);

#endif
