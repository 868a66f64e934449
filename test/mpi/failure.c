/* SPDX-License-Identifier: BSD-3-Clause */
/* A process dies: what ULFM promises to the others holds over the PML. Needs Open MPI 5.0 or later,
 * started with --with-ft ulfm; 4 ranks, of which the last one dies. With an argument barriers go
 * through shared memory, where those who wait in one learn of the death. */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>

static int rank, size;
static MPI_Comm together; /* null: no barrier is looked at */

static void expect(int error, int class_wanted, const char *what)
{
    int class_seen;
    MPI_Error_class(error, &class_seen);
    if (class_seen == class_wanted)
        return;
    printf("rank %d: %s: error class %d, expected %d\n", rank, what, class_seen, class_wanted);
    fflush(stdout);
    abort();
}

/* Large messages both ways between rank 0 and the one that dies while they move. */
static char *moving[2];
static MPI_Request moving_requests[2];

static void move_much(int partner)
{
    const int bytes = 100 << 20;
    double begin = MPI_Wtime();
    int flag;
    for (int i = 0; i < 2; i++)
        moving[i] = calloc(1, (size_t) bytes);
    MPI_Irecv(moving[0], bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &moving_requests[0]);
    MPI_Isend(moving[1], bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &moving_requests[1]);
    while (MPI_Wtime() - begin < 0.003)
        MPI_Testall(2, moving_requests, &flag, MPI_STATUSES_IGNORE);
}

/* What was moving ends, in an error unless all had come, and its memory is the program's again. */
static void what_moved_ends(void)
{
    for (int i = 0; i < 2; i++) {
        int error = MPI_Wait(&moving_requests[i], MPI_STATUS_IGNORE);
        if (MPI_SUCCESS != error)
            expect(error, MPIX_ERR_PROC_FAILED, "a message that was moving");
        free(moving[i]);
    }
}

/* Receives, small sends and large ones with the dead end in MPI_ERR_PROC_FAILED, not in a hang. */
static void talk_to_the_dead(void)
{
    int dead = size - 1, value;
    size_t bytes = (size_t) 4 << 20;
    char *large = calloc(1, bytes);
    MPI_Request requests[2];
    MPI_Irecv(large, (int) bytes, MPI_BYTE, dead, 1, MPI_COMM_WORLD, &requests[0]);
    expect(MPI_Recv(&value, 1, MPI_INT, dead, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
           MPIX_ERR_PROC_FAILED, "receive from the dead");
    expect(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED,
           "receive posted before it was known");
    expect(MPI_Send(large, (int) bytes, MPI_BYTE, dead, 3, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED,
           "large send to the dead");
    expect(MPI_Send(&value, 1, MPI_INT, dead, 4, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED,
           "small send to the dead");
    free(large);
}

static void meet_without_the_dead(void)
{
    for (int i = 0; i < 2; i++)
        expect(MPI_Barrier(together), MPIX_ERR_PROC_FAILED, "barrier that the dead do not reach");
    MPI_Comm_free(&together);
}

enum { SENDER = 1, RECEIVER = 2, FIRST = 6, FROM_ANY = 8, HAS_COME = 10, BYTES_FROM_ANY = 8 << 20 };

/* The process dies while a message is on its way to a receive from any source, whose sender
 * computes: it arrives there, or the receive ends without it and the next one gets it. */
static void send_and_compute(void)
{
    char *bytes = malloc(BYTES_FROM_ANY);
    MPI_Request request;
    memset(bytes, 7, BYTES_FROM_ANY);
    MPI_Send(bytes, 1, MPI_BYTE, RECEIVER, FIRST, MPI_COMM_WORLD); /* they are connected */
    MPI_Isend(bytes, BYTES_FROM_ANY, MPI_BYTE, RECEIVER, FROM_ANY, MPI_COMM_WORLD, &request);
    sleep(1);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "send to a receive from any source");
    free(bytes);
}

static void receive_from_any(void)
{
    char *bytes = calloc(1, BYTES_FROM_ANY);
    int has_come = 1;
    MPI_Recv(bytes, 1, MPI_BYTE, SENDER, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int error = MPI_Recv(bytes, BYTES_FROM_ANY, MPI_BYTE, MPI_ANY_SOURCE, FROM_ANY, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) {
        expect(error, MPIX_ERR_PROC_FAILED, "receive from any source");
        expect(MPI_Recv(bytes, BYTES_FROM_ANY, MPI_BYTE, SENDER, FROM_ANY, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE),
               MPI_SUCCESS, "receive after one from any source");
    }
    for (int i = 0; i < BYTES_FROM_ANY; i++)
        if (bytes[i] != 7)
            expect(i, -1, "byte of a message from any source");
    free(bytes);
    MPI_Send(&has_come, 1, MPI_INT, 0, HAS_COME, MPI_COMM_WORLD);
}

static void wait_for_revoke(void)
{
    int value;
    expect(MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED,
           "receive on a revoked communicator");
}

static void go_on(void)
{
    MPI_Comm shrunk;
    int count, sum;
    expect(MPIX_Comm_shrink(MPI_COMM_WORLD, &shrunk), MPI_SUCCESS, "shrink");
    MPI_Comm_size(shrunk, &count);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, shrunk);
    if (count != size - 1 || sum != (size - 1) * (size - 2) / 2) {
        printf("rank %d: %d survivors with sum %d\n", rank, count, sum);
        abort();
    }
    if (rank == 0)
        printf("the %d others went on\n", count);
    MPI_Comm_free(&shrunk);
}

int main(int argc, char **argv)
{
    int has_come;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    together = MPI_COMM_NULL;
    if (argc > 1) {
        MPI_Comm_dup(MPI_COMM_WORLD, &together);
        for (int i = 0; i < 10; i++)
            MPI_Barrier(together);
    }
    if (rank == size - 1) {
        move_much(0);
        raise(SIGKILL);
    }
    if (rank == 0) {
        move_much(size - 1);
        what_moved_ends();
        if (together != MPI_COMM_NULL)
            meet_without_the_dead();
        talk_to_the_dead();
        if (argc == 1)
            MPI_Recv(&has_come, 1, MPI_INT, RECEIVER, HAS_COME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPIX_Comm_revoke(MPI_COMM_WORLD);
    } else {
        if (together != MPI_COMM_NULL)
            meet_without_the_dead();
        else if (rank == SENDER)
            send_and_compute();
        else
            receive_from_any();
        wait_for_revoke();
    }
    go_on();
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

#else

int main(void)
{
    printf("this Open MPI has no ULFM\n");
    return 1;
}

#endif
