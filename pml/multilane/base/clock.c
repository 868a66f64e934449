/* SPDX-License-Identifier: BSD-3-Clause */
/* The system's monotonic clock. */
#include "base/clock.h"

#include <time.h>

uint64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}
