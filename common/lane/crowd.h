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

/* The processors that the quotas of the cgroups allow, of each level from that of the process up,
 * least first; infinite where none has one. `groups` is the text of /proc/self/cgroup, `mount`
 * where the cgroups are (/sys/fs/cgroup). */
double crowd_quota(const char *groups, const char *mount);

#endif
