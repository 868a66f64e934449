/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for Open MPI's progress, and the PML's state, of which the code under test uses only
 * the queue of things to be tried again. */
#include "progress_standin.h"

#include "base/multilane.h"

/* Found before those of libopen-pal, because a program's own come first. */
__attribute__((visibility("default"))) int
opal_progress_register(opal_progress_callback_t callback);
__attribute__((visibility("default"))) int
opal_progress_unregister(opal_progress_callback_t callback);

struct multilane multilane;

static opal_progress_callback_t registered; /* atomic: progress_standin_run reads it */

int opal_progress_register(opal_progress_callback_t callback)
{
    __atomic_store_n(&registered, callback, __ATOMIC_RELEASE);
    return OPAL_SUCCESS;
}

int opal_progress_unregister(opal_progress_callback_t callback)
{
    if (callback == registered)
        registered = NULL;
    return OPAL_SUCCESS;
}

int progress_standin_run(void)
{
    opal_progress_callback_t callback =
        __atomic_load_n(&registered, __ATOMIC_ACQUIRE); /* opal_progress_register */
    return callback ? callback() : 0;
}
