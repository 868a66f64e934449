/* SPDX-License-Identifier: BSD-3-Clause */
/* What the cgroups of a process allow: the least of all levels from its own group up, in both
 * versions; infinite where none has a limit. `groups` is the text of /proc/self/cgroup, `mount`
 * where the cgroups are; null, both: of this process. */
#ifndef COMMON_LANE_CGROUP_H
#define COMMON_LANE_CGROUP_H

/* Bytes of memory that the processes of a group may use together. */
double cgroup_memory(const char *groups, const char *mount);

/* Processors that they may use at a time. */
double cgroup_processors(const char *groups, const char *mount);

#endif
