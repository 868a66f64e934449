/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 sends to one rank after the other, each of which dies then. The script that starts this
 * gives it memory for one large ring, so the next one's is that of the last one. Open MPI has to be
 * told to let the others go on. */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 3000, BYTES = 1000 };

static void receive_and_die(void)
{
    static char bytes[BYTES];

    for (int i = 0; i < MESSAGES; i++)
        MPI_Recv(bytes, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
}

/* The death is noticed where something is waited for. */
static void send_and_outlive(int other)
{
    static const double aftermath_s = 0.5;
    static char bytes[BYTES];
    double begin;
    int found;

    for (int i = 0; i < MESSAGES; i++)
        MPI_Send(bytes, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    if (MPI_Recv(bytes, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        fprintf(stderr, "shm_heir: a message came from the dead\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (begin = MPI_Wtime(); MPI_Wtime() - begin < aftermath_s;)
        MPI_Iprobe(0, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank != 0)
        receive_and_die();
    for (int other = 1; other < ranks; other++)
        send_and_outlive(other);
    MPI_Abort(MPI_COMM_WORLD, 3); /* MPI_Finalize would wait for them */
}
