/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what is under way: requests, and items of pending.h. Only a progress thread needs the
 * count, to know when to sleep; without one it costs a branch. */
#ifndef MULTILANE_WORK_H
#define MULTILANE_WORK_H

#include "common/compat/pml.h"

/* Set once, before any work or progress thread exists; read-only from then on. */
extern __attribute__((visibility("hidden"))) bool work_is_counted;

void work_count(void);
void work_uncount(void);

/* Work is under way between these two calls. */
static inline void work_begins(void)
{
    if (OPAL_UNLIKELY(work_is_counted))
        work_count();
}

static inline void work_ends(void)
{
    if (OPAL_UNLIKELY(work_is_counted))
        work_uncount();
}

/* The same for a request with its member `counted`: a cancelled one may end twice. */
static inline void work_begins_for(bool *counted)
{
    *counted = work_is_counted;
    work_begins();
}

static inline void work_ends_for(bool *counted)
{
    if (OPAL_LIKELY(!*counted))
        return;
    *counted = false;
    work_uncount();
}

/* Sleeps until work is under way. False: work_end was called. One thread only. */
bool work_wait(void);

/* Ends work_wait. */
void work_end(void);

/* Back to the start: nothing is under way. No thread may be in any of these functions. */
void work_reset(void);

#endif
