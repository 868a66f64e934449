/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures copies within this process, once, before the first message. */
#define _GNU_SOURCE
#include "common/lane/startup.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LITTLE_BYTES ((size_t) 4 << 10)
#define LARGE_BYTES  ((size_t) STARTUP_SMALL_BYTES)
/* Sources take turns, so that they are not all in the nearest cache, as another core's are not. */
#define SOURCES 8
#define ROUNDS  6

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Reading one's own memory takes the way that reading another process's takes. */
static bool copy_by_kernel(unsigned char *to, unsigned char *from, size_t bytes)
{
    struct iovec here = {.iov_base = to, .iov_len = bytes};
    struct iovec there = {.iov_base = from, .iov_len = bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t) bytes;
}

/* The shortest of some times: what disturbs only ever adds. Infinite: it does not work, or there is
 * no time left. */
static double copy_time(unsigned char *memory, size_t bytes, double until_s)
{
    double shortest_s = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        double start_s = now_s();
        if (start_s >= until_s ||
            !copy_by_kernel(memory, memory + LARGE_BYTES * (size_t) (1 + i % SOURCES), bytes))
            return INFINITY;
        shortest_s = fmin(shortest_s, now_s() - start_s);
    }
    return shortest_s;
}

static void line_measure(unsigned char *memory, double until_s, struct cost_line *line)
{
    double little_s = copy_time(memory, LITTLE_BYTES, until_s);
    double large_s = copy_time(memory, LARGE_BYTES, until_s);
    double growth = (large_s - little_s) / (double) (LARGE_BYTES - LITTLE_BYTES);
    *line = (struct cost_line){0, 0};
    if (isfinite(growth) && growth > 0) {
        line->growth_s_byte = growth;
        line->fixed_s = fmax(0, little_s - growth * (double) LITTLE_BYTES);
    }
}

bool startup_measure(struct startup_costs *costs)
{
    if (costs->was_tried)
        return costs->remote.growth_s_byte > 0;
    double start_s = now_s();
    size_t bytes = LARGE_BYTES * (1 + SOURCES);
    *costs = (struct startup_costs){.was_tried = true};
    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    memset(memory, 1, bytes); /* pages of their own, not all the one of zeros */
    line_measure(memory, start_s + STARTUP_MOST_S * 3 / 4, &costs->remote);
    munmap(memory, bytes);
    return costs->remote.growth_s_byte > 0;
}

/* Divides the ranges of the way where STARTUP_SMALL_BYTES is not an end yet; false: no room. */
static bool range_cut(struct model_lane_cost *cost)
{
    uint32_t i = 0;
    while (cost->ranges[i].largest_bytes < STARTUP_SMALL_BYTES)
        i++;
    if (cost->ranges[i].largest_bytes == STARTUP_SMALL_BYTES)
        return true;
    if (cost->range_count == MODEL_LANE_RANGES_MAX)
        return false;
    memmove(&cost->ranges[i + 1], &cost->ranges[i],
            (cost->range_count - i) * sizeof(cost->ranges[0]));
    cost->ranges[i].largest_bytes = STARTUP_SMALL_BYTES;
    cost->range_count++;
    return true;
}

void startup_apply(const struct startup_costs *costs, struct model_lane *lane)
{
    if (!(costs->remote.growth_s_byte > 0) || !(lane->can & MODEL_CAN_GET))
        return;
    for (int way = MODEL_BY_GET; way <= MODEL_BY_PUT; way++) {
        struct model_lane_cost *cost = &lane->cost[way];
        if (!cost->range_count || cost->ranges[0].reg_growth_s_byte > 0 || !range_cut(cost))
            continue;
        for (uint32_t i = 0; i < cost->range_count; i++) {
            struct model_lane_range *range = &cost->ranges[i];
            range->overhead_send_s = costs->remote.fixed_s;
            range->overhead_receive_s = 0;
            if (range->largest_bytes <= STARTUP_SMALL_BYTES)
                range->bandwidth_bytes_s =
                    fmin(range->bandwidth_bytes_s, 1 / costs->remote.growth_s_byte);
        }
        model_lane_set_source(lane, (enum model_way) way, MODEL_OVERHEAD_SEND,
                              MODEL_SOURCE_MEASURED);
        model_lane_set_source(lane, (enum model_way) way, MODEL_OVERHEAD_RECEIVE,
                              MODEL_SOURCE_MEASURED);
        model_lane_set_source(lane, (enum model_way) way, MODEL_BANDWIDTH, MODEL_SOURCE_MEASURED);
    }
}
