/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that test/demo runs: plain MPI, compiled by mpicc, knowing nothing of Multilane.
 * Ranks talk in pairs; messages of several sizes go forth and back, every byte is checked, and rank
 * 0 prints how long one way took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const int sizes[] = {8, 1024, 16384, 131072, 1048576, 8388608};

enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 8388608 };

static unsigned char *bytes;

static unsigned char byte_of(int position, int seed)
{
    return (unsigned char) (position * 7 + position / 256 + seed);
}

static void write_all(int size, int seed)
{
    for (int i = 0; i < size; ++i) {
        bytes[i] = byte_of(i, seed);
    }
}

static int count_wrong(int size, int seed)
{
    int wrong = 0;

    for (int i = 0; i < size; ++i) {
        wrong += bytes[i] != byte_of(i, seed);
    }
    return wrong;
}

/* One message each way; the contents change hands, so they are checked only at the end. */
static void exchange(int size, int partner, int first)
{
    if (first) {
        MPI_Send(bytes, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD);
        MPI_Recv(bytes, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(bytes, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(bytes, size, MPI_BYTE, partner, 1, MPI_COMM_WORLD);
    }
}

/* The best of several rounds, in seconds one way; *wrong grows by the bytes that came changed. */
static double one_way_s(int size, int partner, int first, int *wrong)
{
    int per_round = size <= 1024 ? 2000 : size <= 16384 ? 200 : 8, rounds = 15;
    double best = 1e9;

    for (int round = 0; round < rounds; ++round) {
        write_all(size, first ? round : -1);
        MPI_Barrier(MPI_COMM_WORLD);
        double started = MPI_Wtime();
        for (int i = 0; i < per_round; ++i) {
            exchange(size, partner, first);
        }
        double taken = (MPI_Wtime() - started) / per_round / 2;
        if (taken < best) {
            best = taken;
        }
        *wrong += count_wrong(size, round);
    }
    return best;
}

int main(int argc, char **argv)
{
    int rank, count, wrong = 0, wrong_all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    bytes = malloc(LARGEST);
    if (NULL == bytes || 0 != count % 2) {
        fprintf(stderr, "demo: an even number of ranks and %d bytes each are needed\n", LARGEST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int first = 0 == rank % 2, partner = first ? rank + 1 : rank - 1;

    if (0 == rank) {
        printf("%12s %14s %12s\n", "bytes", "one way, us", "MB/s");
    }
    for (int i = 0; i < SIZE_COUNT; ++i) {
        double taken_s = one_way_s(sizes[i], partner, first, &wrong);

        if (0 == rank) {
            printf("%12d %14.2f %12.1f\n", sizes[i], taken_s * 1e6, sizes[i] / taken_s / 1e6);
        }
    }
    MPI_Allreduce(&wrong, &wrong_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d ranks, %d wrong bytes\n", count, wrong_all);
    }
    free(bytes);
    MPI_Finalize();
    return 0 != wrong_all;
}
