/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that has opened all the descriptors that it may have: descriptors [SPARED [SECONDS]].
 * Rank 1 takes all but SPARED (0) before its first message, and gives them back SECONDS (1) later.
 * A message to it, and two from it, which need connections, come in the end and are right; with
 * SPARED they come before. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES_MOST = 512, BYTES = 3000, RANKS_MOST = 8 };

static int rank, ranks, failures, files[FILES_MOST], file_count;

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    failures++;
    fprintf(stderr, "descriptors: rank %d: %s\n", rank, what);
}

static void files_take(int spared)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = FILES_MOST;
    setrlimit(RLIMIT_NOFILE, &limit);
    /* Until the runtime's threads have closed what they needed for the start. */
    for (int look = 0; look < 10; look++, usleep(50000))
        while (file_count < FILES_MOST && (files[file_count] = open("/dev/null", O_RDONLY)) >= 0)
            file_count++;
    expect(file_count > spared, "the descriptors were not taken");
    while (spared-- > 0)
        close(files[--file_count]);
}

int main(int argc, char **argv)
{
    static unsigned char in[BYTES], out[BYTES];
    int spared = argc > 1 ? atoi(argv[1]) : 0, has_come = 0;
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    MPI_Request requests[RANKS_MOST];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2 || ranks > RANKS_MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(out, rank + 1, sizeof(out));
    if (rank == 1) {
        files_take(spared);
        MPI_Irecv(in, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[0]);
        for (int to = 2; to < ranks; to++)
            MPI_Isend(out, BYTES, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[to - 1]);
        for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
            MPI_Test(&requests[0], &has_come, MPI_STATUS_IGNORE);
        expect(!!has_come == (spared > 0),
               has_come ? "it came without a descriptor" : "it is late");
        while (file_count > 0)
            close(files[--file_count]);
        double begin = MPI_Wtime();
        MPI_Waitall(ranks - 1, requests, MPI_STATUSES_IGNORE);
        printf("descriptors: all has come %.0f ms after they were given back\n",
               (MPI_Wtime() - begin) * 1e3);
    } else if (rank == 0) {
        MPI_Send(out, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank >= 2) {
        MPI_Recv(in, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    expect(rank == 0 || (in[0] == (rank > 1 ? 2 : 1) && in[BYTES - 1] == in[0]),
           "other bytes have come");
    MPI_Finalize();
    return failures != 0;
}
