/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks are looked at, and the two looks; what is read of a process. */
#ifndef TOOLS_TOP_FIND_H
#define TOOLS_TOP_FIND_H

#include "common/report/page_take.h"
#include "tools/top/rank.h"

struct choice {
    bool all;
    const char *number; /* a job, the process of a rank, or one above it such as mpirun; or null */
};

/* Finds the ranks of this node, and takes the first look at them, as `second`. False: *error says
 * that there are none, or that the choice is not clear. */
bool ranks_find_all(const struct choice *choice, struct ranks *ranks, struct error_text *error);

/* The next look: what was `second` becomes `first` (`moves`), or only `second` is taken anew. */
void ranks_look(struct ranks *ranks, bool moves);

/* Reads the page and what the system says of the process. */
enum page_found sample_read(int pid, struct sample *sample, struct error_text *why);

#endif
