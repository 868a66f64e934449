/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache that processors share: what both ends of a message write and read is fast there. */
#ifndef COMMON_LANE_LAST_CACHE_H
#define COMMON_LANE_LAST_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct last_cache {
    uint64_t bytes;      /* 0: there is none, or it is not known */
    uint32_t processors; /* that share it, at least 1 */
};

/* The cache of level 3 of a processor. `cpus` is where the kernel shows them
 * (/sys/devices/system/cpu). */
struct last_cache last_cache_find(const char *cpus, int processor);

#define RING_BYTES_USUAL (256u << 10)
#define RING_BYTES_MAX   (4u << 20)
/* Where processes share a processor, what one wrote waits in its cache for the other, which reads
 * all of it in its turn. A larger ring has left that cache before it begins anew. */
#define RING_BYTES_CROWDED (32u << 10)

struct ring_sizes {
    uint32_t usual; /* bytes of a ring in use; a power of two, */
    uint32_t most;  /* to which it may grow; another one */
};

/* Where each of so many processes has a processor and may send to each other: rings grow as long as
 * all of them together take half of the cache. */
struct ring_sizes last_cache_ring_sizes(const struct last_cache *cache, uint32_t processes);
/* On this node, by the cache of the processor that this thread runs on. */
struct ring_sizes last_cache_ring_sizes_here(uint32_t processes, bool is_crowded);

#endif
