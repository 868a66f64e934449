/* SPDX-License-Identifier: BSD-3-Clause */
/* The time since the system started. */
#ifndef COMMON_LOCK_CLOCK_H
#define COMMON_LOCK_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* To be compared with a later one. */
static inline double clock_exact_s(void)
{
    return 1e-9 * (double) clock_read_ns(CLOCK_MONOTONIC);
}

/* As of the last tick, some milliseconds ago at most: that costs less. */
static inline uint64_t clock_coarse_ms(void)
{
    return clock_read_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
}

#endif
