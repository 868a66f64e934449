/* SPDX-License-Identifier: BSD-3-Clause */
/* What a solver does, for a recording: steps STEPS BYTES COMPUTE-US. In each step a rank computes
 * so long, ranks of even number send such a message to the next one, or in odd steps receive one
 * from it, by persistent requests; both exchange a small part of it, and a number is reduced. Every
 * fourth step sends eight messages of a quarter to the next rank, which takes them from any source,
 * and back. The number of ranks is even. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 8, EVERY = 4, SMALL = 64 };

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        ;
}

static void window(char *memory, int bytes, int other, bool sends)
{
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW && !sends; i++)
        MPI_Irecv(memory + i * bytes, bytes, MPI_BYTE, MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                  &requests[i]);
    for (int i = 0; i < WINDOW && sends; i++)
        MPI_Send(memory, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD);
    for (int done = sends; !done;)
        MPI_Testall(WINDOW, requests, &done, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, steps = argc > 1 ? atoi(argv[1]) : 10, bytes = argc > 2 ? atoi(argv[2]) : 8192;
    double seconds = argc > 3 ? 1e-6 * atof(argv[3]) : 0, part = 1, sum;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int other = rank ^ 1;
    char *memory = calloc(WINDOW, (size_t) bytes);
    MPI_Send_init(memory, bytes, MPI_BYTE, other, WINDOW, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(memory, bytes, MPI_BYTE, other, WINDOW, MPI_COMM_WORLD, &requests[1]);
    for (int step = 0; step < steps; step++) {
        MPI_Request *request = &requests[(step + rank) % 2];
        compute(seconds);
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        MPI_Sendrecv(memory, bytes / SMALL, MPI_BYTE, other, 0, memory + bytes, bytes / SMALL,
                     MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (step % EVERY == 0) {
            window(memory, bytes / EVERY, other, rank % 2 == 0);
            window(memory, bytes / EVERY, other, rank % 2);
        }
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(memory);
    MPI_Finalize();
    if (rank == 0)
        printf("%d steps\n", steps);
    return 0;
}
