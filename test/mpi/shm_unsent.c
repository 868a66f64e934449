/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes cannot open each other's memory, for want of descriptors. Each has sent a message
 * and asks no more of it. MPI_Finalize waits for the end of the shortage and ends. */
#define _GNU_SOURCE
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Longer than Open MPI's own part of MPI_Finalize. */
static const double scarce_s = 0.7;
static double scarce_until_s = 1e9;
static unsigned refused;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* All libraries of this program call this one. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list rest;

    va_start(rest, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    if (fnmatch("/proc/[0-9]*/fd/*", path, 0) == 0 && now_s() < scarce_until_s) {
        refused++;
        errno = EMFILE;
        return -1;
    }
    return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int main(int argc, char **argv)
{
    MPI_Request request;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    scarce_until_s = now_s() + scarce_s;
    MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Finalize();
    return refused == 0; /* else nothing was short */
}
