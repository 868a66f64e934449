/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring what startup.h describes. */
#ifndef COMMON_LANE_STARTUP_MEASURE_H
#define COMMON_LANE_STARTUP_MEASURE_H

#include "common/lane/startup.h"

/* It takes 2 ms, and no longer than this. */
#define STARTUP_MOST_S 15e-3

/* False, and all zero: it cannot be measured, or the machine is too busy for a steady answer. */
bool startup_measure(struct startup_costs *costs);

#endif
