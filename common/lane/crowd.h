/* SPDX-License-Identifier: BSD-3-Clause */
/* Crowded: the processes of the job on this node are more than the processors that they may use
 * (crowd_processors). A process that waits then keeps another one from working. */
#ifndef COMMON_LANE_CROWD_H
#define COMMON_LANE_CROWD_H

#include <stdint.h>

/* How many processors so many processes may use, which the launcher of this one starts here: what
 * they may run on together, which a cpuset narrows, and what quota their cgroups have; not how many
 * there are. Above 0. Reads a few files. */
double crowd_processors(uint32_t processes);

#endif
