/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that all waits go by. */
#include "btl/verbs/verbs.h"

#include "common/lock/clock.h"

uint64_t verbs_now_ms(void)
{
    return clock_coarse_ms();
}
