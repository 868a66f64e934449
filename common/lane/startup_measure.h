/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring what startup.h describes. */
#ifndef COMMON_LANE_STARTUP_MEASURE_H
#define COMMON_LANE_STARTUP_MEASURE_H

#include "common/lane/startup.h"

/* It takes 3 to 5 ms, the more the larger a ring is, and on a busy machine no longer than this. */
#define STARTUP_MOST_S 50e-3

/* For jobs of so many processes on the node. False, and all zero but for change_s: it cannot be
 * measured, or the machine is too busy for a steady answer. */
bool startup_measure(uint32_t processes, struct startup_costs *costs);

/* One way of an empty message, now; 0: it cannot be measured. */
double startup_empty_s(void);

#endif
