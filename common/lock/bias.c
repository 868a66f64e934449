/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a bias, once a process. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/lock/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Some 10 ms. Where the kernel has no such call, or a sandbox forbids it: no processor keeps a
 * store back, or a load that it made early, for nearly as long as this sleeps. */
static void barrier_everywhere(void)
{
    static const struct timespec long_enough = {.tv_nsec = 10000000};

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0)
        nanosleep(&long_enough, NULL);
}

void bias_end(struct bias *bias)
{
    uint32_t on = BIAS_ON;

    /* Another thread that ends it, too, does all of this itself. */
    atomic_compare_exchange_strong_explicit(&bias->state, &on, BIAS_ENDING, memory_order_seq_cst,
                                            memory_order_seq_cst);
    barrier_everywhere();
    while (atomic_load_explicit(&bias->depth, memory_order_acquire) > 0)
        sched_yield();
    atomic_store_explicit(&bias->state, BIAS_ENDED, memory_order_release);
}
