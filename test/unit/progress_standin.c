/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for Open MPI's progress. */
#include "progress_standin.h"

#include <stdlib.h>

#include "base/pending.h"
#include "common/compat/pml.h"
#include "lane/waiting.h"

/* Found before those of libopen-pal, because a program's own come first. */
__attribute__((visibility("default"))) int
opal_progress_register(opal_progress_callback_t callback);
__attribute__((visibility("default"))) int
opal_progress_unregister(opal_progress_callback_t callback);

#define CALLBACKS_MAX 8

/* Atomic: progress_standin_run reads them while one is added. */
static opal_progress_callback_t registered[CALLBACKS_MAX];

int opal_progress_register(opal_progress_callback_t callback)
{
    int i = 0;
    while (i < CALLBACKS_MAX && registered[i])
        i++;
    if (i == CALLBACKS_MAX)
        abort();
    __atomic_store_n(&registered[i], callback, __ATOMIC_RELEASE); /* progress_standin_run */
    return OPAL_SUCCESS;
}

int opal_progress_unregister(opal_progress_callback_t callback)
{
    for (int i = 0; i < CALLBACKS_MAX; i++)
        if (registered[i] == callback)
            registered[i] = NULL;
    return OPAL_SUCCESS;
}

/* With what module_progress of entry/module.c does in each job. */
int progress_standin_run(void)
{
    int done = pending_progress();
    looks_add();
    for (int i = 0; i < CALLBACKS_MAX; i++) {
        opal_progress_callback_t callback =
            __atomic_load_n(&registered[i], __ATOMIC_ACQUIRE); /* opal_progress_register */
        done += callback ? callback() : 0;
    }
    return done;
}
