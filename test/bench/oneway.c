/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way time by size: half of a round trip between ranks 0 and 1. */
#include "part.h"

#include <stdlib.h>

struct trip {
    char *send;
    char *recv;
    int bytes;
};

static void trip_round(long count, void *context)
{
    const struct trip *trip = context;

    for (long i = 0; i < count; i++) {
        if (0 == bench_rank()) {
            MPI_Send(trip->send, trip->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(trip->recv, trip->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (1 == bench_rank()) {
            MPI_Recv(trip->recv, trip->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(trip->send, trip->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
}

static void oneway_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        struct trip trip = {bench_buffer((size_t) *size), bench_buffer((size_t) *size),
                            (int) *size};
        double trip_s = bench_time(trip_round, &trip);

        if (0 == bench_rank())
            bench_print("oneway_us", *size, trip_s / 2 * 1e6);
        free(trip.send);
        free(trip.recv);
    }
}

const struct part part_oneway = {"oneway", sizes_message, oneway_measure};
