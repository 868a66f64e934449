/* SPDX-License-Identifier: BSD-3-Clause */
/* What two ranks measure for test/bench/regret: messages of each size, one after the other there
 * and back, and windows of them one way, so many that a plan can learn of them; the median of the
 * last ones. Prints `KIND SIZE SECONDS`, a message. Plain MPI.
 *
 *   regret_measure MESSAGES LARGEST [SECONDS a size] */
#include "median.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW    16
#define LAST      300 /* so many count */
#define WINDOW_LO ((size_t) 16 << 10)
#define WINDOW_HI ((size_t) 4 << 20)

static int rank;
static char *buffer;
static double *times;

static double median_of_last(int count)
{
    int first = count > LAST ? count - LAST : 0;
    return median(times + first, count - first);
}

/* One message there and one back: half of that. */
static double trip(size_t bytes)
{
    double begin = MPI_Wtime();
    if (rank == 0)
        MPI_Send(buffer, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, (int) bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(buffer, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / 2;
}

/* WINDOW messages to rank 1, and its word that they are there: a message's part. */
static double window(size_t bytes)
{
    MPI_Request requests[WINDOW];
    double begin = MPI_Wtime();
    for (int i = 0; i < WINDOW; i++)
        if (rank == 0)
            MPI_Isend(buffer + i % 4 * bytes, (int) bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Irecv(buffer + i % 4 * bytes, (int) bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD,
                      &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / WINDOW;
}

/* At most so long a size; both ranks stop at the same round. */
static void measure(const char *kind, double (*round)(size_t bytes), size_t bytes, int most,
                    double seconds)
{
    double begin = MPI_Wtime();
    int count = 0, goes_on = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    while (goes_on && count < most) {
        times[count++] = round(bytes);
        goes_on = MPI_Wtime() - begin < seconds;
        if (count % 16 == 0)
            MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        else
            goes_on = 1;
    }
    if (rank == 0)
        printf("%s %zu %.9g\n", kind, bytes, median_of_last(count));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int messages = argc > 1 ? atoi(argv[1]) : 2000;
    size_t largest = argc > 2 ? strtoul(argv[2], NULL, 10) : (size_t) 16 << 20;
    double seconds = argc > 3 ? atof(argv[3]) : 3;
    buffer = malloc(4 * (largest > WINDOW_HI ? largest : WINDOW_HI));
    times = malloc((size_t) messages * sizeof(times[0]));
    if (!buffer || !times || messages < 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(buffer, rank, 4 * (largest > WINDOW_HI ? largest : WINDOW_HI));
    for (size_t bytes = 1; bytes <= largest; bytes *= bytes < 4096 ? 8 : 2) {
        measure("oneway", trip, bytes, messages, seconds);
        if (bytes >= WINDOW_LO && bytes <= WINDOW_HI)
            measure("window", window, bytes, (messages + WINDOW - 1) / WINDOW * 2, seconds);
    }
    free(times);
    free(buffer);
    MPI_Finalize();
    return 0;
}
