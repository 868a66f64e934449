/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-top knows of a rank: its page, what the system says of its process, and what it
 * does by both. */
#ifndef TOOLS_TOP_RANK_H
#define TOOLS_TOP_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/report/page_text.h"
#include "multilane/page.h"

/* One look at a rank. */
struct sample {
    struct page page;    /* checked */
    uint64_t now_ns;     /* when, by the clock of the page */
    char state;          /* of /proc/PID/stat: R, S, D, T, t, Z; 0: the process is gone */
    uint32_t running;    /* threads in state R */
    uint64_t cpu_ticks;  /* processor time so far */
    uint64_t faults;     /* major page faults so far: pages that came from a disk */
    uint64_t swapped_kb; /* of its memory */
};

struct rank {
    int pid;
    struct sample first, second; /* the second is the later one */
};

/* All ranks that are looked at, by job and rank. */
struct ranks {
    struct rank *list;
    size_t count, room;
};

/* A new one at the end; null: no memory. */
struct rank *ranks_add(struct ranks *ranks, int pid);
void ranks_sort(struct ranks *ranks);
void ranks_free(struct ranks *ranks);

/* The index of a process; -1: it is not among them. */
int ranks_find(const struct ranks *ranks, const struct page_process *name);

/* Is there more than one job among them? */
bool ranks_have_jobs(const struct ranks *ranks);

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
struct words rank_text(const struct rank *rank, enum activity activity);

/* The letter of its process, as ps shows it; '-': gone. A wait that sleeps wakes for a moment now
 * and then, one that spins never sleeps: so S where one of two looks has found it asleep. */
char rank_state(const struct rank *rank);

#endif
