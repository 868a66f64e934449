/* SPDX-License-Identifier: BSD-3-Clause */
/* Under which kernel, and in which of its namespaces, this process runs: processes that are to
 * share memory compare it. */
#ifndef COMMON_LANE_HOST_H
#define COMMON_LANE_HOST_H

#include <stdint.h>

#define HOST_BOOT_BYTES 40u

/* The number of our namespace of that kind ("pid", "user"). A kernel without namespaces has one of
 * each: 0 for every process. */
uint64_t host_namespace(const char *kind);

/* What differs from one start of any machine to another; empty where it cannot be read. */
void host_boot(char text[HOST_BOOT_BYTES]);

#endif
