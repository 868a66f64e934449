/* SPDX-License-Identifier: BSD-3-Clause */
/* What one process can measure alone, in little time, where no profile is: what the kernel's
 * copying from one process to another costs. */
#ifndef COMMON_LANE_STARTUP_H
#define COMMON_LANE_STARTUP_H

#include <stdbool.h>

#include "common/model/cost.h"
#include "common/model/lane.h"

/* No process spends more than this on it. */
#define STARTUP_MOST_S 2e-3

struct startup_costs {
    bool was_tried;
    /* process_vm_readv of up to STARTUP_SMALL_BYTES; growth 0: not measured */
    struct cost_line remote;
};

#define STARTUP_SMALL_BYTES (UINT64_C(64) << 10)

/* Measures, the first time that it is called with these costs. False: nothing could be measured. */
bool startup_measure(struct startup_costs *costs);

/* Puts what was measured into a lane inside this node, if the lane reads and writes the peer's
 * memory by the kernel: the fixed part of a get or put, and the bandwidth of pieces up to
 * STARTUP_SMALL_BYTES where the BTL's own estimate is above it. */
void startup_apply(const struct startup_costs *costs, struct model_lane *lane);

#endif
