/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way time of an 8-byte message while many receives are posted that do not match it, and while
 * many messages wait that have no receive yet. The sizes are the depths. */
#include "part.h"

#include <stdlib.h>

#define BYTES     8
#define TAG_TRIP  1
#define TAG_OTHER 100

static void depth_round(long count, void *context)
{
    char *word = context;
    int peer = 1 - bench_rank();

    if (bench_rank() > 1)
        return;
    for (long i = 0; i < count; i++) {
        if (0 == bench_rank())
            MPI_Send(word, BYTES, MPI_BYTE, peer, TAG_TRIP, MPI_COMM_WORLD);
        MPI_Recv(word, BYTES, MPI_BYTE, peer, TAG_TRIP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (1 == bench_rank())
            MPI_Send(word, BYTES, MPI_BYTE, peer, TAG_TRIP, MPI_COMM_WORLD);
    }
}

static void others_receive(long depth, char *room, MPI_Request *requests)
{
    for (long i = 0; i < depth; i++)
        MPI_Irecv(room + i * BYTES, BYTES, MPI_BYTE, 1 - bench_rank(), TAG_OTHER + (int) i,
                  MPI_COMM_WORLD, &requests[i]);
}

static void others_send(long depth)
{
    char word[BYTES] = {0};

    for (long i = 0; i < depth; i++)
        MPI_Send(word, BYTES, MPI_BYTE, 1 - bench_rank(), TAG_OTHER + (int) i, MPI_COMM_WORLD);
}

static void depth_measure(long depth, int posted)
{
    char *room = bench_buffer((size_t) (depth + 1) * BYTES);
    MPI_Request *requests = malloc((size_t) depth * sizeof(*requests) + 1);
    char word[BYTES] = {0};
    double trip_s;

    if (NULL == requests)
        bench_stop("no memory for the requests; choose smaller depths.");
    if (posted)
        others_receive(depth, room, requests);
    else
        others_send(depth);
    MPI_Barrier(MPI_COMM_WORLD);
    trip_s = bench_time(depth_round, word);
    if (posted)
        others_send(depth);
    else
        others_receive(depth, room, requests);
    MPI_Waitall((int) depth, requests, MPI_STATUSES_IGNORE);
    if (0 == bench_rank())
        bench_print(posted ? "posted_us" : "unexpected_us", depth, trip_s / 2 * 1e6);
    free(requests);
    free(room);
}

static void posted_measure(const struct part *part)
{
    if (bench_ranks() != 2)
        bench_stop("matching depth is measured between 2 ranks.");
    for (const long *depth = part->sizes; *depth != SIZES_END; depth++)
        depth_measure(*depth, 1);
}

static void unexpected_measure(const struct part *part)
{
    if (bench_ranks() != 2)
        bench_stop("matching depth is measured between 2 ranks.");
    for (const long *depth = part->sizes; *depth != SIZES_END; depth++)
        depth_measure(*depth, 0);
}

const struct part part_posted = {"posted", sizes_depth, posted_measure};
const struct part part_unexpected = {"unexpected", sizes_depth, unexpected_measure};
