/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's locks, threads and events, whose headers moved between 4.1 and 5.0. */
#ifndef MULTILANE_COMPAT_THREADS_H
#define MULTILANE_COMPAT_THREADS_H

#include "common/compat/compat.h"

#if COMPAT_SERIES >= 50000
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/mca/threads/threads.h"
#include "opal/mca/threads/wait_sync.h"
#else
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#include "opal/threads/threads.h"
#include "opal/threads/wait_sync.h"
#endif

#endif
