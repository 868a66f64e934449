/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way time by size: half of a round trip between ranks 0 and 1, of bytes in a row and of a
 * column of a matrix. */
#include "part.h"

#include <stdlib.h>

/* Every row of the matrix gives one block. */
#define BLOCK_BYTES 16
#define ROW_BYTES   64

struct trip {
    char *send;
    char *recv;
    int count;
    MPI_Datatype type;
};

static void trip_round(long count, void *context)
{
    const struct trip *trip = context;
    int peer = 1 - bench_rank();

    if (bench_rank() > 1)
        return;
    for (long i = 0; i < count; i++) {
        if (0 == bench_rank())
            MPI_Send(trip->send, trip->count, trip->type, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(trip->recv, trip->count, trip->type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (1 == bench_rank())
            MPI_Send(trip->send, trip->count, trip->type, peer, 1, MPI_COMM_WORLD);
    }
}

/* `room` is what `count` elements of the type lie in. */
static void trip_measure(const char *figure, long size, size_t room, int count, MPI_Datatype type)
{
    struct trip trip = {bench_buffer(room), bench_buffer(room), count, type};
    double trip_s = bench_time(trip_round, &trip);

    if (0 == bench_rank())
        bench_print(figure, size, trip_s / 2 * 1e6);
    free(trip.send);
    free(trip.recv);
}

static void oneway_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++)
        trip_measure("oneway_us", *size, (size_t) *size, (int) *size, MPI_BYTE);
}

static void columns_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        int rows = (int) (*size / BLOCK_BYTES);
        MPI_Datatype column;

        MPI_Type_vector(rows, BLOCK_BYTES, ROW_BYTES, MPI_BYTE, &column);
        MPI_Type_commit(&column);
        trip_measure("columns_us", *size, (size_t) rows * ROW_BYTES, 1, column);
        MPI_Type_free(&column);
    }
}

static const long sizes_columns[] = {64, 1024, 8192, 65536, 1048576, SIZES_END};
const struct part part_oneway = {"oneway", sizes_message, oneway_measure};
const struct part part_columns = {"columns", sizes_columns, columns_measure};
