// SPDX-License-Identifier: BSD-3-Clause
// An allocation fails in rank 1 of three that exchange through the memory of their node.
//
//   no_memory image ELEMENTS    that of an operation: none may bring what is not its own
//   afterwards,
//                               or wait for ever; those that go by messages go on
//   no_memory module            that of what a new communicator has of coll/node
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/node/node.h"

#define BY_MESSAGES 2000000 // elements: more bytes than coll_node_bytes_max

static _Atomic size_t failing; // bytes of the next allocation that fails; 0: none
static int rank, errors;

// Open MPI and its components find this one before the C library's.
void *__libc_malloc(size_t bytes);
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    size_t fails = bytes;
    return bytes > 0 && atomic_compare_exchange_strong(&failing, &fails, 0) ? NULL
                                                                            : __libc_malloc(bytes);
}

static void fail_once(size_t bytes)
{
    if (rank == 1)
        atomic_store(&failing, bytes);
}

static void wrong(const char *what, int round)
{
    fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// What an operation returned: it may be an error, but not that a process has failed.
static bool succeeded(int code, int round)
{
    int class = MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_class(code, &class);
#ifdef MPIX_ERR_PROC_FAILED
    if (class == MPIX_ERR_PROC_FAILED)
        wrong("says that a process has failed", round);
#endif
    errors++;
    return false;
}

// Elements lie two apart, so that each process packs them in memory of its own.
static bool bcast(int elements, int root, int round)
{
    MPI_Datatype apart;
    size_t count = 2 * (size_t) elements;
    uint32_t *buffer = calloc(count, sizeof(*buffer));
    MPI_Type_vector(elements, 1, 2, MPI_UINT32_T, &apart);
    MPI_Type_commit(&apart);
    for (size_t i = 0; rank == root && i < count; i += 2)
        buffer[i] = (uint32_t) round;
    bool good = succeeded(MPI_Bcast(buffer, 1, apart, root, MPI_COMM_WORLD), round);
    for (size_t i = 0; good && i < count; i += 2)
        if (buffer[i] != (uint32_t) round)
            wrong("MPI_Bcast brings what was not given", round);
    MPI_Type_free(&apart);
    free(buffer);
    return good;
}

static void allreduce(int round)
{
    int from = round, sum = 0;
    if (succeeded(MPI_Allreduce(&from, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), round) &&
        sum != 3 * round)
        wrong("MPI_Allreduce adds up what was not given", round);
}

static void after_an_operation_without_memory(int elements)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fail_once((size_t) elements * sizeof(uint32_t));
    if (bcast(elements, 0, 1) && rank == 1)
        wrong("MPI_Bcast does without memory", 1);
    for (int round = 2; round < 20; round++) {
        if (round % 4 == 0)
            allreduce(round);
        else if (round % 4 == 1 && succeeded(MPI_Barrier(MPI_COMM_WORLD), round))
            wrong("leaves a barrier that rank 1 cannot have come to", round);
        else
            bcast(round % 2 ? elements : 1, round % 3, round);
        if (!bcast(BY_MESSAGES, 0, round))
            wrong("MPI_Bcast by messages does not go on", round);
    }
    if (errors < 4)
        wrong("was not told by an error", errors);
}

static void a_module_without_memory(void)
{
    MPI_Comm comm;
    fail_once(sizeof(node_module_t));
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 20; i++) {
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (sum != 3)
            wrong("MPI_Allreduce is wrong", i);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2 && strcmp(argv[1], "image") == 0)
        after_an_operation_without_memory(atoi(argv[2]));
    else
        a_module_without_memory();
    if (atomic_load(&failing))
        wrong("no allocation failed", 0);
    MPI_Finalize();
    return 0;
}
