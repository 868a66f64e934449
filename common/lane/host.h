/* SPDX-License-Identifier: BSD-3-Clause */
/* Under which kernel, and in which of its namespaces, this process runs: processes that are to
 * share memory compare it. And what the kernel gives, or other ways where it refuses a call. */
#ifndef COMMON_LANE_HOST_H
#define COMMON_LANE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_BOOT_BYTES 40u

/* The number of our namespace of that kind ("pid", "user"). A kernel without namespaces has one of
 * each: 0 for every process. */
uint64_t host_namespace(const char *kind);

/* What differs from one start of any machine to another; empty where it cannot be read. */
void host_boot(char text[HOST_BOOT_BYTES]);

/* Fills with random bytes. False: errno says why not. */
bool host_random(void *memory, size_t bytes);

/* A descriptor of memory that has this name in /proc alone, is this user's alone, and can be
 * sealed; -1 and errno. */
int host_memory(const char *name);

/* May a file of this process have so many bytes? Making it larger ends the process by a signal.
 * False: errno says so. */
bool host_allows_file(size_t bytes);

#endif
