/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that all waits go by. */
#include "btl/verbs/verbs.h"

#include <time.h>

uint64_t verbs_now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t) time.tv_sec * 1000 + (uint64_t) time.tv_nsec / 1000000;
}
