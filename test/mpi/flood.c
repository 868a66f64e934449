/* SPDX-License-Identifier: BSD-3-Clause */
/* Floods: flood [--small N] [--large N] [--bytes B] [--limit BYTES] WHAT
 *   late     all ranks send to rank 0, which looks for something else for a while, and only then
 *            receives: its memory grows by the limit at most, and every message comes in order
 *   mutual   two ranks send to each other before either receives
 *   reverse  a rank receives last what was sent first, and before that probes for the last
 *   between  some messages stay where they are while others, whose receives are always posted
 *            first, come and go: 1 message, then 2, up to all
 * Every message is checked. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 8, TAG = 7, OTHER_TAG = 8, LARGE_MOST = 1 << 20 };
static const double look_s = 1.0;

static long small = 20000, large = 200, limit = 256l << 20;
static int large_bytes = 60000, rank, ranks, failures;
static const char *what = "late";

static void expect(int holds, const char *why, long value)
{
    if (holds)
        return;
    if (failures++ < 10)
        fprintf(stderr, "flood %s: rank %d: %s (%ld)\n", what, rank, why, value);
}

/* ---- messages ---- */

static int size_of(long number)
{
    /* Small and large ones mixed evenly. */
    long all = small + large;
    return number * large / all != (number + 1) * large / all ? large_bytes : SMALL_BYTES;
}

static void fill(unsigned char *bytes, int from, long number)
{
    uint64_t key[2] = {(uint64_t) from << 32, (uint64_t) number};
    int size = size_of(number);

    memset(bytes, (int) (number & 255), (size_t) size);
    memcpy(bytes, &key[1], SMALL_BYTES);
    if (size > SMALL_BYTES)
        memcpy(bytes + size - SMALL_BYTES, &key[0], SMALL_BYTES);
}

static void receive(int from, int tag, long number)
{
    static unsigned char wanted[LARGE_MOST], came[LARGE_MOST];
    MPI_Status status;
    int count;

    MPI_Recv(came, LARGE_MOST, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    fill(wanted, from, number);
    expect(count == size_of(number), "another length, so another message", number);
    expect(memcmp(wanted, came, (size_t) size_of(number)) == 0, "other contents", number);
}

/* ---- late ---- */

/* Bytes that this process has in memory. */
static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * 4096;
}

