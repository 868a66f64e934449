/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-calibrate has messages measure: one lane, and several together; and what only it
 * times itself, registrations. */
#ifndef TOOLS_CALIBRATE_MEASURE_H
#define TOOLS_CALIBRATE_MEASURE_H

#include "traffic.h"
#include "tools/lane/lane_of_times.h"

/* How much is measured. */
struct effort {
    double seconds;         /* for all lanes, at most */
    int rounds;             /* how often every size is visited */
    uint64_t largest_bytes; /* of a message */
};

/* Every protocol of one lane, sizes by turns. */
void measure_lane(struct traffic *traffic, int peer, uint32_t index, const struct effort *effort,
                  double seconds, struct lane_times *times);

/* How far apart the times of one size are, as a part of what counts: the median of all sizes. */
double measure_unsteady(const struct lane_times *times);

/* Bandwidth of large messages that go at once over these lanes, bytes a second. */
double measure_bandwidth(struct traffic *traffic, int peer, uint32_t lanes);

/* What one registration of memory with a lane costs, anew and out of its cache; and, of one that
 * chooses, the copy into its fragments. */
void measure_registration(const struct multilane_measure *pml, int peer, uint32_t index,
                          struct model_lane *lane);

#endif
