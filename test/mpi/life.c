/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that compute, and so answer on no lane, for three times as long as silence may last,
 * while wires are cut: a process that lives is not lost, one that is cut off is, and no other one.
 *
 *   life pairs LOST_S [KIND]  ranks of the first half with those of the second; KIND as in `enum
 *                             kind`, else every pair has another one
 *   life host LOST_S          the last rank is cut off half a second after "life begins"
 *   life process LOST_S       it is killed, and others on its host live; the job is aborted in the
 *                             end
 *
 * What happens to the wires is up to test/lab/rails. */
#include <mpi.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMALL = 64, LARGE = 1 << 20, EARLY = 8, LATE = 24, TAG = 1, NEVER = 2 };
/* When all wires are surely cut, and how long a loss may take to be found, beyond the silence:
 * looks are a second apart, and the kernel waits for answers to some repeats, which come at
 * multiples of a time that it has measured. */
static const double cut_s = 2.5, looks_s = 5;

/* Who is in MPI while the other one computes: */
enum kind { FIRST_SENDS, FIRST_RECEIVES, BOTH_COMPUTE, SECOND_SENDS, KINDS };

static int rank, size;
static double lost_s;

static void wrong(const char *what, int other)
{
    fprintf(stderr, "life: rank %d and rank %d: %s\n", rank, other, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compute(double seconds)
{
    const struct timespec time = {(time_t) seconds, (long) ((seconds - (time_t) seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static void fill(unsigned char *bytes, int count, int from, int number)
{
    for (int i = 0; i < count; i++)
        bytes[i] = (unsigned char) (i * 7 + from * 31 + number * 13 + (i >> 8));
}

static int length_of(int number)
{
    return number % 4 == 3 ? LARGE : SMALL << number % 4;
}

/* All at once. */
static void send_many(int to, int first, int last)
{
    static unsigned char bytes[LATE][LARGE];
    MPI_Request requests[LATE];
    for (int i = first; i < last; i++) {
        fill(bytes[i], length_of(i), rank, i);
        MPI_Isend(bytes[i], length_of(i), MPI_BYTE, to, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = first; i < last; i++)
        if (MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS)
            wrong("a send failed", to);
}

static void receive_many(int from, int first, int last)
{
    static unsigned char bytes[LARGE], expected[LARGE];
    for (int i = first; i < last; i++) {
        fill(expected, length_of(i), from, i);
        if (MPI_Recv(bytes, length_of(i), MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            wrong("a receive failed", from);
        if (memcmp(bytes, expected, (size_t) length_of(i)) != 0)
            wrong("wrong bytes", from);
    }
}

static void talk(int other, int first, int last)
{
    if (rank < other) {
        send_many(other, first, last);
        receive_many(other, first, last);
    } else {
        receive_many(other, first, last);
        send_many(other, first, last);
    }
}

/* Each with each, so that every lane is connected. */
static void talk_all(int count)
{
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (rank == i || rank == j)
                talk(i + j - rank, 0, EARLY);
}

static void begins(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("life begins\n");
        fflush(stdout);
    }
}

/* --- pairs --------------------------------------------------------------------------------------
 */

static void pair_sends(int other)
{
    send_many(other, EARLY, LATE);
}

static void pair_computes_and_receives(int other)
{
    compute(3 * lost_s);
    receive_many(other, EARLY, LATE);
}

static void pair_receives(int other)
{
    receive_many(other, EARLY, LATE);
}

static void pair_computes_and_sends(int other)
{
    compute(3 * lost_s);
    send_many(other, EARLY, LATE);
}

static void pairs(int only)
{
    static void (*const acts[KINDS][2])(int other) = {
        [FIRST_SENDS] = {pair_sends, pair_computes_and_receives},
        [FIRST_RECEIVES] = {pair_receives, pair_computes_and_sends},
        [BOTH_COMPUTE] = {pair_computes_and_sends, pair_computes_and_receives},
        [SECOND_SENDS] = {pair_computes_and_receives, pair_sends},
    };
    int half = size / 2, is_second = rank >= half, other = is_second ? rank - half : rank + half;
    int kind = only >= 0 ? only : rank % half % KINDS;
    talk_all(size);
    begins();
    talk(other, 0, EARLY);
    acts[kind][is_second](other);
    talk(other, 0, EARLY);
    if (rank == 0)
        printf("%d ranks live\n", size);
}

/* --- a host that dies ---------------------------------------------------------------------------
 */

/* Talks to it once its wires are cut, and waits for an answer. */
static double find_lost(int who)
{
    char bytes[SMALL] = {0};
    MPI_Request request;
    compute(cut_s);
    double begin = MPI_Wtime();
    MPI_Isend(bytes, SMALL, MPI_BYTE, who, NEVER, MPI_COMM_WORLD, &request);
    if (MPI_Recv(bytes, SMALL, MPI_BYTE, who, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS)
        wrong("a receive from a lost process ended without an error", who);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Wtime() - begin;
}

static void survive(int dead)
{
    if (rank == 0) {
        double took = find_lost(dead);
        printf("rank %d was lost after %.1f s\n", dead, took);
        if (took > lost_s + looks_s)
            wrong("it was found too late that it is lost", dead);
        for (int i = 1; i < dead; i++)
            receive_many(i, EARLY, LATE);
    } else {
        compute(3 * lost_s);
        send_many(0, EARLY, LATE);
    }
    talk_all(dead);
    if (rank == 0) {
        printf("%d ranks live\n", dead);
        fflush(stdout);
    }
}

static void host(bool dies)
{
    talk_all(size);
    begins();
    if (rank == size - 1 && dies)
        raise(SIGKILL);
    if (rank == size - 1)
        find_lost(0);
    else
        survive(size - 1);
    if (dies) {
        talk_all(size - 1);           /* what rank 0 had to say was said */
        MPI_Abort(MPI_COMM_WORLD, 3); /* MPI_Finalize would wait for it */
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* so who waits asks, too */
    if (argc < 3 || (lost_s = atof(argv[2])) <= 0 || size % 2 != 0)
        wrong("usage: life pairs|host|process LOST_S [KIND], on an even number of ranks", rank);
    if (strcmp(argv[1], "pairs") == 0)
        pairs(argc > 3 ? atoi(argv[3]) % KINDS : -1);
    else
        host(strcmp(argv[1], "process") == 0);
    MPI_Finalize();
    return 0;
}
