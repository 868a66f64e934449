/* SPDX-License-Identifier: BSD-3-Clause */
/* The last lane between two processes is lost, and errors are to be returned: whatever waits for
 * the other one, and whatever is asked of it later, ends in an error; so does the job, in order.
 * With the argument `uncontacted` they never exchanged a message before, and only wait for one.
 * The script that starts this cuts the lanes. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* LARGE is above what any sender may leave with a receiver that has not asked for it. */
enum { LARGE = 64 << 20, MIDDLE = 50000, TAG = 1, NEVER = 2 };
static const double most_s = 60;

static int rank, failures;

static void must_fail(int code, const char *what)
{
    if (MPI_SUCCESS != code)
        return;
    fprintf(stderr, "lost: rank %d: %s ended without an error\n", rank, what);
    failures++;
}

/* Until an error comes; false if none does. */
static int talk_until_lost(int partner)
{
    static char mine[MIDDLE], theirs[MIDDLE];
    double begin = MPI_Wtime();

    while (MPI_Wtime() - begin < most_s)
        if (MPI_SUCCESS != MPI_Sendrecv(mine, MIDDLE, MPI_BYTE, partner, TAG, theirs, MIDDLE,
                                        MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE))
            return 1;
    return 0;
}

static void what_waits_ends(int partner)
{
    static const char *const names[] = {"a receive", "a receive from anybody", "a synchronous send",
                                        "a large send"};
    static char in[2][8], small[8], large[LARGE];
    MPI_Request requests[4];

    MPI_Irecv(in[0], 8, MPI_BYTE, partner, NEVER, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], 8, MPI_BYTE, MPI_ANY_SOURCE, NEVER + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Issend(small, 8, MPI_BYTE, partner, NEVER + 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(large, LARGE, MPI_BYTE, partner, NEVER + 3, MPI_COMM_WORLD, &requests[3]);
    if (!talk_until_lost(partner)) {
        fprintf(stderr, "lost: rank %d: no lane was lost in %.0f s\n", rank, most_s);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < 4; i++)
        must_fail(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), names[i]);
}

/* Neither a receive nor a probe has anybody who could have noticed before. */
static void what_waits_uncontacted_ends(int partner)
{
    const struct timespec while_rails_fall = {1, 500000000};
    char in[8];

    nanosleep(&while_rails_fall, NULL);
    if (0 == rank)
        must_fail(MPI_Recv(in, 8, MPI_BYTE, partner, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "a receive");
    else
        must_fail(MPI_Probe(partner, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "a probe");
}

static void what_follows_fails(int partner, MPI_Request *buffered)
{
    char bytes[8] = {0};
    int found;
    MPI_Request request;

    must_fail(MPI_Send(bytes, 8, MPI_BYTE, partner, TAG, MPI_COMM_WORLD), "a later send");
    must_fail(MPI_Recv(bytes, 8, MPI_BYTE, partner, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "a later receive");
    must_fail(MPI_Probe(partner, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "a later probe");
    must_fail(MPI_Iprobe(partner, NEVER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE),
              "a later look");
    if (MPI_REQUEST_NULL != *buffered) {
        MPI_Start(buffered);
        must_fail(MPI_Wait(buffered, MPI_STATUS_IGNORE), "a later start of a buffered send");
        MPI_Request_free(buffered);
    }
    MPI_Send_init(bytes, 8, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, &request);
    if (MPI_SUCCESS != MPI_Start(&request) ||
        MPI_SUCCESS != MPI_Recv(bytes, 8, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ||
        MPI_SUCCESS != MPI_Wait(&request, MPI_STATUS_IGNORE)) {
        fprintf(stderr, "lost: rank %d cannot send to itself any more\n", rank);
        failures++;
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    static char attached[MPI_BSEND_OVERHEAD + 1000], bytes[8];
    MPI_Request buffered = MPI_REQUEST_NULL;
    int size, uncontacted = 2 == argc && 0 == strcmp(argv[1], "uncontacted");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (2 != size) {
        fprintf(stderr, "lost: it is for 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!uncontacted) {
        MPI_Buffer_attach(attached, sizeof(attached));
        MPI_Bsend_init(bytes, 8, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &buffered);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (0 == rank) {
        printf("talk begins\n");
        fflush(stdout);
    }
    if (uncontacted)
        what_waits_uncontacted_ends(1 - rank);
    else
        what_waits_ends(1 - rank);
    what_follows_fails(1 - rank, &buffered);
    printf("rank %d went on, %d failures\n", rank, failures);
    MPI_Finalize();
    return 0 != failures;
}
