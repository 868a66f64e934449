/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 is late again and again: with a message, with a receive, to a barrier. Rank 0 prints how
 * long it was in each kind of call, to be held against what explain says of it. */
#include <mpi.h>
#include <stdio.h>

#define ROUNDS 30
#define LATE_S 0.03 /* longer than another process keeps the processor */

static int rank;
static char large[1 << 20];

static void late(void)
{
    double begin = MPI_Wtime();
    while (rank == 1 && MPI_Wtime() - begin < LATE_S)
        ;
}

static void message_exchange(void)
{
    if (rank == 0)
        MPI_Recv(large, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(large, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

static void receive_exchange(void)
{
    if (rank == 0)
        MPI_Ssend(large, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(large, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void phase(const char *name, void (*call)(void))
{
    double inside_s = 0;
    for (int round = 0; round < ROUNDS; round++) {
        late();
        double begin = MPI_Wtime();
        call();
        inside_s += MPI_Wtime() - begin;
    }
    if (rank == 0)
        printf("%s %.3f\n", name, inside_s);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    phase("sender", message_exchange);
    phase("receiver", receive_exchange);
    phase("collective", barrier);
    MPI_Finalize();
    return 0;
}
