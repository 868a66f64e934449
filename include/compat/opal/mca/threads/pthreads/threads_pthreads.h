/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the pthreads header of Open MPI 5 and later, which Debian does not install. */
#ifndef MULTILANE_COMPAT_THREADS_PTHREADS_H
#define MULTILANE_COMPAT_THREADS_PTHREADS_H

#include "opal_config.h"

typedef void(opal_threads_pthreads_yield_fn_t)(void);

/* How a thread gives up the core: chosen by Open MPI's own parameter. */
OPAL_DECLSPEC extern opal_threads_pthreads_yield_fn_t *opal_threads_pthreads_yield_fn;

#endif
