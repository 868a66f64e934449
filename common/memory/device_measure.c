/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of copies, by one stream and its events, as messages use them. */
#include "common/memory/device_measure.h"

#include <math.h>

#include "common/lock/clock.h"

/* The two sizes that a line goes through. */
#define SMALL DEVICE_SMALL_BYTES
#define LARGE DEVICE_PINNED_BYTES

/* What bytes add below this part of the whole time is not told from noise. */
#define UNSEEN 0.01

/* Bounds of what is believed: of a time, and of the time of a byte, which is that of 1 MB/s. */
#define TIME_S_MOST 1.0
#define BYTE_S_MOST 1e-6

/* A copy within a device is a kernel: it waits for the program's, and these may wait for a message.
 * So long is longer than most kernels, and than many processes of one device keep each other. */
#define LATE_S 0.1

/* In the block of this process: what is copied from, and to. */
#define FROM_AT 0
#define TO_AT   LARGE

struct clocked {
    struct device_measure *measure;
    double until_s;
    enum copy_direction direction;
    driver_ptr to, from;
    uint32_t *turns; /* null: not those of another process's memory */
};

static bool event_await(const struct clocked *clocked, double late_s)
{
    struct copier *copier = clocked->measure->copier;
    driver_event event;
    driver_result result = copier_event_record(copier, clocked->direction, &event);
    if (result != DRIVER_SUCCESS) {
        (void) copier_wait(copier, clocked->direction);
        return false;
    }
    do {
        result = copier_event_test(event);
    } while (result == DRIVER_NOT_READY && clock_exact_s() < late_s);
    clocked->measure->is_late = result == DRIVER_NOT_READY;
    if (result != DRIVER_NOT_READY)
        copier_event_return(copier, event);
    return result == DRIVER_SUCCESS;
}

/* Below 0: it failed. */
static double copy_s(const struct clocked *clocked, size_t bytes)
{
    double start_s = clock_exact_s();
    bool is_good = copier_copy(clocked->measure->copier, clocked->direction, clocked->to,
                               clocked->from, bytes) == DRIVER_SUCCESS &&
                   event_await(clocked, start_s + LATE_S);
    return is_good ? clock_exact_s() - start_s : -1;
}

/* What disturbs only ever adds. */
static double shortest_s(const struct clocked *clocked, size_t bytes)
{
    const struct device_measure *measure = clocked->measure;
    double shortest = INFINITY;
    for (int round = 0; round < measure->rounds; round++) {
        if (clocked->turns && measure->turn)
            *clocked->turns += measure->turn(measure->context);
        double time_s = clock_exact_s() < clocked->until_s ? copy_s(clocked, bytes) : -1;
        if (time_s < 0)
            return -1;
        shortest = fmin(shortest, time_s);
    }
    return shortest;
}

struct cost_line device_line(double small_s, double large_s)
{
    double growth = (large_s - small_s) / (double) (LARGE - SMALL);
    if (growth * (double) SMALL > small_s)
        growth = large_s / (double) LARGE;
    growth = fmax(growth, UNSEEN * large_s / (double) LARGE);
    return (struct cost_line){fmax(0, small_s - growth * (double) SMALL), growth};
}

static bool line_measure(const struct clocked *clocked, struct cost_line *line)
{
    double small_s = shortest_s(clocked, SMALL);
    double large_s = small_s < 0 ? -1 : shortest_s(clocked, LARGE);
    if (large_s < 0)
        return false;
    *line = device_line(small_s, large_s);
    return true;
}

static bool is_line(const struct cost_line *line)
{
    return line->fixed_s >= 0 && line->fixed_s <= TIME_S_MOST && line->growth_s_byte > 0 &&
           line->growth_s_byte <= BYTE_S_MOST;
}

bool device_costs_check(const struct device_costs *costs)
{
    return is_line(&costs->to_host) && is_line(&costs->to_device) && is_line(&costs->within);
}

bool device_pair_check(const struct device_pair *pair)
{
    return is_line(&pair->get) && pair->open_s > 0 && pair->open_s <= TIME_S_MOST;
}

bool device_measure(struct device_measure *measure, struct device_costs *costs)
{
    struct clocked clocked = {.measure = measure, .until_s = clock_exact_s() + measure->seconds};
    driver_ptr host = (driver_ptr) (uintptr_t) measure->pinned;
    *costs = (struct device_costs){.to_host = {0, 0}};
    clocked.direction = COPY_TO_DEVICE; /* first: then there is something to be read */
    clocked.to = measure->block + FROM_AT;
    clocked.from = host;
    bool is_good = line_measure(&clocked, &costs->to_device);
    clocked.direction = COPY_TO_HOST;
    clocked.to = host;
    clocked.from = measure->block + FROM_AT;
    is_good = is_good && line_measure(&clocked, &costs->to_host);
    clocked.direction = COPY_BETWEEN;
    clocked.to = measure->block + TO_AT;
    is_good = is_good && line_measure(&clocked, &costs->within);
    is_good = is_good && device_costs_check(costs);
    if (!is_good)
        *costs = (struct device_costs){.to_host = {0, 0}};
    return is_good;
}

static driver_result theirs_open(const struct device_measure *measure,
                                 const struct driver_ipc_handle *handle, driver_ptr *theirs)
{
    return IN_CONTEXT(measure->copier,
                      driver.ipc_open(theirs, *handle, DRIVER_IPC_LAZY_PEER_ACCESS));
}

static void theirs_close(const struct device_measure *measure, driver_ptr theirs)
{
    (void) IN_CONTEXT(measure->copier, driver.ipc_close(theirs));
}

bool device_take_turn(struct device_measure *measure)
{
    struct clocked clocked = {.measure = measure,
                              .direction = COPY_BETWEEN,
                              .to = measure->block + TO_AT,
                              .from = measure->block + FROM_AT};
    return copy_s(&clocked, SMALL) >= 0;
}

bool device_measure_pair(struct device_measure *measure, const struct driver_ipc_handle *handle,
                         struct device_pair *pair)
{
    double start_s = clock_exact_s();
    struct clocked clocked = {.measure = measure,
                              .until_s = start_s + measure->seconds,
                              .direction = COPY_BETWEEN,
                              .to = measure->block + TO_AT};
    driver_ptr theirs;
    *pair = (struct device_pair){.open_s = 0};
    if (theirs_open(measure, handle, &theirs) != DRIVER_SUCCESS)
        return false;
    pair->open_s = clock_exact_s() - start_s;
    clocked.from = theirs;
    clocked.turns = &pair->turns;
    bool is_good = line_measure(&clocked, &pair->get);
    if (!measure->is_late)
        theirs_close(measure, theirs);
    is_good = is_good && device_pair_check(pair);
    if (!is_good)
        *pair = (struct device_pair){.open_s = 0};
    return is_good;
}
