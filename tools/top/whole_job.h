/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a rank of this node for the pages of its whole job, which come over the job's own lanes. */
#ifndef TOOLS_TOP_WHOLE_JOB_H
#define TOOLS_TOP_WHOLE_JOB_H

#include "tools/top/left.h"

/* Puts the ranks of the job in place of those of this node, and names on standard error those that
 * have not answered. `number`: what the user has named, maybe the process to ask; or null. False:
 * `why` says why there are none. */
bool whole_job_load(const char *number, struct ranks *ranks, struct left *left, char *why,
                    size_t size);

#endif
