/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device that is not CUDA's, which the processor cannot touch: each call that is given
 * some ends with MPI_ERR_BUFFER, and messages of host memory go on.
 *
 * other_device LIBRARY: a stand-in of test/fake/other_device.c. Two processes. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 20000 };

static int rank, failures;

static void refused(int error, const char *call)
{
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    if (class == MPI_ERR_BUFFER)
        return;
    fprintf(stderr, "other_device: rank %d: %s: class %d\n", rank, call, class);
    failures++;
}

/* There and back, from memory that malloc maps and from the heap. */
static void host_messages(void)
{
    for (int count = 1; count <= NUMBERS; count *= 20) {
        int *numbers = malloc((size_t) count * sizeof(int));
        for (int i = 0; i < count; i++)
            numbers[i] = rank + i;
        MPI_Sendrecv_replace(numbers, count, MPI_INT, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++)
            failures += numbers[i] != 1 - rank + i;
        free(numbers);
    }
}

static void *memory_of(const char *library, size_t bytes)
{
    void *(*memory_new)(size_t) = NULL;
    void *handle = dlopen(library, RTLD_NOW);
    void *symbol = handle ? dlsym(handle, "fake_device_memory") : NULL;
    memcpy(&memory_new, &symbol, sizeof(symbol));
    void *memory = symbol ? memory_new(bytes) : NULL;
    if (!memory) {
        fprintf(stderr, "other_device: no memory by %s\n", library);
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    int *there = memory_of(argc > 1 ? argv[1] : "", NUMBERS * sizeof(int));
    int *here = calloc(NUMBERS, sizeof(int)), at = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int count = 1; count <= NUMBERS; count *= 20) {
        MPI_Request request;
        host_messages();
        refused(MPI_Send(there, count, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD), "MPI_Send");
        refused(MPI_Ssend(there, count, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD), "MPI_Ssend");
        MPI_Isend(here, count, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, &request);
        refused(MPI_Recv(there, count, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                "MPI_Recv");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        refused(MPI_Allreduce(there, here, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                "MPI_Allreduce");
    }
    if (MPI_Pack(there, 1, MPI_INT, here, 100, &at, MPI_COMM_WORLD) == MPI_SUCCESS)
        failures++;
    host_messages();
    MPI_Finalize();
    free(here);
    if (failures)
        fprintf(stderr, "other_device: rank %d: %d failures\n", rank, failures);
    return failures != 0;
}
