/* SPDX-License-Identifier: BSD-3-Clause */
/* The first thread of each odd rank ends after MPI_Init, and another thread goes on: /proc then
 * calls the process a zombie, shows none of its descriptors under its own number, and the kernel
 * copies nothing from it.
 *
 *   first_thread before|after  whether the ranks exchange messages before that as well */
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 2 << 20, TAG = 1 };

static int rank, size;
static unsigned char sent[LARGEST], received[LARGEST];

static void exchange(const char *when)
{
    static const int lengths[] = {0, 8, 3000, 30000, 300000, LARGEST};
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    for (int i = 0; i < (int) (sizeof(lengths) / sizeof(*lengths)); i++) {
        memset(sent, 1 + rank + i, sizeof(sent));
        memset(received, 0, sizeof(received));
        MPI_Sendrecv(sent, lengths[i], MPI_BYTE, next, TAG, received, lengths[i], MPI_BYTE,
                     previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < lengths[i]; k++)
            if (received[k] != (unsigned char) (1 + previous + i)) {
                fprintf(
                    stderr,
                    "first_thread: rank %d, %s the end of a first thread: byte %d of %d is wrong\n",
                    rank, when, k, lengths[i]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
}

static void *go_on(void *first)
{
    char path[32];

    if (first) {
        pthread_join(*(pthread_t *) first, NULL);
        snprintf(path, sizeof(path), "/proc/%d/fd/0", (int) getpid());
        for (int tries = 0; tries < 5000 && access(path, F_OK) == 0; tries++)
            usleep(1000);
    }
    exchange("after");
    /* Longer than it takes to ask whether a silent peer lives. */
    if (rank % 2 == 0) {
        MPI_Recv(received, 1, MPI_BYTE, (rank + 1) % size, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        sleep(2);
        MPI_Send(sent, 1, MPI_BYTE, rank - 1, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    exit(0);
}

int main(int argc, char **argv)
{
    static pthread_t first;
    pthread_t second;
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size % 2 != 0) {
        fprintf(stderr, "usage: first_thread before|after, with an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (strcmp(argv[1], "before") == 0)
        exchange("before");
    if (rank % 2 == 0)
        go_on(NULL);
    first = pthread_self();
    if (pthread_create(&second, NULL, go_on, &first) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    pthread_exit(NULL);
}
