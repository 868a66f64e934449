/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that wait for another one, which is late.
 *
 *   asleep cpu          they sleep: waiting takes less than a quarter of a processor
 *   asleep test         MPI_Test and MPI_Iprobe never do
 *   asleep flood        one that slept finds all that came, in order
 *   asleep stop         one that is stopped and goes on is waited for, and finds what came
 *   asleep kill MS      the last one is killed after so long, while the others sleep
 *   asleep threads      a message that one thread takes in wakes the thread that waits for it */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 1, FLOOD = 3000, FLOOD_TURNS = 3, TESTS = 500, TURNS = 30, LATE_MS = 400 };

static int rank, ranks;

static void wrong(const char *what)
{
    fprintf(stderr, "asleep: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void late(long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Of this process, in seconds. */
static double processor_time(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/* A sleep is a context switch that one asks for. */
static long switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

/* --- how one waits for rank 0 ----------------------------------------------------------------- */

static void by_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tell_all(void)
{
    for (int other = 1; other < ranks; other++)
        MPI_Send(&rank, 1, MPI_INT, other, TAG, MPI_COMM_WORLD);
}

static void by_receive(void)
{
    int got;

    if (rank == 0)
        tell_all();
    else
        MPI_Recv(&got, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void by_probe(void)
{
    if (rank != 0)
        MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    by_receive();
}

static void by_waits(void)
{
    MPI_Request requests[2];
    int got[2], index;

    if (rank == 0) {
        tell_all();
        tell_all();
        return;
    }
    for (int i = 0; i < 2; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void by_late_barrier(void)
{
    MPI_Request request;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void cpu(void)
{
    static void (*const ways[])(void) = {by_barrier, by_receive, by_probe, by_waits,
                                         by_late_barrier};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double before = processor_time();
        long slept = switches();
        if (rank == 0)
            late(LATE_MS);
        ways[i]();
        double took = processor_time() - before;
        printf("asleep: rank %d way %zu: %.1f ms of processor time, %ld sleeps\n", rank, i,
               took * 1e3, switches() - slept);
        /* Short naps take more of a processor that others want too: they count by their number. */
        if (took > LATE_MS * 1e-3 / 4 && switches() - slept < LATE_MS)
            wrong("it did not sleep");
    }
}

/* --- the others ------------------------------------------------------------------------------- */

static void tests(void)
{
    MPI_Request request;
    int got, done = 0;

    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % ranks, TAG, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = switches();
    for (int i = 0; i < TESTS; i++) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Iprobe((rank + 1) % ranks, TAG + 1, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    }
    if (switches() - before > TESTS / 5)
        wrong("a test sleeps");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Those who send do not wait for each other: one may be in its next turn. */
static void flood_take(void)
{
    int got, next[1024] = {0};
    MPI_Status status;

    for (int i = 0; i < FLOOD_TURNS * FLOOD * (ranks - 1); i++) {
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        if (got != next[status.MPI_SOURCE]++)
            wrong("a message is lost, or out of order");
    }
}

static void flood(void)
{
    if (rank == 0)
        flood_take();
    else
        for (int i = 0; i < FLOOD_TURNS * FLOOD; i++) {
            if (i % FLOOD == 0)
                late(50); /* the receiver sleeps by now */
            MPI_Send(&i, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Stops this process for a while: a child of it lets it go on. */
static void stop(void)
{
    pid_t me = getpid(), child = fork();

    if (child == 0) {
        kill(me, SIGSTOP);
        late(200);
        kill(me, SIGCONT);
        _exit(0);
    }
    late(20);
    waitpid(child, NULL, 0);
}

static void stops(void)
{
    static char sent[100000], got[100000];
    int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;

    for (int turn = 0; turn < ranks; turn++) {
        MPI_Request request;

        MPI_Irecv(got, sizeof(got), MPI_BYTE, before, TAG, MPI_COMM_WORLD, &request);
        if (turn == rank)
            stop();
        memset(sent, rank + turn, sizeof(sent));
        MPI_Send(sent, turn % 2 ? 8 : sizeof(sent), MPI_BYTE, after, TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (got[7] != (char) (before + turn))
            wrong("wrong bytes");
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void killed(long milliseconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        late(milliseconds);
        raise(SIGTERM);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *waiter_run(void *arrived)
{
    for (int turn = 0; turn < TURNS; turn++) {
        int got;

        MPI_Recv(&got, 1, MPI_INT, (rank + 1) % ranks, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (got != turn)
            wrong("a message is lost, or out of order");
        __atomic_store_n((int *) arrived, turn + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* One thread sleeps in a receive, the other takes in its message while it tests. */
static void threads(void)
{
    pthread_t waiter;
    MPI_Request request;
    int arrived = 0, got, done;

    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % ranks, TAG + 1, MPI_COMM_WORLD, &request);
    pthread_create(&waiter, NULL, waiter_run, &arrived);
    for (int turn = 0; turn < TURNS; turn++) {
        late(20);
        MPI_Send(&turn, 1, MPI_INT, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD);
        while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) <= turn)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    pthread_join(waiter, NULL);
    MPI_Send(&rank, 1, MPI_INT, (rank + ranks - 1) % ranks, TAG + 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int level;

    MPI_Init_thread(&argc, &argv,
                    strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(what, "cpu") == 0)
        cpu();
    else if (strcmp(what, "test") == 0)
        tests();
    else if (strcmp(what, "flood") == 0)
        flood();
    else if (strcmp(what, "stop") == 0)
        stops();
    else if (strcmp(what, "kill") == 0 && argc > 2)
        killed(atol(argv[2]));
    else if (strcmp(what, "threads") == 0)
        threads();
    else
        wrong("there is no such case");
    MPI_Finalize();
    return 0;
}
