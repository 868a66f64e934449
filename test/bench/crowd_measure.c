/* SPDX-License-Identifier: BSD-3-Clause */
/* What the first messages between all processes of a full node take, for test/bench/crowd: rank 0
 * prints the milliseconds of the first two rounds of SIZE bytes, the machine's shared memory after
 * them, the mean of the processes' own shares of all memory, both in KiB, and how many mappings of
 * the shm lane it has. With COUNT and SECONDS as many rounds follow, then silence, and two more
 * rounds. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind `field` in a file of such lines; -1: it is not there. */
static double kib_of(const char *path, const char *field)
{
    FILE *file = fopen(path, "r");
    size_t length = strlen(field);
    char line[256];
    double kib = -1;

    while (NULL != file && NULL != fgets(line, sizeof(line), file))
        if (0 == strncmp(line, field, length) && ':' == line[length])
            kib = strtod(line + length + 1, NULL);
    if (NULL != file)
        fclose(file);
    return kib;
}

/* Mappings of shared memory that the shm lane made. */
static int mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    while (NULL != file && NULL != fgets(line, sizeof(line), file))
        count += NULL != strstr(line, "/memfd:multilane ");
    if (NULL != file)
        fclose(file);
    return count;
}

static void round_of_all(char *out, char *in, int size)
{
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 1; step < ranks; step++)
        MPI_Sendrecv(out, size, MPI_BYTE, (rank + step) % ranks, 1, in, size, MPI_BYTE,
                     (rank - step + ranks) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Nothing is sent, but MPI is called. */
static void stay_silent(double seconds)
{
    double end = MPI_Wtime() + seconds;
    int came;

    while (MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &came, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, ranks, size = argc > 1 ? atoi(argv[1]) : 8;
    double own, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc(1, (size_t) size + 1), *in = calloc(1, (size_t) size + 1);
    if (NULL == out || NULL == in)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    round_of_all(out, in, size);
    round_of_all(out, in, size);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;
    own = kib_of("/proc/self/smaps_rollup", "Pss");
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank)
        printf("crowd %d ranks %.1f ms %.0f shared %.0f own %d mapped\n", ranks, took * 1e3,
               kib_of("/proc/meminfo", "Shmem"), sum / ranks, mappings());
    for (int i = 0; argc > 3 && i < atoi(argv[2]); i++)
        round_of_all(out, in, size);
    if (argc > 3) {
        stay_silent(atof(argv[3]));
        round_of_all(out, in, size);
        round_of_all(out, in, size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
