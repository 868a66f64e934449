/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process keeps for messages that their receiver does not take yet: many sends wait in the
 * user's memory, and only some are copied.
 *     queued BYTES      the most that the sender may grow for each of its messages */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 20000, SIZE = 1000, TAG = 1, GO = 2 };

static long resident_bytes(void)
{
    char line[128];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (NULL != file && NULL != fgets(line, sizeof(line), file))
        if (0 == strncmp(line, "VmRSS:", 6))
            kilobytes = atol(line + 6);
    if (NULL != file)
        fclose(file);
    return kilobytes * 1024;
}

static int send_all(char *out, long most)
{
    MPI_Request *requests = calloc(MESSAGES, sizeof(*requests));
    long before = resident_bytes(), grown;

    for (long i = 0; i < MESSAGES; i++)
        MPI_Isend(out + i * SIZE, SIZE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    grown = (resident_bytes() - before) / MESSAGES;
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    free(requests);
    printf("queued: %ld bytes for each message, %ld are allowed\n", grown, most);
    return 0 < before && grown <= most;
}

/* Without MPI for a while, so that nothing is taken. */
static int receive_all(void)
{
    char in[SIZE];
    int good = 1;
    struct timespec away = {.tv_nsec = 700000000};

    nanosleep(&away, NULL);
    for (long i = 0; i < MESSAGES; i++) {
        MPI_Recv(in, SIZE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        good = good && in[0] == (char) i && in[SIZE - 1] == (char) i;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return good;
}

int main(int argc, char **argv)
{
    int rank, token = 0, good = 1;
    char *out = malloc((size_t) MESSAGES * SIZE);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long i = 0; i < MESSAGES; i++)
        memset(out + i * SIZE, (int) i, SIZE);
    MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank)
        good = send_all(out, argc > 1 ? atol(argv[1]) : 0);
    else if (1 == rank)
        good = receive_all();
    if (!good)
        fprintf(stderr, "queued: rank %d: it is not as it must be\n", rank);
    free(out);
    MPI_Finalize();
    return !good;
}
