/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark program: runs the part named first on its command line over the sizes that follow,
 * or over the part's own. test/bench/run starts it under every MPI and gathers what it prints. */
#include "median.h"
#include "part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCHES       5
#define BATCH_S       0.008
#define WARM_S        0.002
#define COUNT_MAX     (1L << 22)
#define SIZE_ARGS_MAX 64

static const struct part *const parts[] = {
    &part_oneway,    &part_rate,    &part_bandwidth, &part_twoway,     &part_pairs,    &part_posted,
    &part_memory,    &part_start,   &part_calls,     &part_unexpected, &part_alltoall, &part_bcast,
    &part_allreduce, &part_barrier, &part_blocking,  &part_late,       &part_exchange, &part_probed,
    &part_self,      &part_columns, &part_faces,     &part_silent,     &part_onesided,
};

const long sizes_message[] = {
    0,     1,     8,     16,     64,     256,    512,     1024,    2048,     4096,     8192,
    16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304, 16777216, 67108864, SIZES_END};
const long sizes_small[] = {0, 8, 16, 32, 64, 65, 128, 256, 512, 1024, 4096, SIZES_END};
const long sizes_large[] = {4096,   8192,   16384,   32768,   65536,   131072,
                            262144, 524288, 1048576, 2097152, 4194304, SIZES_END};
const long sizes_collective[] = {8, 64, 512, 4096, 32768, 262144, 1048576, SIZES_END};
const long sizes_depth[] = {10, 1000, 10000, SIZES_END};
const long sizes_none[] = {0, SIZES_END};

static int rank, ranks;

int bench_rank(void)
{
    return rank;
}

int bench_ranks(void)
{
    return ranks;
}

void bench_stop(const char *sentence)
{
    fprintf(stderr, "test/bench: %s\n", sentence);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

char *bench_buffer(size_t bytes)
{
    long page = sysconf(_SC_PAGESIZE);
    size_t room = (bytes / (size_t) page + 1) * (size_t) page;
    char *memory = aligned_alloc((size_t) page, room);

    if (NULL == memory)
        bench_stop("no memory for the message buffers; choose smaller sizes.");
    memset(memory, 1, room);
    return memory;
}

void bench_print(const char *figure, long size, double value)
{
    printf("figure %s %ld %.9g\n", figure, size, value);
    fflush(stdout);
}

static double batch_run(void (*round)(long count, void *context), void *context, long count)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    round(count, context);
    return MPI_Wtime() - start;
}

/* Doubles the count until a batch is long enough; rank 0's clock decides for all. What is made
 * once, for the first messages of a size, is not what the others cost (test/bench/crowd measures
 * it). */
static long count_choose(void (*round)(long count, void *context), void *context)
{
    long count = 1;

    (void) batch_run(round, context, count);
    for (;;) {
        double took = batch_run(round, context, count);
        long next = took >= WARM_S ? (long) ((double) count * BATCH_S / took) + 1 : count * 4;
        int done = took >= WARM_S || next > COUNT_MAX;

        MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        if (done)
            return next < COUNT_MAX ? next : COUNT_MAX;
        count = next;
    }
}

double bench_time(void (*round)(long count, void *context), void *context)
{
    double took[BATCHES];
    long count = count_choose(round, context);

    for (int batch = 0; batch < BATCHES; batch++)
        took[batch] = batch_run(round, context, count) / (double) count;
    return median(took, BATCHES);
}

static const struct part *part_find(const char *name)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (0 == strcmp(parts[i]->name, name))
            return parts[i];
    return NULL;
}

static void usage(void)
{
    fprintf(stderr, "usage: bench PART [SIZE...]\nparts:");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        fprintf(stderr, " %s", parts[i]->name);
    fprintf(stderr, "\n");
}

int main(int argc, char **argv)
{
    const struct part *found = argc > 1 ? part_find(argv[1]) : NULL;
    struct part part;
    long sizes[SIZE_ARGS_MAX + 1];

    if (NULL == found || argc - 2 > SIZE_ARGS_MAX) {
        usage();
        return 1;
    }
    part = *found;
    for (int i = 2; i < argc; i++) {
        char *end;

        sizes[i - 2] = strtol(argv[i], &end, 10);
        if (*end != '\0' || end == argv[i] || sizes[i - 2] < 0) {
            fprintf(stderr, "bench: \"%s\" is not a size; give bytes as digits.\n", argv[i]);
            return 1;
        }
    }
    if (argc > 2) {
        sizes[argc - 2] = SIZES_END;
        part.sizes = sizes;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    part.measure(&part);
    MPI_Finalize();
    return 0;
}
