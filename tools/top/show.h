/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms in which multilane-top shows what it has seen. */
#ifndef TOOLS_TOP_SHOW_H
#define TOOLS_TOP_SHOW_H

#include <stdio.h>

#include "tools/top/why.h"

enum sort_key { SORT_RANK, SORT_SINCE, SORT_BYTES, SORT_QUEUED, SORT_UNEXPECTED, SORT_KEYS };

struct view {
    enum sort_key sort;
    bool waiting_only;
    unsigned columns; /* of the terminal */
    unsigned lines;   /* 0: as many as there are */
};

/* One line a rank, and what the lanes carry. */
void show_table(FILE *file, const struct ranks *ranks, const struct why *why,
                const struct view *view);

/* For how long each rank has waited, in what and for whom, and the others for it. */
void show_waited(FILE *file, const struct ranks *ranks, const struct view *view);

/* The causes, and who waits for whom. */
void show_why(FILE *file, const struct ranks *ranks, const struct why *why);

/* export.c: for programs. `causes`: also what show_why says. */
void export_json(FILE *file, const struct ranks *ranks, const struct why *why, bool causes);
void export_prometheus(FILE *file, const struct ranks *ranks, const struct why *why);

/* The longest wait of a rank, or its time outside of MPI, in nanoseconds. */
uint64_t rank_since_ns(const struct rank *rank, enum activity activity);

/* One word for what it does: "MPI_Recv", "computes". */
const char *rank_word(const struct rank *rank, enum activity activity);

uint64_t rank_queued_bytes(const struct rank *rank);

#endif
