/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of collective operations by bytes a rank, the slowest rank's mean. */
#include "part.h"

#include <stdlib.h>

struct collective {
    char *send;
    char *recv;
    int bytes;
};

static void alltoall_round(long count, void *context)
{
    const struct collective *c = context;

    for (long i = 0; i < count; i++)
        MPI_Alltoall(c->send, c->bytes, MPI_BYTE, c->recv, c->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allreduce_round(long count, void *context)
{
    const struct collective *c = context;

    for (long i = 0; i < count; i++)
        MPI_Allreduce(c->send, c->recv, c->bytes / (int) sizeof(double), MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
}

static void bcast_round(long count, void *context)
{
    const struct collective *c = context;

    for (long i = 0; i < count; i++)
        MPI_Bcast(c->send, c->bytes, MPI_BYTE, (int) (i % bench_ranks()), MPI_COMM_WORLD);
}

static void barrier_round(long count, void *context)
{
    (void) context;
    for (long i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void collective_measure(const struct part *part, const char *figure, int blocks,
                               void (*round)(long count, void *context))
{
    for (const long *size = part->sizes; *size != SIZES_END; size++) {
        size_t room = (size_t) *size * (size_t) blocks;
        struct collective c = {bench_buffer(room), bench_buffer(room), (int) *size};
        double took = bench_time(round, &c), slowest;

        MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (0 == bench_rank())
            bench_print(figure, *size, slowest * 1e6);
        free(c.send);
        free(c.recv);
    }
}

static void alltoall_measure(const struct part *part)
{
    collective_measure(part, "alltoall_us", bench_ranks(), alltoall_round);
}

static void allreduce_measure(const struct part *part)
{
    collective_measure(part, "allreduce_us", 1, allreduce_round);
}

static void bcast_measure(const struct part *part)
{
    collective_measure(part, "bcast_us", 1, bcast_round);
}

static void barrier_measure(const struct part *part)
{
    collective_measure(part, "barrier_us", 1, barrier_round);
}

const struct part part_alltoall = {"alltoall", sizes_collective, alltoall_measure};
const struct part part_allreduce = {"allreduce", sizes_collective, allreduce_measure};
const struct part part_bcast = {"bcast", sizes_collective, bcast_measure};
const struct part part_barrier = {"barrier", sizes_none, barrier_measure};
