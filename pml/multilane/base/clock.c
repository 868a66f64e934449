/* SPDX-License-Identifier: BSD-3-Clause */
/* The system's monotonic clock. */
#include "base/clock.h"

#include "common/lock/clock.h"

uint64_t clock_now_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}
