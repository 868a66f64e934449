/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank sends to each other one at once, so that each pair of processes needs a connection, and
 * every byte is checked: all_to_all [ROUNDS [SECONDS]]. Says how long the slowest round took; with
 * SECONDS there are more of them, until so many are over. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = {8, 20000};

#define SIZES   ((int) (sizeof(sizes) / sizeof(sizes[0])))
#define LARGEST 20000

static int rank, ranks;

static unsigned char byte_of(int from, int to, int round, int at)
{
    return (unsigned char) (from * 31 + to * 7 + round * 3 + at % 251);
}

static void message_fill(unsigned char *message, int size, int to, int round)
{
    for (int i = 0; i < size; i++)
        message[i] = byte_of(rank, to, round, i);
}

static long message_wrong(const unsigned char *message, int size, int from, int round)
{
    long wrong = 0;

    for (int i = 0; i < size; i++)
        wrong += message[i] != byte_of(from, rank, round, i);
    return wrong;
}

static long exchange(int size, int round, unsigned char *out, unsigned char *in,
                     MPI_Request *requests)
{
    long wrong = 0;

    memset(in, 0, (size_t) ranks * LARGEST);
    for (int i = 0; i < ranks; i++)
        MPI_Irecv(in + (size_t) i * LARGEST, size, MPI_BYTE, i, round, MPI_COMM_WORLD,
                  &requests[i]);
    for (int i = 0; i < ranks; i++) {
        int to = (rank + i) % ranks;

        message_fill(out + (size_t) to * LARGEST, size, to, round);
        MPI_Isend(out + (size_t) to * LARGEST, size, MPI_BYTE, to, round, MPI_COMM_WORLD,
                  &requests[ranks + i]);
    }
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ranks; i++)
        wrong += message_wrong(in + (size_t) i * LARGEST, size, i, round);
    return wrong;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 4, more = 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0, slowest = 0, slowest_of_all;
    long wrong = 0, all_wrong;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *out = malloc((size_t) ranks * LARGEST), *in = malloc((size_t) ranks * LARGEST);
    MPI_Request *requests = malloc(2 * (size_t) ranks * sizeof(*requests));
    if (!out || !in || !requests)
        MPI_Abort(MPI_COMM_WORLD, 2);
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds || more; round++) {
        double before = MPI_Wtime();
        wrong += exchange(sizes[round % SIZES], round % 1000, out, in, requests);
        if (MPI_Wtime() - before > slowest)
            slowest = MPI_Wtime() - before;
        more = MPI_Wtime() - begin < seconds;
        if (seconds > 0)
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (round == 0 && rank == 0)
            printf("all to all begins\n"), fflush(stdout);
    }
    MPI_Reduce(&slowest, &slowest_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("all to all of %d ranks: %ld bytes wrong, the slowest round took %.0f ms\n", ranks,
               all_wrong, slowest_of_all * 1e3);
    free(requests);
    free(in);
    free(out);
    MPI_Finalize();
    return wrong != 0;
}
