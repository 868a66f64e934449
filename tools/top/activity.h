/* SPDX-License-Identifier: BSD-3-Clause */
/* What one rank does, from two looks at it. */
#ifndef TOOLS_TOP_ACTIVITY_H
#define TOOLS_TOP_ACTIVITY_H

#include "tools/top/rank.h"

enum activity {
    ACTIVITY_STARTS,   /* in MPI_Init */
    ACTIVITY_COMPUTES, /* not in MPI, and uses a processor */
    ACTIVITY_SLEEPS,   /* not in MPI, and uses none */
    ACTIVITY_IN_MPI,   /* makes progress, and waits in no call for long */
    ACTIVITY_WAITS,    /* in one call during both looks */
    ACTIVITY_STUCK,    /* the same, and neither makes progress nor uses a processor */
    ACTIVITY_ENDS,     /* in MPI_Finalize */
    ACTIVITY_STOPPED,  /* by a signal or a debugger */
    ACTIVITY_GONE
};

/* In a call that does not end? */
static inline bool activity_waits(enum activity activity)
{
    return activity == ACTIVITY_WAITS || activity == ACTIVITY_STUCK;
}

enum activity rank_activity(const struct rank *rank);

/* "waits 41 s in ...", "computes since 3.0 s (not in MPI)". */
void rank_text(const struct rank *rank, enum activity activity, char *text, size_t size);

/* The letter of its process, as ps shows it; '-': gone. A wait that sleeps wakes for a moment now
 * and then, one that spins never sleeps: so S where one of two looks has found it asleep. */
char rank_state(const struct rank *rank);

#endif
