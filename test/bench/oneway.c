/* SPDX-License-Identifier: BSD-3-Clause */
/* One-way time by size: half of a round trip between ranks 0 and 1, of bytes in a row, of a column
 * of a matrix, and of the faces of a cube. */
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

/* A cube of doubles. Face 1 is one block, face 2 has rows, face 3 single numbers. */
#define EDGE 64

static void faces_measure(const struct part *part)
{
    for (const long *face = part->sizes; *face != SIZES_END; face++) {
        int cube[3] = {EDGE, EDGE, EDGE}, slice[3] = {EDGE, EDGE, EDGE}, start[3] = {0, 0, 0};
        MPI_Datatype type;

        if (*face < 1 || *face > 3)
            bench_stop("a cube has the faces 1, 2 and 3.");
        slice[*face - 1] = 1;
        start[*face - 1] = EDGE / 2;
        MPI_Type_create_subarray(3, cube, slice, start, MPI_ORDER_C, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        trip_measure("faces_us", *face, sizeof(double) * EDGE * EDGE * EDGE, 1, type);
        MPI_Type_free(&type);
    }
}

static const long sizes_columns[] = {64, 1024, 8192, 65536, 1048576, SIZES_END};
const struct part part_oneway = {"oneway", sizes_message, oneway_measure};
const struct part part_columns = {"columns", sizes_columns, columns_measure};
static const long sizes_faces[] = {1, 2, 3, SIZES_END};
const struct part part_faces = {"faces", sizes_faces, faces_measure};
