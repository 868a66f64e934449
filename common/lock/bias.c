/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a bias: once for each component of a process. */
#include "common/lock/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YIELDS_MAX 100

static void sleep_ns(long ns)
{
    struct timespec left = {.tv_nsec = ns};

    while (nanosleep(&left, &left) != 0)
        ;
}

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* Some 10 ms. The second way is for processors without ticks (nohz_full). Where the kernel has
 * neither, or a sandbox forbids it: no processor keeps a store back, or a load that it made early,
 * for nearly as long as this sleeps. */
static void barrier_everywhere(void)
{
    if (!membarrier(MEMBARRIER_CMD_GLOBAL) &&
        !(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
          membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
        sleep_ns(10000000);
}

void bias_end(struct bias *bias)
{
    uint32_t on = BIAS_ON;

    /* Another thread that ends it, too, does all of this itself. */
    atomic_compare_exchange_strong_explicit(&bias->state, &on, BIAS_ENDING, memory_order_seq_cst,
                                            memory_order_seq_cst);
    barrier_everywhere();
    /* A thread of lower priority does not run while this one only yields. */
    for (int yields = 0; atomic_load_explicit(&bias->depth, memory_order_acquire) > 0; yields++) {
        if (yields < YIELDS_MAX)
            sched_yield();
        else
            sleep_ns(50000);
    }
    atomic_store_explicit(&bias->state, BIAS_ENDED, memory_order_release);
}
