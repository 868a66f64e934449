/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the benchmark share: arguments, timing and the lines they print. Plain MPI, so
 * that the same program is built for every MPI on the machine. */
#ifndef BENCH_PART_H
#define BENCH_PART_H

#include <mpi.h>
#include <stddef.h>

struct part {
    const char *name;
    /* Sizes that are measured where the command line gives none; ends with SIZES_END. */
    const long *sizes;
    void (*measure)(const struct part *part);
};

#define SIZES_END (-1L)

extern const struct part part_oneway, part_rate, part_bandwidth, part_twoway, part_pairs;
extern const struct part part_posted, part_unexpected, part_memory, part_start;
extern const struct part part_blocking, part_late, part_exchange, part_probed, part_self;
extern const struct part part_columns, part_faces, part_silent, part_onesided;
extern const struct part part_alltoall, part_allreduce, part_bcast, part_barrier, part_calls;

extern const long sizes_message[], sizes_small[], sizes_large[], sizes_collective[], sizes_depth[];
extern const long sizes_none[];

int bench_rank(void);
int bench_ranks(void);

/* Memory for messages, aligned to a page and written once, so that no page fault is timed. */
char *bench_buffer(size_t bytes);

/* One line: what was measured, at which size (or depth, or number), in the unit of that figure. */
void bench_print(const char *figure, long size, double value);

/* Seconds that one call of `round` takes on this rank: the number of calls is chosen by rank 0 so
 * that a batch lasts long enough to be timed, and the median of the batches is given. Every rank
 * calls it. `round` is told how many times to do its work. */
double bench_time(void (*round)(long count, void *context), void *context);

/* Ends the job with one sentence. */
void bench_stop(const char *sentence);

#endif
