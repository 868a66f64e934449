/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of copies and kernels, by one stream and its events, as messages use them. */
#include "common/memory/device_measure.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "common/memory/chunks.h"
#include "common/memory/kernels.h"

/* The two sizes that a line goes through. */
#define SMALL ((size_t) 4 << 10)
#define LARGE DEVICE_PINNED_BYTES

/* Bounds of what is believed: of a time, and of the time of a byte, which is that of 1 MB/s. */
#define TIME_S_MOST 1.0
#define BYTE_S_MOST 1e-6

/* In the block of this process: what is copied from, to, and the ring's counter. */
#define FROM_AT    0
#define TO_AT      LARGE
#define COUNTER_AT (2 * LARGE)

struct clocked {
    const struct device_measure *measure;
    double until_s;
    double (*act_s)(const struct clocked *clocked, size_t bytes); /* below 0: it failed */
    enum copy_direction direction;
    driver_ptr to, from;
    struct chunk_end *ends; /* of a ring: its receiver, its sender */
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static bool event_await(const struct clocked *clocked)
{
    struct copier *copier = clocked->measure->copier;
    driver_event event;
    driver_result result = copier_event_record(copier, clocked->direction, &event);
    if (result != DRIVER_SUCCESS) {
        (void) copier_wait(copier, clocked->direction);
        return false;
    }
    while ((result = copier_event_test(event)) == DRIVER_NOT_READY)
        ;
    copier_event_return(copier, event);
    return result == DRIVER_SUCCESS;
}

static double copy_s(const struct clocked *clocked, size_t bytes)
{
    double start_s = now_s();
    bool is_good = copier_copy(clocked->measure->copier, clocked->direction, clocked->to,
                               clocked->from, bytes) == DRIVER_SUCCESS &&
                   event_await(clocked);
    return is_good ? now_s() - start_s : -1;
}

/* A kernel of the ring that has no byte to move. */
static double kernel_s(const struct clocked *clocked, size_t bytes)
{
    const struct chunk_job job = {
        .moved = clocked->to, .chunk_bytes = CHUNK_BYTES, .ring_chunks = 1};
    double start_s = now_s();
    (void) bytes;
    bool is_good = kernels_start(clocked->measure->copier, clocked->direction, KERNEL_CHUNKS, &job,
                                 1) == DRIVER_SUCCESS &&
                   event_await(clocked);
    return is_good ? now_s() - start_s : -1;
}

/* Both ends of the ring. One that has failed leaves the other to end by itself, after some looks.
 */
static double message_s(const struct clocked *clocked, size_t bytes)
{
    driver_result results[2] = {DRIVER_NOT_READY, DRIVER_NOT_READY};
    driver_ptr users[2] = {clocked->to, clocked->from};
    double start_s = now_s();
    for (int i = 0; i < 2; i++) {
        driver_result result = chunk_end_start(&clocked->ends[i], users[i], bytes);
        results[i] = result == DRIVER_SUCCESS ? DRIVER_NOT_READY : result;
    }
    while (results[0] == DRIVER_NOT_READY || results[1] == DRIVER_NOT_READY)
        for (int i = 0; i < 2; i++)
            if (results[i] == DRIVER_NOT_READY)
                results[i] = chunk_end_test(&clocked->ends[i], now_s() < clocked->until_s);
    return results[0] == DRIVER_SUCCESS && results[1] == DRIVER_SUCCESS ? now_s() - start_s : -1;
}

/* What disturbs only ever adds. */
static double shortest_s(const struct clocked *clocked, size_t bytes)
{
    double shortest = INFINITY;
    for (int round = 0; round < clocked->measure->rounds; round++) {
        double time_s = now_s() < clocked->until_s ? clocked->act_s(clocked, bytes) : -1;
        if (time_s < 0)
            return -1;
        shortest = fmin(shortest, time_s);
    }
    return shortest;
}

static bool line_measure(const struct clocked *clocked, size_t large, struct model_copy *line)
{
    double small_s = shortest_s(clocked, SMALL);
    double large_s = small_s < 0 ? -1 : shortest_s(clocked, large);
    if (large_s < 0)
        return false;
    double growth = (large_s - small_s) / (double) (large - SMALL);
    if (!(growth > 0) || growth * (double) SMALL > small_s)
        growth = large_s / (double) large;
    *line = (struct model_copy){fmax(0, small_s - growth * (double) SMALL), growth};
    return true;
}

static bool is_line(const struct model_copy *line)
{
    return line->fixed_s >= 0 && line->fixed_s <= TIME_S_MOST && line->s_byte > 0 &&
           line->s_byte <= BYTE_S_MOST;
}

bool device_costs_check(const struct device_costs *costs)
{
    return is_line(&costs->to_host) && is_line(&costs->to_device) && is_line(&costs->within) &&
           costs->kernel_s >= 0 && costs->kernel_s <= TIME_S_MOST;
}

bool device_pair_check(const struct device_pair *pair)
{
    return is_line(&pair->get) && pair->open_s > 0 && pair->open_s <= TIME_S_MOST &&
           (is_line(&pair->ring) || (pair->ring.fixed_s == 0 && pair->ring.s_byte == 0));
}

bool device_measure(const struct device_measure *measure, struct device_costs *costs)
{
    struct clocked clocked = {
        .measure = measure, .until_s = now_s() + measure->seconds, .act_s = copy_s};
    driver_ptr host = (driver_ptr) (uintptr_t) measure->pinned;
    *costs = (struct device_costs){.kernel_s = 0};
    clocked.direction = COPY_TO_DEVICE; /* first: then there is something to be read */
    clocked.to = measure->block + FROM_AT;
    clocked.from = host;
    bool is_good = line_measure(&clocked, LARGE, &costs->to_device);
    clocked.direction = COPY_TO_HOST;
    clocked.to = host;
    clocked.from = measure->block + FROM_AT;
    is_good = is_good && line_measure(&clocked, LARGE, &costs->to_host);
    clocked.direction = COPY_BETWEEN;
    clocked.to = measure->block + TO_AT;
    is_good = is_good && line_measure(&clocked, LARGE, &costs->within);
    if (is_good && measure->has_kernels && kernels_ready(measure->copier) == DRIVER_SUCCESS) {
        clocked.act_s = kernel_s;
        clocked.to = host; /* where it says how far it got */
        costs->kernel_s = fmax(0, shortest_s(&clocked, 0));
    }
    is_good = is_good && device_costs_check(costs);
    if (!is_good)
        *costs = (struct device_costs){.kernel_s = 0};
    return is_good;
}

/* The counters of a ring begin at 0. */
static bool counter_clear(struct copier *copier, driver_ptr counter)
{
    static const unsigned char zeros[CHUNK_LINE_BYTES];
    return copier_copy(copier, COPY_TO_DEVICE, counter, (driver_ptr) (uintptr_t) zeros,
                       sizeof(zeros)) == DRIVER_SUCCESS &&
           copier_wait(copier, COPY_TO_DEVICE) == DRIVER_SUCCESS;
}

/* The ring lies in the other process's memory and both of its ends are here, so that one of them
 * looks at memory that is far: a ring of two processes is no slower. */
static void ring_measure(const struct clocked *copies, struct model_copy *ring)
{
    struct chunk_end ends[2] = {{.moved = NULL}, {.moved = NULL}};
    struct copier *copier = copies->measure->copier;
    driver_ptr theirs = copies->from, emptied = copies->measure->block + COUNTER_AT;
    struct clocked messages = *copies;
    bool is_good = counter_clear(copier, emptied) &&
                   counter_clear(copier, theirs + RING_BYTES - CHUNK_LINE_BYTES);
    for (int i = 0; i < 2 && is_good; i++)
        is_good = chunk_end_init(&ends[i], copier, i == 1, theirs, emptied) == DRIVER_SUCCESS;
    messages.act_s = message_s;
    messages.from = copies->measure->block + FROM_AT;
    messages.ends = ends;
    if (is_good && !line_measure(&messages, (size_t) CHUNK_BYTES * RING_CHUNKS, ring))
        *ring = (struct model_copy){0, 0};
    for (int i = 0; i < 2; i++)
        chunk_end_fini(&ends[i]);
}

static driver_result theirs_open(const struct device_measure *measure,
                                 const struct driver_ipc_handle *handle, driver_ptr *theirs)
{
    driver_result result = copier_enter(measure->copier);
    if (result != DRIVER_SUCCESS)
        return result;
    result = driver.ipc_open(theirs, *handle, DRIVER_IPC_LAZY_PEER_ACCESS);
    context_leave();
    return result;
}

static void theirs_close(const struct device_measure *measure, driver_ptr theirs)
{
    if (copier_enter(measure->copier) != DRIVER_SUCCESS)
        return;
    driver.ipc_close(theirs);
    context_leave();
}

bool device_measure_pair(const struct device_measure *measure,
                         const struct driver_ipc_handle *handle, struct device_pair *pair)
{
    double start_s = now_s();
    struct clocked clocked = {.measure = measure,
                              .until_s = start_s + measure->seconds,
                              .act_s = copy_s,
                              .direction = COPY_BETWEEN,
                              .to = measure->block + TO_AT};
    driver_ptr theirs;
    *pair = (struct device_pair){.open_s = 0};
    if (theirs_open(measure, handle, &theirs) != DRIVER_SUCCESS)
        return false;
    pair->open_s = now_s() - start_s;
    clocked.from = theirs;
    bool is_good = line_measure(&clocked, LARGE, &pair->get);
    if (is_good && measure->has_kernels && kernels_ready(measure->copier) == DRIVER_SUCCESS)
        ring_measure(&clocked, &pair->ring);
    theirs_close(measure, theirs);
    is_good = is_good && device_pair_check(pair);
    if (!is_good)
        *pair = (struct device_pair){.open_s = 0};
    return is_good;
}
