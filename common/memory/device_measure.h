/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures what copies of a device and opening another process's memory cost. */
#ifndef COMMON_MEMORY_DEVICE_MEASURE_H
#define COMMON_MEMORY_DEVICE_MEASURE_H

#include "common/memory/copier.h"
#include "common/model/protocol.h"

/* Device memory and pinned memory of the host that is copied from and to, of each process that
 * measures. Giving them back may wait for what the program runs on the device, and that for a
 * message: so it is not done here. */
#define DEVICE_BLOCK_BYTES  ((size_t) 2 << 20)
#define DEVICE_PINNED_BYTES ((size_t) 1 << 20)

/* A line goes through the times of this size and of DEVICE_PINNED_BYTES. */
#define DEVICE_SMALL_BYTES ((size_t) 4 << 10)

/* Of one device. From the start of a copy to the moment the processor hears of its end. All zero:
 * not measured. */
struct device_costs {
    struct cost_line to_host, to_device; /* pinned memory of the host */
    struct cost_line within;             /* from the device to itself */
};

/* Of a device with memory that another process has on it, or on another device. */
struct device_pair {
    double open_s;        /* opening the memory, once an allocation */
    struct cost_line get; /* copies from there */
    uint32_t turns;       /* of those that were measured the other process used its device before */
    uint32_t unused;
};

/* Where and for how long. */
struct device_measure {
    struct copier *copier;
    driver_ptr block; /* DEVICE_BLOCK_BYTES in its context */
    void *pinned;     /* DEVICE_PINNED_BYTES */
    double seconds;   /* no copy starts when they are over */
    int rounds;       /* the shortest of so many times counts */
    /* Null, or called before each copy from another process's memory: has it use its device, if it
     * can (true). */
    bool (*turn)(void *context);
    void *context;
    /* Set: a copy did not end, as the program's kernels have the device. It is under way, so the
     * memory stays as it is, and with this nothing is to be measured any more. */
    bool is_late;
};

/* False, and all zero: the driver failed, or the time did not suffice. */
bool device_measure(struct device_measure *measure, struct device_costs *costs);
bool device_measure_pair(struct device_measure *measure, const struct driver_ipc_handle *theirs,
                         struct device_pair *pair);

/* Of a process whose memory another one measures: uses its device once. False: it could not. */
bool device_take_turn(struct device_measure *measure);

/* The line through the times of the two sizes. Where both take the same, but for noise, bytes cost
 * next to nothing: the time of the large one is not that of its bytes. */
struct cost_line device_line(double small_s, double large_s);

/* Can costs that another process has left be true? */
bool device_costs_check(const struct device_costs *costs);
bool device_pair_check(const struct device_pair *pair);

#endif
