/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of messages under way at once: rate and bandwidth from the lower to the upper half of the
 * ranks, the same in both directions, and between many pairs. */
#include "part.h"

#include <stdlib.h>

#define WINDOW 64
/* Large messages share this much memory, so that a window of 4 MiB does not need half a GiB. */
#define BUFFER_BYTES_MAX (64L << 20)

struct stream {
    char *send;
    char *recv;
    int bytes;
    int places;
    int peer;
    int upper;
    int both;
};

static char *place(char *buffer, const struct stream *stream, int i)
{
    return buffer + (size_t) (i % stream->places) * (size_t) stream->bytes;
}

static void window_exchange(const struct stream *stream, int sends, int recvs)
{
    MPI_Request requests[2 * WINDOW];
    int n = 0;

    for (int i = 0; recvs && i < WINDOW; i++)
        MPI_Irecv(place(stream->recv, stream, i), stream->bytes, MPI_BYTE, stream->peer, 1,
                  MPI_COMM_WORLD, &requests[n++]);
    for (int i = 0; sends && i < WINDOW; i++)
        MPI_Isend(place(stream->send, stream, i), stream->bytes, MPI_BYTE, stream->peer, 1,
                  MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* The last window is confirmed, so that what is timed has arrived. */
static void stream_round(long count, void *context)
{
    const struct stream *stream = context;
    char word = 0;

    for (long i = 0; i < count; i++) {
        window_exchange(stream, stream->both || !stream->upper, stream->both || stream->upper);
        if (stream->upper)
            MPI_Send(&word, 1, MPI_BYTE, stream->peer, 2, MPI_COMM_WORLD);
        else
            MPI_Recv(&word, 1, MPI_BYTE, stream->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static double window_time(long size, int both)
{
    struct stream stream = {.bytes = (int) size, .both = both};
    long room = size * WINDOW < BUFFER_BYTES_MAX ? size * WINDOW : BUFFER_BYTES_MAX;
    int half = bench_ranks() / 2;
    double took;

    if (bench_ranks() % 2 != 0)
        bench_stop("streams need an even number of ranks.");
    stream.places = size > 0 && room > size ? (int) (room / size) : 1;
    stream.send = bench_buffer((size_t) (stream.places * size));
    stream.recv = bench_buffer((size_t) (stream.places * size));
    stream.upper = bench_rank() >= half;
    stream.peer = stream.upper ? bench_rank() - half : bench_rank() + half;
    took = bench_time(stream_round, &stream);
    free(stream.send);
    free(stream.recv);
    return took;
}

static void rate_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        double took = window_time(*size, 0);

        if (0 == bench_rank())
            bench_print("rate_M_per_s", *size, WINDOW / took / 1e6);
    }
}

static void bandwidth_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        double took = window_time(*size, 0);

        if (0 == bench_rank())
            bench_print("bandwidth_GB_per_s", *size, (double) *size * WINDOW / took / 1e9);
    }
}

static void twoway_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        double took = window_time(*size, 1);

        if (0 == bench_rank())
            bench_print("twoway_GB_per_s", *size, 2.0 * (double) *size * WINDOW / took / 1e9);
    }
}

/* Messages a second of all pairs together, by the slowest pair. */
static void pairs_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        double took = window_time(*size, 0), slowest;

        MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (0 == bench_rank())
            bench_print("pairs_M_per_s", *size, WINDOW * (bench_ranks() / 2) / slowest / 1e6);
    }
}

const struct part part_rate = {"rate", sizes_small, rate_measure};
const struct part part_bandwidth = {"bandwidth", sizes_large, bandwidth_measure};
const struct part part_twoway = {"twoway", sizes_large, twoway_measure};
static const long sizes_pairs[] = {8, 1024, 65536, SIZES_END};
const struct part part_pairs = {"pairs", sizes_pairs, pairs_measure};
