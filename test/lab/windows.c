/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations while lanes come and go, every byte checked: windows SECONDS [strangers].
 * Each round each rank puts to, gets from and adds to the next one, between fences and under locks;
 * or, of eight, puts to and gets from one with which no messages are exchanged. Says how many
 * rounds there were, and how long the slowest took. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 20000

/* Where in a rank's window the previous one puts, the next one gets, and all add. */
enum { AT_PUT = 0, AT_GET = MOST, AT_SUM = 2 * MOST, AT_COUNT, WINDOW_INTS };

static int rank, ranks;
static int base[WINDOW_INTS], given[MOST], got[MOST];
static const int counts[] = {1, 500, MOST};

static int value_of(int from, int round, int at)
{
    return from * 1000003 + round * 101 + at;
}

static long wrong_in(const int *values, int count, int from, int round)
{
    long wrong = 0;

    for (int i = 0; i < count; i++)
        wrong += values[i] != value_of(from, round, i);
    return wrong;
}

static long fences(MPI_Win window, int round, int count)
{
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;

    for (int i = 0; i < count; i++) {
        given[i] = value_of(rank, round, i);
        base[AT_GET + i] = value_of(rank, round, i);
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(given, count, MPI_INT, next, AT_PUT, count, MPI_INT, window);
    MPI_Get(got, count, MPI_INT, next, AT_GET, count, MPI_INT, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    return wrong_in(base + AT_PUT, count, previous, round) + wrong_in(got, count, next, round);
}

/* Rank 0's sum grows by one for each rank and round, and each drawn number is new. */
static long locks(MPI_Win window, int *last)
{
    static const int one = 1;
    int drawn;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Accumulate(&one, 1, MPI_INT, 0, AT_SUM, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Fetch_and_op(&one, &drawn, MPI_INT, 0, AT_COUNT, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    long wrong = drawn <= *last;
    *last = drawn;
    return wrong;
}

/* No step of Open MPI's trees and exchanges of eight leads from a rank to this one. */
static long with_stranger(MPI_Win window, int round, int count)
{
    int stranger = rank ^ 5;

    for (int i = 0; i < count; i++)
        given[i] = value_of(rank, round, i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, stranger, 0, window);
    MPI_Put(given, count, MPI_INT, stranger, AT_PUT, count, MPI_INT, window);
    MPI_Win_unlock(stranger, window);
    MPI_Win_lock(MPI_LOCK_SHARED, stranger, 0, window);
    MPI_Get(got, count, MPI_INT, stranger, AT_PUT, count, MPI_INT, window);
    MPI_Win_unlock(stranger, window);
    return wrong_in(got, count, rank, round);
}

static long sums(MPI_Win window, int rounds)
{
    long wrong = 0;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    if (rank == 0)
        wrong = (base[AT_SUM] != rounds * ranks) + (base[AT_COUNT] != rounds * ranks);
    MPI_Win_unlock(rank, window);
    return wrong;
}

static int rounds_run(MPI_Win window, double seconds, bool strangers, long *wrong, double *slowest)
{
    double begin = MPI_Wtime();
    int round = 0, last = -1;

    for (int more = 1; more; round++) {
        double before = MPI_Wtime();

        *wrong += strangers ? with_stranger(window, round, counts[round % 3])
                            : fences(window, round, counts[round % 3]) + locks(window, &last);
        if (MPI_Wtime() - before > *slowest)
            *slowest = MPI_Wtime() - before;
        more = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (round == 0 && rank == 0)
            printf("windows begin\n"), fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    *wrong += strangers ? 0 : sums(window, round);
    return round;
}

int main(int argc, char **argv)
{
    double slowest = 0, slowest_of_all;
    long wrong = 0, all_wrong;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Not allocated by MPI: within a node that would go by shared memory. */
    MPI_Win_create(base, WINDOW_INTS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    int rounds = rounds_run(window, argc > 1 ? atof(argv[1]) : 1, argc > 2, &wrong, &slowest);
    MPI_Reduce(&slowest, &slowest_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("windows of %d ranks: %d rounds, %ld wrong, the slowest took %.0f ms\n", ranks,
               rounds, all_wrong, slowest_of_all * 1e3);
    MPI_Win_free(&window);
    MPI_Finalize();
    return wrong != 0;
}
