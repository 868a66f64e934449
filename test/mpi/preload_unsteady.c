/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: time jumps by up to a millisecond whenever the clock is read, as on a
 * machine that always does something else in between. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    static _Atomic long jumped_ns;
    static _Thread_local unsigned seed = 1;
    /* Relaxed: a number that only grows, and orders nothing. */
    long jump_ns = rand_r(&seed) % 1000000;
    long ahead_ns = jump_ns + atomic_fetch_add_explicit(&jumped_ns, jump_ns, memory_order_relaxed);
    long status = syscall(SYS_clock_gettime, clock, now);

    now->tv_sec += (now->tv_nsec + ahead_ns) / 1000000000;
    now->tv_nsec = (now->tv_nsec + ahead_ns) % 1000000000;
    return (int) status;
}
