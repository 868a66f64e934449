/* SPDX-License-Identifier: BSD-3-Clause */
/* Many senders, one receiver: each rank but 0 sends COUNT messages of BYTES to rank 0, two at a
 * time, and between them, every few milliseconds, a small message that holds the time. Prints what
 * rank 0 received a second, and how old the small messages were. The clock must be one for all
 * ranks, as on the hosts that test/lab/rails plays:
 *
 *   test/lab/rails --hosts 8 --rails 200 --port 200:256 -- mpirun -n 8 --map-by node \
 *       --mca pml multilane --mca btl self,sock test/bench/incast [BYTES [COUNT]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT_ONCE    2
#define PAUSE_S    5e-3
#define SMALLS_MAX 65536

enum { TAG_LARGE = 1, TAG_SMALL, TAG_END };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* A small message says when it was sent, and is sent while the large ones are under way. */
static void send_all(char *buffer, int bytes, int count)
{
    MPI_Request large[AT_ONCE];
    double next_s = now_s(), end = 0;
    int started = 0, done = 0, flag, which;

    for (; started < AT_ONCE && started < count; started++)
        MPI_Isend(buffer, bytes, MPI_BYTE, 0, TAG_LARGE, MPI_COMM_WORLD, &large[started]);
    for (int i = started; i < AT_ONCE; i++)
        large[i] = MPI_REQUEST_NULL;
    while (done < count) {
        MPI_Testany(AT_ONCE, large, &which, &flag, MPI_STATUS_IGNORE);
        if (flag && which != MPI_UNDEFINED) {
            done++;
            if (started++ < count)
                MPI_Isend(buffer, bytes, MPI_BYTE, 0, TAG_LARGE, MPI_COMM_WORLD, &large[which]);
        }
        double now = now_s();
        if (now >= next_s && done < count) {
            MPI_Send(&now, 1, MPI_DOUBLE, 0, TAG_SMALL, MPI_COMM_WORLD);
            next_s = now_s() + PAUSE_S;
        }
    }
    MPI_Send(&end, 1, MPI_DOUBLE, 0, TAG_END, MPI_COMM_WORLD);
}

struct received {
    double ages_s[SMALLS_MAX];
    int smalls, larges, wrong;
};

/* Receives stay posted for AT_ONCE large messages of each sender, one small one and one end. */
static void receive_all(char *buffer, int bytes, int count, int senders, struct received *received)
{
    int larges = senders * AT_ONCE, places = larges + 2, ended = 0, which;
    MPI_Request *requests = calloc((size_t) places, sizeof(*requests));
    int *left = calloc((size_t) senders, sizeof(*left));
    double small, end;
    MPI_Status status;

    for (int i = 0; i < larges; i++) {
        int sender = i % senders;
        requests[i] = MPI_REQUEST_NULL;
        if (left[sender]++ < count)
            MPI_Irecv(buffer + (size_t) i * (size_t) bytes, bytes, MPI_BYTE, sender + 1, TAG_LARGE,
                      MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Irecv(&small, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG_SMALL, MPI_COMM_WORLD, &requests[larges]);
    MPI_Irecv(&end, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG_END, MPI_COMM_WORLD, &requests[larges + 1]);
    while (received->larges < senders * count || ended < senders) {
        MPI_Waitany(places, requests, &which, &status);
        if (which == larges) {
            if (received->smalls < SMALLS_MAX)
                received->ages_s[received->smalls++] = now_s() - small;
            MPI_Irecv(&small, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG_SMALL, MPI_COMM_WORLD,
                      &requests[which]);
        } else if (which == larges + 1) {
            if (++ended < senders)
                MPI_Irecv(&end, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG_END, MPI_COMM_WORLD,
                          &requests[which]);
        } else {
            char *place = buffer + (size_t) which * (size_t) bytes;
            int sender = which % senders;
            received->wrong +=
                place[0] != (char) (sender + 1) || place[bytes - 1] != (char) (sender + 1);
            received->larges++;
            if (left[sender]++ < count)
                MPI_Irecv(place, bytes, MPI_BYTE, sender + 1, TAG_LARGE, MPI_COMM_WORLD,
                          &requests[which]);
        }
    }
    MPI_Cancel(&requests[larges]);
    MPI_Wait(&requests[larges], MPI_STATUS_IGNORE);
    free(requests);
    free(left);
}

static void print(const struct received *received, int bytes, int senders, double taken_s)
{
    printf("%d senders, %d messages of %d bytes: %.1f MB/s", senders, received->larges, bytes,
           1e-6 * (double) received->larges * bytes / taken_s);
    if (received->smalls)
        printf("; %d small messages, age in ms: %.2f median, %.2f of 95 %%, %.2f at most",
               received->smalls, 1e3 * received->ages_s[received->smalls / 2],
               1e3 * received->ages_s[received->smalls * 95 / 100],
               1e3 * received->ages_s[received->smalls - 1]);
    printf("; %d wrong\n", received->wrong);
}

int main(int argc, char **argv)
{
    static struct received received;
    int rank, ranks, bytes = argc > 1 ? atoi(argv[1]) : 1 << 20;
    int count = argc > 2 ? atoi(argv[2]) : 32;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t room = (size_t) bytes * (size_t) (rank ? 1 : AT_ONCE * (ranks - 1));
    char *buffer = bytes > 0 && count > 0 && ranks > 1 ? malloc(room) : NULL;
    if (!buffer) {
        fprintf(stderr, "incast: it takes two ranks or more, BYTES and COUNT above 0, memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    memset(buffer, rank, room);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = now_s();
    if (rank)
        send_all(buffer, bytes, count);
    else
        receive_all(buffer, bytes, count, ranks - 1, &received);
    double taken_s = now_s() - begin_s;
    qsort(received.ages_s, (size_t) received.smalls, sizeof(received.ages_s[0]), compare);
    if (rank == 0)
        print(&received, bytes, ranks - 1, taken_s);
    free(buffer);
    MPI_Finalize();
    return received.wrong != 0;
}
