/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations and locks a message costs once everything is warm, counted by the library of
 * calls_preload.c, which test/bench/run preloads. The sizes are bytes. */
#define _GNU_SOURCE
#include "part.h"

#include <dlfcn.h>
#include <stdlib.h>

#define WARM  2000
#define TRIPS 10000

typedef long calls_read_fn(int what);

static void trips(char *buffer, int bytes, int count)
{
    int peer = 1 - bench_rank();

    for (int i = 0; i < count && bench_rank() < 2; i++) {
        if (0 == bench_rank())
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (1 == bench_rank())
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    }
}

static void calls_measure(const struct part *part)
{
    calls_read_fn *calls_read;

    *(void **) &calls_read = dlsym(RTLD_DEFAULT, "bench_calls_read");
    if (NULL == calls_read)
        bench_stop("calls are counted only where calls_preload.so is preloaded.");
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        char *buffer = bench_buffer((size_t) *size);
        long before[2], after[2];

        trips(buffer, (int) *size, WARM);
        for (int what = 0; what < 2; what++)
            before[what] = calls_read(what);
        trips(buffer, (int) *size, TRIPS);
        for (int what = 0; what < 2; what++)
            after[what] = calls_read(what);
        /* A round trip is two messages, of which this rank sends one and receives one. */
        if (0 == bench_rank()) {
            bench_print("allocations_per_message", *size, (double) (after[0] - before[0]) / TRIPS);
            bench_print("locks_per_message", *size, (double) (after[1] - before[1]) / TRIPS);
        }
        free(buffer);
    }
}

static const long sizes_calls[] = {0, 8, 64, 256, 1024, SIZES_END};
const struct part part_calls = {"calls", sizes_calls, calls_measure};
