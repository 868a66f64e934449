/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of a put, a get and a fetch-and-op by size, each flushed, from rank 0 to the memory of rank
 * 1 that the program allocated itself: only a lane can reach it. */
#include "part.h"

#include <stdint.h>
#include <stdlib.h>

struct access {
    MPI_Win win;
    char *data;
    int bytes;
};

static void put_round(long count, void *context)
{
    const struct access *access = context;

    for (long i = 0; 0 == bench_rank() && i < count; i++) {
        MPI_Put(access->data, access->bytes, MPI_BYTE, 1, 0, access->bytes, MPI_BYTE, access->win);
        MPI_Win_flush(1, access->win);
    }
}

static void get_round(long count, void *context)
{
    const struct access *access = context;

    for (long i = 0; 0 == bench_rank() && i < count; i++) {
        MPI_Get(access->data, access->bytes, MPI_BYTE, 1, 0, access->bytes, MPI_BYTE, access->win);
        MPI_Win_flush(1, access->win);
    }
}

static void fetch_round(long count, void *context)
{
    const struct access *access = context;
    const int64_t one = 1;
    int64_t before;

    for (long i = 0; 0 == bench_rank() && i < count; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 1, 0, MPI_SUM, access->win);
        MPI_Win_flush(1, access->win);
    }
}

static void access_measure(const char *figure, long size, struct access *access,
                           void (*round)(long count, void *context))
{
    double took_s;

    MPI_Win_lock_all(0, access->win);
    took_s = bench_time(round, access);
    MPI_Win_unlock_all(access->win);
    if (0 == bench_rank())
        bench_print(figure, size, took_s * 1e6);
}

static void onesided_measure(const struct part *part)
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        size_t room = *size < 8 ? 8 : (size_t) *size;
        struct access access = {.data = bench_buffer(room), .bytes = (int) *size};
        char *memory = bench_buffer(room);

        MPI_Win_create(memory, (MPI_Aint) room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &access.win);
        access_measure("put_us", *size, &access, put_round);
        access_measure("get_us", *size, &access, get_round);
        if (8 == *size)
            access_measure("fetch_us", *size, &access, fetch_round);
        MPI_Win_free(&access.win);
        free(memory);
        free(access.data);
    }
}

static const long sizes_onesided[] = {8, 64, 512, 4096, 65536, 1048576, SIZES_END};
const struct part part_onesided = {"onesided", sizes_onesided, onesided_measure};
