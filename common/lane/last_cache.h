/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache that processors share: what both ends of a message write and read is fast there. */
#ifndef COMMON_LANE_LAST_CACHE_H
#define COMMON_LANE_LAST_CACHE_H

#include <stdint.h>

struct last_cache {
    uint64_t bytes;      /* 0: there is none, or it is not known */
    uint32_t processors; /* that share it, at least 1 */
};

/* The cache of level 3 of a processor. `cpus` is where the kernel shows them
 * (/sys/devices/system/cpu). */
struct last_cache last_cache_find(const char *cpus, int processor);

/* A ring in use has this many bytes; */
#define RING_BYTES_USUAL (256u << 10)
/* more, up to this, where each of so many processes may send to each, and all their rings together
 * take half of the cache. A power of two. */
#define RING_BYTES_MAX (4u << 20)
uint32_t last_cache_ring_bytes(const struct last_cache *cache, uint32_t processes);
/* On this node, by the cache of the processor that this thread runs on. Not more where processes
 * share processors: both ends then often have the same cache of their own. */
uint32_t last_cache_ring_bytes_here(uint32_t processes);

#endif
