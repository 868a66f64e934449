/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory the processes of this one's control group may use together. */
#ifndef COMMON_LANE_MEMORY_LIMIT_H
#define COMMON_LANE_MEMORY_LIMIT_H

#include <stdint.h>

#define MEMORY_LIMIT_NONE UINT64_MAX

/* The least limit of the group and those above it, in bytes. `groups` is a file like
 * /proc/self/cgroup, `mount` where the groups are found (/sys/fs/cgroup). */
uint64_t memory_limit_read(const char *groups, const char *mount);

#endif
