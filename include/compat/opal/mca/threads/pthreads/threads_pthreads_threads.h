/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the thread header of Open MPI 5 and later, which Debian does not install. */
#ifndef MULTILANE_COMPAT_THREADS_PTHREADS_THREADS_H
#define MULTILANE_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>

#include "opal/mca/threads/pthreads/threads_pthreads.h"

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void)
{
    opal_threads_pthreads_yield_fn();
}

#endif
