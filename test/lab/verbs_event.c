/* SPDX-License-Identifier: BSD-3-Clause */
/* A device's event while the process computes, over test/fake/verbs: "verbs_event seen" expects
 * that it is looked at meanwhile (a progress thread that has work does so), "verbs_event unseen"
 * that the next MPI calls look. What is looked at says so with btl_base_verbose 10. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAID "its port is down"

static int said; /* standard error, for a while */

static bool is_said(void)
{
    static char text[1 << 16];
    ssize_t length = pread(said, text, sizeof(text) - 1, 0);

    text[length < 0 ? 0 : length] = '\0';
    return strstr(text, SAID) != NULL;
}

/* Without MPI, until it is said or the time is over. */
static void compute(double seconds)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!is_said() &&
             (double) (now.tv_sec - begin.tv_sec) + (double) (now.tv_nsec - begin.tv_nsec) * 1e-9 <
                 seconds);
}

/* With a receive open, which a progress thread has to wait for. */
static bool event_is_seen(bool wanted)
{
    bool (*event)(const char *, uint32_t, uint32_t);
    MPI_Request request;
    int flag, stderr_before = dup(2);
    char byte;

    *(void **) &event = dlsym(RTLD_DEFAULT, "strict_verbs_event");
    if (!event || said < 0)
        return false;
    dup2(said, 2);
    MPI_Irecv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    event("port_down", 0, 1);
    compute(wanted ? 20 : 0.5);
    bool seen = is_said();
    for (int i = 0; i < 100000 && !is_said(); i++)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    bool later = is_said();
    event("port_up", 0, 1);
    MPI_Send(&byte, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    dup2(stderr_before, 2);
    return seen == wanted && later;
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/verbs_event-XXXXXX", byte = 0;
    bool good = true;
    int rank, level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        said = mkstemp(name);
        unlink(name);
        good = event_is_seen(argc > 1 && strcmp(argv[1], "seen") == 0);
        printf("verbs_event: %s\n", good ? "all holds" : "does not hold");
    } else {
        MPI_Recv(&byte, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return !good;
}
