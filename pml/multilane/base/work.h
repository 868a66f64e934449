/* SPDX-License-Identifier: BSD-3-Clause */
/* How much is under way: requests, and what waits for room. It is counted where a progress thread
 * needs to know when to sleep, and costs a branch where there is none. */
#ifndef MULTILANE_WORK_H
#define MULTILANE_WORK_H

#include "common/compat/pml.h"

/* Set once, before there is work or a thread of ours, and only read afterwards. */
extern __attribute__((visibility("hidden"))) bool work_is_counted;

void work_count(void);
void work_uncount(void);

/* Work is under way from the first to the second. */
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

/* The same for a request, of which `counted` is a member: one that is cancelled may end again. */
static inline void request_work_begins(bool *counted)
{
    *counted = work_is_counted;
    work_begins();
}

static inline void request_work_ends(bool *counted)
{
    if (OPAL_LIKELY(!*counted))
        return;
    *counted = false;
    work_uncount();
}

/* Waits until work is under way. False: work_end was called. Of one thread only. */
bool work_wait(void);

/* Who waits for work need not wait any more. */
void work_end(void);

/* The first state: nothing is under way. Nobody is in any of these functions. */
void work_reset(void);

#endif