static void look_elsewhere(void)
{
    double end = MPI_Wtime() + look_s;
    int found;

    while (MPI_Wtime() < end)
        MPI_Iprobe(0, OTHER_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void late_receive(void)
{
    long before = resident(), most = 0;

    look_elsewhere();
    for (long number = 0; number < small + large; number++) {
        if (number % 1000 == 0) {
            long grown = resident() - before;
            most = grown > most ? grown : most;
        }
        for (int from = 1; from < ranks; from++)
            receive(from, TAG, number);
    }
    printf("memory grew by %ld of %ld bytes\n", most, limit);
    expect(most <= limit + limit / 10, "memory grew by more than the limit and a tenth", most);
}

static void late_send(void)
{
    static unsigned char bytes[LARGE_MOST];

    for (long number = 0; number < small + large; number++) {
        fill(bytes, rank, number);
        MPI_Send(bytes, size_of(number), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
}

static void warm_up(void)
{
    static unsigned char mine[LARGE_MOST], theirs[LARGE_MOST];

    for (int round = 0; round < 20; round++)
        for (int partner = 1; partner < ranks; partner++)
            if (rank == 0)
                MPI_Recv(theirs, large_bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            else if (rank == partner)
                MPI_Send(mine, large_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void late(void)
{
    static unsigned char touched[2 * LARGE_MOST];

    memset(touched, 1, sizeof touched);
    warm_up();
    if (rank == 0)
        late_receive();
    else
        late_send();
}

/* ---- mutual, reverse ---- */

static unsigned char **outgoing(MPI_Request *requests, int to, int tag_step)
{
    unsigned char **messages = malloc((size_t) (small + large) * sizeof *messages);

    for (long number = 0; number < small + large; number++) {
        messages[number] = malloc((size_t) size_of(number));
        fill(messages[number], rank, number);
        MPI_Isend(messages[number], size_of(number), MPI_BYTE, to, TAG + tag_step * (int) number,
                  MPI_COMM_WORLD, &requests[number]);
    }
    return messages;
}

static void outgoing_end(unsigned char **messages, MPI_Request *requests)
{
    MPI_Waitall((int) (small + large), requests, MPI_STATUSES_IGNORE);
    for (long number = 0; number < small + large; number++)
        free(messages[number]);
    free(messages);
    free(requests);
}

static void mutual(void)
{
    int partner = rank ^ 1;
    MPI_Request *requests = malloc((size_t) (small + large) * sizeof(MPI_Request));

    if (partner >= ranks)
        return;
    unsigned char **messages = outgoing(requests, partner, 0);
    for (long number = 0; number < small + large; number++)
        receive(partner, TAG, number);
    outgoing_end(messages, requests);
}

static void reverse(void)
{
    MPI_Status status;

    if (rank == 1) {
        MPI_Request *requests = malloc((size_t) (small + large) * sizeof(MPI_Request));
        unsigned char **messages = outgoing(requests, 0, 1);
        outgoing_end(messages, requests);
    } else if (rank == 0) {
        MPI_Probe(1, TAG + (int) (small + large) - 1, MPI_COMM_WORLD, &status);
        for (long number = small + large - 1; number >= 0; number--)
            receive(1, TAG + (int) number, number);
    }
}

/* ---- between ---- */

enum { TURNS = 12 };

static void turn(int partner)
{
    int go = 0, came = -1;
    MPI_Request request;

    if (rank == 0) {
        MPI_Irecv(&came, 1, MPI_INT, partner, OTHER_TAG, MPI_COMM_WORLD, &request);
        MPI_Send(&go, 1, MPI_INT, partner, OTHER_TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&came, 1, MPI_INT, partner, OTHER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&go, 1, MPI_INT, partner, OTHER_TAG, MPI_COMM_WORLD);
    }
    expect(came == 0, "another message came between", came);
}

static void between(void)
{
    static unsigned char bytes[LARGE_MOST];

    if (rank > 1)
        return;
    for (long kept = 1; kept <= small + large; kept++) {
        for (long number = 0; rank == 1 && number < kept; number++) {
            fill(bytes, rank, number);
            MPI_Send(bytes, size_of(number), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        for (int i = 0; i < TURNS; i++)
            turn(rank ^ 1);
        for (long number = 0; rank == 0 && number < kept; number++)
            receive(1, TAG, number);
    }
}

/* ---- the job ---- */

static int options_read(int argc, char **argv)
{
    int at = 1;

    for (; at + 1 < argc; at += 2) {
        long value = atol(argv[at + 1]);

        if (0 == strcmp(argv[at], "--small"))
            small = value;
        else if (0 == strcmp(argv[at], "--large"))
            large = value;
        else if (0 == strcmp(argv[at], "--bytes"))
            large_bytes = (int) value;
        else if (0 == strcmp(argv[at], "--limit"))
            limit = value;
        else
            return 0;
    }
    if (at < argc)
        what = argv[at];
    return small + large > 0 && large_bytes >= 2 * SMALL_BYTES && large_bytes <= LARGE_MOST;
}

int main(int argc, char **argv)
{
    int all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!options_read(argc, argv) || ranks < 2) {
        fprintf(stderr, "flood: it needs 2 ranks, and the arguments at its top\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == strcmp(what, "late"))
        late();
    else if (0 == strcmp(what, "mutual"))
        mutual();
    else if (0 == strcmp(what, "reverse"))
        reverse();
    else if (0 == strcmp(what, "between"))
        between();
    else
        expect(0, "there is no such flood", 0);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("flood %s: %ld messages, %d wrong\n", what, small + large, all);
    MPI_Finalize();
    return all != 0;
}
