/* SPDX-License-Identifier: BSD-3-Clause */
/* What peers cost over btl/verbs: one that is silent nothing, one that talks a queue pair and no
 * room for messages of its own. Queues of soft RoCE are mapped into the process, registered memory
 * is counted by the kernel: both are counted there. Run with at least 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)
/* Lists of fragments grow by chunks while the first peers talk; room for messages would be four
 * megabytes a peer. */
#define PINNED_SLACK_KIB 512

static int rank, failures;
static char *buffer;

#define HOLDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #condition);         \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

struct cost {
    int queues; /* mappings of the devices' files */
    long pinned_kib;
};

static struct cost cost_now(void)
{
    struct cost cost = {0, -1};
    char line[1024];
    FILE *file = fopen("/proc/self/maps", "r");

    while (file && fgets(line, sizeof line, file))
        cost.queues += strstr(line, "/dev/infiniband/") != NULL;
    if (file)
        fclose(file);
    file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmPin:", 6) == 0)
            cost.pinned_kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return cost;
}

/* Short and long messages both ways, several at once, once rank 0 has begun. */
static void talk(int peer)
{
    static const int sizes[] = {0, 8, 900, 14000, LARGEST};
    MPI_Request requests[8];

    if (rank == 0)
        MPI_Send(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int j = 0; j < 4; j++) {
            char *out = buffer + j * LARGEST, *in = out + 4 * LARGEST;

            MPI_Irecv(in, sizes[i], MPI_BYTE, peer, j, MPI_COMM_WORLD, &requests[j]);
            MPI_Isend(out, sizes[i], MPI_BYTE, peer, j, MPI_COMM_WORLD, &requests[4 + j]);
        }
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
}

static void peers_are_counted(int ranks)
{
    struct cost before = cost_now(), one, all;
    int others = ranks - 2;

    talk(1);
    one = cost_now();
    for (int peer = 2; peer < ranks; peer++)
        talk(peer);
    all = cost_now();
    printf(
        "verbs_memory: mapped queues, pinned KiB: silent %d %ld, one talked %d %ld, all %d %ld\n",
        before.queues, before.pinned_kib, one.queues, one.pinned_kib, all.queues, all.pinned_kib);
    HOLDS(before.queues > 0 && before.pinned_kib > 0, "no device of soft RoCE is in use");
    HOLDS(one.queues > before.queues, "the first peer that talked has no queue");
    HOLDS((one.queues - before.queues) * others == all.queues - one.queues,
          "a peer's queues were there before it talked, or are given back");
    HOLDS(all.pinned_kib - one.pinned_kib < PINNED_SLACK_KIB, "%d peers more took %ld KiB more",
          others, all.pinned_kib - one.pinned_kib);
}

int main(int argc, char **argv)
{
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    buffer = calloc(8, LARGEST);
    if (ranks < 4 || !buffer) {
        fprintf(stderr, "verbs_memory: %d ranks, where it needs 4, or no memory\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0)
        peers_are_counted(ranks);
    else
        talk(0);
    free(buffer);
    MPI_Finalize();
    return failures != 0;
}
