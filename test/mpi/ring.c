/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain MPI program: a token of growing size goes round all ranks, and every byte is checked.
 * Arguments are the number of sizes it goes round with, and how often it does so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {0, 1, 8, 100, 4096, 65536, 1048576, 5000001};

enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 5000001 };

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = (unsigned char) (i * 31 + seed);
    }
}

int main(int argc, char **argv)
{
    int rank, count, errors = 0, rounds = SIZE_COUNT, turns = 1;
    unsigned char *token = malloc(LARGEST), *wanted = malloc(LARGEST);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (argc > 1 && atoi(argv[1]) < rounds) {
        rounds = atoi(argv[1]);
    }
    if (argc > 2) {
        turns = atoi(argv[2]);
    }
    for (int turn = 0; turn < rounds * turns; ++turn) {
        int i = turn % rounds;
        int size = (int) sizes[i], got = -1;
        MPI_Status status;

        fill(wanted, sizes[i], (unsigned) i);
        memset(token, 0, sizes[i]);
        if (0 == rank) {
            fill(token, sizes[i], (unsigned) i);
            MPI_Send(token, size, MPI_BYTE, (rank + 1) % count, i, MPI_COMM_WORLD);
            memset(token, 0, sizes[i]);
        }
        MPI_Recv(token, size, MPI_BYTE, (rank + count - 1) % count, i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got != size || 0 != memcmp(token, wanted, sizes[i])) {
            fprintf(stderr, "ring: rank %d: %d bytes: %d came, or with other contents\n", rank,
                    size, got);
            ++errors;
        }
        if (0 != rank) {
            MPI_Send(token, size, MPI_BYTE, (rank + 1) % count, i, MPI_COMM_WORLD);
        }
    }
    free(token);
    free(wanted);
    MPI_Finalize();
    return errors > 0;
}
