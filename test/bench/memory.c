/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident memory of a process: before any message, after one message to and from every peer, and
 * after a hundred; in bytes a peer what the messages added. And the time from the program's start
 * to the end of MPI_Init, and of a barrier. */
#define _GNU_SOURCE
#include "part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT 100

/* Private and shared pages apart: a page that ten processes share is counted once in Pss. */
static double smaps_kib(const char *field)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1;
    size_t length = strlen(field);

    if (NULL == file)
        bench_stop("/proc/self/smaps_rollup cannot be read, so memory cannot be measured.");
    while (NULL != fgets(line, sizeof(line), file))
        if (0 == strncmp(line, field, length) && line[length] == ':')
            kib = strtod(line + length + 1, NULL);
    fclose(file);
    return kib;
}

static double mean_over_ranks(double value)
{
    double sum;

    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / bench_ranks();
}

static void everyone_talks(int rounds)
{
    int ranks = bench_ranks(), rank = bench_rank();
    char out[8] = {0}, in[8];

    for (int round = 0; round < rounds; round++)
        for (int step = 1; step < ranks; step++)
            MPI_Sendrecv(out, sizeof(out), MPI_BYTE, (rank + step) % ranks, 1, in, sizeof(in),
                         MPI_BYTE, (rank - step + ranks) % ranks, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

static void memory_measure(const struct part *part)
{
    int peers = bench_ranks() - 1;
    double rss[3], pss[3];

    (void) part;
    if (peers < 1)
        bench_stop("memory a peer needs at least 2 ranks.");
    rss[0] = smaps_kib("Rss");
    pss[0] = smaps_kib("Pss");
    everyone_talks(1);
    MPI_Barrier(MPI_COMM_WORLD);
    rss[1] = smaps_kib("Rss");
    pss[1] = smaps_kib("Pss");
    everyone_talks(REPEAT);
    MPI_Barrier(MPI_COMM_WORLD);
    rss[2] = smaps_kib("Rss");
    pss[2] = smaps_kib("Pss");
    for (int i = 0; i < 3; i++) {
        rss[i] = mean_over_ranks(rss[i]);
        pss[i] = mean_over_ranks(pss[i]);
    }
    if (0 != bench_rank())
        return;
    bench_print("memory_before_KiB", bench_ranks(), rss[0]);
    bench_print("memory_first_KiB", bench_ranks(), rss[1]);
    bench_print("memory_hundred_KiB", bench_ranks(), rss[2]);
    bench_print("memory_before_own_KiB", bench_ranks(), pss[0]);
    bench_print("memory_hundred_own_KiB", bench_ranks(), pss[2]);
    bench_print("memory_first_B_per_peer", bench_ranks(), (rss[1] - rss[0]) * 1024 / peers);
    bench_print("memory_hundred_B_per_peer", bench_ranks(), (rss[2] - rss[0]) * 1024 / peers);
}

/* The whole job's time is taken by test/bench/run, which starts it. */
static void start_measure(const struct part *part)
{
    (void) part;
    MPI_Barrier(MPI_COMM_WORLD);
}

const struct part part_memory = {"memory", sizes_none, memory_measure};
const struct part part_start = {"start", sizes_none, start_measure};
