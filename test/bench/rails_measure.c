/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks measure over rails, for test/bench/rails. Of two ranks, `window:SIZE:COUNT` is the
 * bandwidth from rank 0 to rank 1 with COUNT messages under way, `oneway:SIZE:COUNT` the one-way
 * time of single messages, the median of COUNT round trips halved; `bcast`, `allreduce`,
 * `allgather`, `alltoall` and `barrier` are the mean time of one of COUNT operations of all ranks
 * in the slowest rank. `stream` and `trip` are a window and a single message over a bare socket
 * between the same two, over rail0 or else loopback, by ranks that look without a pause. Prints
 * FIGURE SIZE VALUE in bytes a second and seconds. */
#include "median.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW_S     1.0 /* windows follow each other for at least so long */
#define WINDOWS_MOST 2000
#define UNTIMED      8 /* operations, in which communicators get what they need */

static int rank, ranks;
static int bare = -1; /* the bare socket */

static void fail(const char *what)
{
    fprintf(stderr, "rails_measure: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *buffer_new(size_t bytes)
{
    void *buffer = malloc(bytes > 0 ? bytes : 1);

    if (NULL == buffer)
        fail("no memory");
    memset(buffer, 1, bytes);
    return buffer;
}

/* This host's address on rail0, or else of loopback. */
static struct sockaddr_in address_find(void)
{
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *all = NULL;

    if (0 == getifaddrs(&all))
        for (const struct ifaddrs *one = all; one; one = one->ifa_next)
            if (0 == strcmp(one->ifa_name, "rail0") && one->ifa_addr &&
                AF_INET == one->ifa_addr->sa_family)
                memcpy(&found, one->ifa_addr, sizeof found);
    freeifaddrs(all);
    return found;
}

static void bare_make(void)
{
    struct sockaddr_in address = address_find();
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (1 == rank) {
        if (bind(fd, (struct sockaddr *) &address, length) || listen(fd, 1) ||
            getsockname(fd, (struct sockaddr *) &address, &length))
            fail("no bare socket");
        MPI_Send(&address, (int) length, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        bare = accept(fd, NULL, NULL);
        close(fd);
    } else {
        MPI_Recv(&address, (int) length, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (connect(fd, (struct sockaddr *) &address, length))
            fail("the bare socket leads nowhere");
        bare = fd;
    }
    if (setsockopt(bare, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
        fcntl(bare, F_SETFL, O_NONBLOCK))
        fail("no bare connection");
}

static void bare_move(char *bytes, size_t length, bool sends)
{
    while (length > 0) {
        ssize_t moved =
            sends ? send(bare, bytes, length, MSG_NOSIGNAL) : recv(bare, bytes, length, 0);

        if (0 == moved || (moved < 0 && EAGAIN != errno))
            fail("the bare connection broke");
        if (moved > 0) {
            bytes += moved;
            length -= (size_t) moved;
        }
    }
}

static void stream_once(char *buffer, int size, int count, MPI_Request *requests)
{
    char word = 0;

    (void) requests;
    if (bare < 0)
        bare_make();
    bare_move(buffer, (size_t) size * (size_t) count, 0 == rank);
    bare_move(&word, 1, 1 == rank);
}

static void bare_trip_once(char *buffer, int size)
{
    if (bare < 0)
        bare_make();
    bare_move(buffer, (size_t) size, 0 == rank);
    bare_move(buffer, (size_t) size, 1 == rank);
}

/* One window, confirmed, so that what is timed has arrived. */
static void window_once(char *buffer, int size, int count, MPI_Request *requests)
{
    char word = 0;

    for (int i = 0; i < count; i++) {
        char *place = buffer + (size_t) i * (size_t) size;

        if (0 == rank)
            MPI_Isend(place, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(place, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (0 == rank)
        MPI_Recv(&word, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&word, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

/* The first window is not timed: connections are made, and socket buffers grow, in it. */
static double window_measure(void (*once)(char *, int, int, MPI_Request *), int size, int count)
{
    char *buffer = buffer_new((size_t) size * (size_t) count);
    MPI_Request *requests = buffer_new((size_t) count * sizeof *requests);
    int windows = 0, go_on = 1;
    double start, taken = 0;

    once(buffer, size, count, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    while (go_on) {
        once(buffer, size, count, requests);
        taken = MPI_Wtime() - start;
        go_on = ++windows < WINDOWS_MOST && taken < WINDOW_S;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(requests);
    free(buffer);
    return (double) windows * count * size / taken;
}

static void trip_once(char *buffer, int size)
{
    if (0 == rank) {
        MPI_Send(buffer, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static double oneway_measure(void (*once)(char *, int), int size, int count)
{
    char *buffer = buffer_new((size_t) size);
    double *trips = buffer_new((size_t) count * sizeof *trips), result;

    for (int i = 0; i < 1 + count / 10; i++)
        once(buffer, size);
    for (int i = 0; i < count; i++) {
        double start = MPI_Wtime();

        once(buffer, size);
        trips[i] = (MPI_Wtime() - start) / 2;
    }
    result = median(trips, count);
    free(trips);
    free(buffer);
    return result;
}

static void bcast(void *from, void *to, int size)
{
    (void) to;
    MPI_Bcast(from, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allreduce(void *from, void *to, int size)
{
    MPI_Allreduce(from, to, size / (int) sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(void *from, void *to, int size)
{
    MPI_Allgather(from, size, MPI_BYTE, to, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(void *from, void *to, int size)
{
    MPI_Alltoall(from, size, MPI_BYTE, to, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void barrier(void *from, void *to, int size)
{
    (void) from, (void) to, (void) size;
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(void *from, void *to, int size);
} collectives[] = {{"bcast", bcast},
                   {"allreduce", allreduce},
                   {"allgather", allgather},
                   {"alltoall", alltoall},
                   {"barrier", barrier}};
#define COLLECTIVES (sizeof(collectives) / sizeof(collectives[0]))

static double collective_measure(size_t which, int size, int count)
{
    char *from = buffer_new((size_t) size * (size_t) ranks);
    char *to = buffer_new((size_t) size * (size_t) ranks);
    double taken = 0, slowest;

    for (int i = -UNTIMED; i < count; i++) {
        if (0 == i) {
            MPI_Barrier(MPI_COMM_WORLD);
            taken = MPI_Wtime();
        }
        collectives[which].run(from, to, size);
    }
    taken = (MPI_Wtime() - taken) / count;
    MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(to);
    free(from);
    return slowest;
}

static int measure(const char *argument)
{
    char figure[16];
    int size, count;
    size_t which = 0;
    double value;

    if (3 != sscanf(argument, "%15[a-z]:%d:%d", figure, &size, &count) || size < 0 || count < 1)
        return 0;
    while (which < COLLECTIVES && strcmp(figure, collectives[which].name))
        which++;
    if (which < COLLECTIVES)
        value = collective_measure(which, size, count);
    else if (2 != ranks)
        return 0;
    else if (0 == strcmp(figure, "window"))
        value = window_measure(window_once, size, count);
    else if (0 == strcmp(figure, "oneway"))
        value = oneway_measure(trip_once, size, count);
    else if (0 == strcmp(figure, "stream"))
        value = window_measure(stream_once, size, count);
    else if (0 == strcmp(figure, "trip"))
        value = oneway_measure(bare_trip_once, size, count);
    else
        return 0;
    if (0 == rank) {
        printf("%s %d %.9g\n", figure, size, value);
        fflush(stdout);
    }
    return 1;
}

int main(int argc, char **argv)
{
    int bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc && !bad; i++)
        if (!measure(argv[i])) {
            fprintf(stderr,
                    "rails_measure: \"%s\" is not FIGURE:SIZE:COUNT, or not one of %d ranks\n",
                    argv[i], ranks);
            bad = 1;
        }
    MPI_Finalize();
    return bad;
}
