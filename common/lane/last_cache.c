/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the kernel says of a processor's caches. */
#include "common/lane/last_cache.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>

#include "common/lane/kernel_text.h"
#include "common/lane/processor_list.h"

#define CACHES 8 /* levels and kinds of a processor, of which there are four or five */
#define LEVEL  3

static uint32_t processors_count(const char *list)
{
    uint32_t count = 0;

    for (unsigned first, last; processor_range(&list, &first, &last);)
        count += last >= first ? last - first + 1 : 0;
    return count;
}

struct last_cache last_cache_find(const char *cpus, int processor)
{
    struct last_cache cache = {.processors = 1};
    char folder[PATH_MAX], line[4096];
    unsigned long long kibibytes;
    unsigned level;

    for (int index = CACHES - 1; index >= 0 && cache.bytes == 0; index--) { /* from the outermost */
        snprintf(folder, sizeof(folder), "%s/cpu%d/cache/index%d", cpus, processor, index);
        if (!kernel_line(line, sizeof(line), "%s/level", folder) ||
            sscanf(line, "%u", &level) != 1 || level != LEVEL ||
            !kernel_line(line, sizeof(line), "%s/size", folder) ||
            sscanf(line, "%lluK", &kibibytes) != 1 || kibibytes > UINT32_MAX)
            continue;
        cache.bytes = kibibytes << 10;
        if (kernel_line(line, sizeof(line), "%s/shared_cpu_list", folder) &&
            processors_count(line) > 0)
            cache.processors = processors_count(line);
    }
    return cache;
}

struct ring_sizes last_cache_ring_sizes(const struct last_cache *cache, uint32_t processes)
{
    uint64_t sharing = processes < cache->processors ? processes : cache->processors;
    uint64_t peers = processes > 1 ? processes - 1 : 1;
    uint32_t bytes = RING_BYTES_USUAL;

    while (bytes < RING_BYTES_MAX && bytes * 2 * peers * sharing <= cache->bytes / 2)
        bytes *= 2;
    return (struct ring_sizes){.usual = RING_BYTES_USUAL, .most = bytes};
}

struct ring_sizes last_cache_ring_sizes_here(uint32_t processes, bool is_crowded)
{
    if (is_crowded)
        return (struct ring_sizes){.usual = RING_BYTES_CROWDED, .most = RING_BYTES_USUAL};
    struct last_cache cache = last_cache_find("/sys/devices/system/cpu", sched_getcpu());
    return last_cache_ring_sizes(&cache, processes);
}
