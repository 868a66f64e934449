/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of a message's time is hidden behind computing: the receive, or the send, is started,
 * the program computes for as long as the message takes alone, and then waits. */
#include "part.h"

#include <stdlib.h>

struct overlap {
    char *buffer;
    int bytes;
    double compute_s;
    /* which rank computes while the message is under way */
    int busy;
};

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    volatile double sum = 0;

    while (MPI_Wtime() < end)
        for (int i = 0; i < 50; i++)
            sum = sum + i;
}

static void overlap_round(long count, void *context)
{
    const struct overlap *overlap = context;
    char word = 0;

    for (long i = 0; i < count; i++) {
        MPI_Request request;

        if (bench_rank() > 1)
            continue;
        /* Both start together; the confirmation belongs to the time. */
        if (0 == bench_rank()) {
            MPI_Recv(&word, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(overlap->buffer, overlap->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        } else {
            MPI_Irecv(overlap->buffer, overlap->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
            MPI_Send(&word, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
        if (overlap->busy == bench_rank())
            compute(overlap->compute_s);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (1 == bench_rank())
            MPI_Send(&word, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(&word, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* 100: the message cost nothing beside the computing; 0: both times added up. */
static double hidden_percent(struct overlap overlap, double alone_s, int busy)
{
    double both_s, hidden;

    overlap.compute_s = alone_s;
    overlap.busy = busy;
    both_s = bench_time(overlap_round, &overlap);
    hidden = (alone_s + overlap.compute_s - both_s) / alone_s * 100;
    return hidden < 0 ? 0 : hidden;
}

static void overlap_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        struct overlap overlap = {bench_buffer((size_t) *size), (int) *size, 0, -1};
        double alone_s = bench_time(overlap_round, &overlap), sender, receiver;

        MPI_Bcast(&alone_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        sender = hidden_percent(overlap, alone_s, 0);
        receiver = hidden_percent(overlap, alone_s, 1);
        if (0 == bench_rank()) {
            bench_print("overlap_sender_percent", *size, sender);
            bench_print("overlap_receiver_percent", *size, receiver);
        }
        free(overlap.buffer);
    }
}

static const long sizes_overlap[] = {1024, 65536, 1048576, 4194304, SIZES_END};
const struct part part_overlap = {"overlap", sizes_overlap, overlap_measure};
