/* SPDX-License-Identifier: BSD-3-Clause */
/* Crowded: the processes of the job on this node are more than the processors that they may use. A
 * process that waits then keeps another one from working. */
#ifndef COMMON_LANE_CROWD_H
#define COMMON_LANE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/* Whether so many processes of the job, started by the launcher of this one, are a crowd here. Asks
 * what they may run on together, which a cpuset narrows, and what quota their cgroups have; not how
 * many processors there are. Reads a few files. */
bool crowd_is(uint32_t processes);

/* The processors that the quotas of the cgroups allow, of each level from that of the process up,
 * least first; infinite where none has one. `groups` is the text of /proc/self/cgroup, `mount`
 * where the cgroups are (/sys/fs/cgroup). */
double crowd_quota(const char *groups, const char *mount);

#endif
