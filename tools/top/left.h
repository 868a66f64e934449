/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks left because they ended before MPI_Finalize was over (pml_multilane_blackbox).
 */
#ifndef TOOLS_TOP_LEFT_H
#define TOOLS_TOP_LEFT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/report/page_take.h"
#include "tools/top/rank.h"

/* A rank's calls. */
struct left_rank {
    struct page_process me;
    uint64_t ended_ns; /* when it was seen in MPI last */
    struct page_event events[PAGE_EVENTS];
};

struct left {
    struct left_rank **list;
    size_t count;
};

/* Adds the ranks of a folder, or of one file, to the list of ranks, as they were when they ended;
 * and their calls to `left`. False: *error says what is wrong. */
bool left_load(const char *path, struct ranks *ranks, struct left *left, struct error_text *error);
/* The last `most` calls of each rank, beside each other in time. False: no memory. */
bool left_show(FILE *out, const struct left *left, size_t most);
/* On each communicator the first collective operation that is not alike in its ranks, if there is
 * one. False: no memory. */
bool left_differ_show(FILE *out, const struct left *left);
void left_free(struct left *left);

#endif
