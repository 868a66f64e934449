/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that hang, each in one known way, and programs that do not: what multilane-top --why is
 * tried on. An MPI program as any other.
 *
 *   hang KIND SEED        hangs that way; the seed chooses who. Killed by what started it.
 *   hang healthy SEED     goes on for some seconds, in ways that look like a hang for a moment
 *   hang late SEED        one rank comes 1.8 s late
 *
 * Rank 0 prints "culprit KIND RANK OTHER" first: what has to be found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/fake/btl_flaky.h"

#define LARGE (4 << 20)
#define TAG   17

static int rank, size, seed;
static int culprit, other; /* by the seed; they differ */
static char *buffer;

static void expect(const char *kind)
{
    if (rank == 0) {
        printf("culprit %s %d %d\n", kind, culprit, other);
        fflush(stdout);
    }
}

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t) seconds};
    time.tv_nsec = (long) ((seconds - (double) time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

static double now_s(void)
{
    return MPI_Wtime();
}

static void compute_s(double seconds)
{
    for (double end = now_s() + seconds; now_s() < end;)
        ;
}

static void send(int to, int tag, int bytes, MPI_Comm comm)
{
    MPI_Send(buffer, bytes, MPI_BYTE, to, tag, comm);
}

static void receive(int from, int tag, int bytes, MPI_Comm comm)
{
    MPI_Recv(buffer, bytes, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
}

/* --- hangs ------------------------------------------------------------------------------------ */

static void no_receive(void)
{
    expect("no-receive");
    if (rank == other)
        MPI_Ssend(buffer, 8, MPI_BYTE, culprit, TAG, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The culprit is the one whose receive has the wrong tag. */
static void wrong_tag(void)
{
    expect("wrong-tag");
    if (rank == other)
        send(culprit, TAG + 1, 8, MPI_COMM_WORLD);
    if (rank == culprit)
        receive(seed % 3 ? other : MPI_ANY_SOURCE, TAG, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_communicator(void)
{
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin");
    expect("wrong-communicator");
    if (rank == other)
        send(culprit, TAG, 8, twin);
    if (rank == culprit)
        receive(other, TAG, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Some ranks in a circle, all of which send first. */
static void cycle(void)
{
    int members = size < 3 ? size : 2 + seed % (size - 1), next = (rank + 1) % members;
    culprit = 0;
    other = members - 1;
    expect("cycle");
    if (rank < members) {
        send(next, TAG, LARGE, MPI_COMM_WORLD);
        receive((rank + members - 1) % members, TAG, LARGE, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void stopped(void)
{
    expect("stopped");
    if (rank == culprit)
        raise(SIGSTOP);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* It takes memory without end, some seconds later. */
static void grows(void)
{
    expect("grows");
    if (rank == culprit) {
        sleep_s(4);
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    }
    if (rank == other)
        receive(culprit, TAG, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void computes(void)
{
    expect("computes");
    if (rank == culprit)
        compute_s(1e6);
    if (seed % 2 && rank == other)
        receive(culprit, TAG, 8, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void collectives(void)
{
    int in = rank, out;
    expect("collectives");
    if (rank == culprit)
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != culprit)
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* A broadcast of so much that its root waits, with two roots, after operations that are alike. */
static void roots(void)
{
    int in = rank, out;
    expect("roots");
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(buffer, LARGE, MPI_BYTE, rank == culprit ? culprit : other, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The only lane loses all from some message on, and nothing sends again. */
static void lost_message(void)
{
    void (*plan)(enum flaky_fault, int, unsigned, unsigned);
    *(void **) &plan = dlsym(RTLD_DEFAULT, "mca_btl_flaky_plan");
    expect("lost-message");
    if (rank == culprit) {
        if (plan)
            plan(FLAKY_CUT, -1, 1u + (unsigned) seed % 7, 0);
        for (int i = 0; i < 20; i++) {
            send(other, TAG, 8, MPI_COMM_WORLD);
            receive(other, TAG, 8, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; rank == other && i < 20; i++) {
        receive(culprit, TAG, 8, MPI_COMM_WORLD);
        send(culprit, TAG, 8, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* `other` sends without end to the culprit, which waits for a third rank that waits for `other`. */
static void no_credit(void)
{
    int third = 0;
    while (third == culprit || third == other)
        third++;
    expect("no-credit");
    if (rank == other) {
        for (int i = 0; i < 1000000; i++)
            send(culprit, TAG, 100, MPI_COMM_WORLD);
        send(third, TAG, 8, MPI_COMM_WORLD);
    }
    if (rank == third) {
        receive(other, TAG, 8, MPI_COMM_WORLD);
        send(culprit, TAG + 1, 8, MPI_COMM_WORLD);
    }
    if (rank == culprit)
        receive(third, TAG + 1, 8, MPI_COMM_WORLD);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile bool has_mutex;

static void *mutex_holder(void *argument)
{
    (void) argument;
    pthread_mutex_lock(&mutex);
    has_mutex = true;
    if (seed % 2) /* it waits for what the other thread would bring about */
        receive(other, TAG, 8, MPI_COMM_WORLD);
    sleep_s(1e6);
    return NULL;
}

/* A thread keeps the lock that another one needs to send. */
static void lock(void)
{
    pthread_t thread;
    expect(seed % 2 ? "cycle" : "sleeps");
    if (rank == culprit) {
        pthread_create(&thread, NULL, mutex_holder, NULL);
        while (!has_mutex)
            sleep_s(0.001);
        pthread_mutex_lock(&mutex);
        send(other, TAG, 8, MPI_COMM_WORLD);
    }
    if (rank == other) {
        receive(culprit, TAG, 8, MPI_COMM_WORLD);
        send(culprit, TAG, 8, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void left(void)
{
    expect("left");
    if (rank == culprit)
        return;
    if (rank == other)
        receive(culprit, TAG, 8, MPI_COMM_WORLD);
}

/* No hang: one comes late, and the job ends well. */
static void late(void)
{
    expect("late");
    if (rank == culprit)
        compute_s(1.8);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --- healthy ---------------------------------------------------------------------------------- */

#define HEALTHY_S 3.0

static bool time_is_over(double end)
{
    int is_over = now_s() > end;
    MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return is_over;
}

/* All wait for one that computes or sleeps. */
static void slow_rank(double end)
{
    while (!time_is_over(end)) {
        if (rank == culprit && seed % 2)
            compute_s(0.9);
        else if (rank == culprit)
            sleep_s(0.9);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void ring_turns(double end)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    while (!time_is_over(end))
        MPI_Sendrecv(buffer, LARGE / 2, MPI_BYTE, next, TAG, buffer + LARGE / 2, LARGE / 2,
                     MPI_BYTE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A master that hands out work of very different length. */
static void work_master(double end)
{
    int done = 0, work[2] = {0, 0};
    for (MPI_Status status; done < size - 1;) {
        MPI_Recv(work, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        work[0] = now_s() > end;
        done += work[0];
        MPI_Send(work, 1, MPI_INT, status.MPI_SOURCE, TAG, MPI_COMM_WORLD);
    }
}

static void work_shared(double end)
{
    if (rank == 0) {
        work_master(end);
        return;
    }
    for (int over = 0; !over;) {
        MPI_Send(&over, 1, MPI_INT, 0, rank, MPI_COMM_WORLD);
        MPI_Recv(&over, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_s(rank % 3 == 0 ? 1.1 : 0.01);
    }
}

/* Messages with other tags and on another communicator wait, rightly, while the sender computes. */
static void later_tags(double end)
{
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    while (!time_is_over(end)) {
        if (rank == other) {
            send(culprit, TAG + 1, 8, MPI_COMM_WORLD);
            send(culprit, TAG, 8, twin);
            sleep_s(0.8);
            send(culprit, TAG, 8, MPI_COMM_WORLD);
        }
        if (rank == culprit) {
            receive(other, TAG, 8, MPI_COMM_WORLD);
            receive(other, TAG, 8, twin);
            receive(other, TAG + 1, 8, MPI_COMM_WORLD);
        }
    }
    MPI_Comm_free(&twin);
}

/* A rank that asks again and again, and does something else in between. */
static void tests(double end)
{
    while (!time_is_over(end)) {
        MPI_Request request;
        int is_done = 0;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        if (rank == culprit)
            sleep_s(0.7);
        while (rank % 2 && !is_done) {
            MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
            sleep_s(0.001);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Some ranks are done early, the others go on among themselves. */
static void early_end(double end)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank % 2)
        return;
    for (int over = 0; !over;) {
        over = now_s() > end;
        MPI_Bcast(&over, 1, MPI_INT, 0, half);
        sleep_s(rank == 0 ? 0.6 : 0.01);
    }
}

static void exchanges(double end)
{
    char *from = calloc((size_t) size, 65536), *to = calloc((size_t) size, 65536);
    while (from && to && !time_is_over(end))
        MPI_Alltoall(from, 65536, MPI_BYTE, to, 65536, MPI_BYTE, MPI_COMM_WORLD);
    free(from);
    free(to);
}

static void healthy(void)
{
    static void (*const programs[])(double) = {slow_rank, ring_turns, work_shared, later_tags,
                                               tests,     early_end,  exchanges};
    double end = now_s() + HEALTHY_S;
    expect("healthy");
    programs[(size_t) seed % (sizeof(programs) / sizeof(programs[0]))](end);
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"no-receive", no_receive},
    {"wrong-tag", wrong_tag},
    {"wrong-communicator", wrong_communicator},
    {"cycle", cycle},
    {"stopped", stopped},
    {"computes", computes},
    {"grows", grows},
    {"collectives", collectives},
    {"roots", roots},
    {"lost-message", lost_message},
    {"no-credit", no_credit},
    {"lock", lock},
    {"left", left},
    {"late", late},
    {"healthy", healthy},
};

int main(int argc, char **argv)
{
    int level;
    const char *name = argc > 1 ? argv[1] : "";
    bool threads = strcmp(name, "lock") == 0;
    seed = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    buffer = calloc(1, LARGE);
    culprit = seed % size;
    other = (culprit + 1 + seed / size % (size > 1 ? size - 1 : 1)) % size;
    for (int i = argc > 3 ? atoi(argv[3]) : 0; i > 0; i--)
        MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && buffer && size > 1; i++)
        if (strcmp(name, kinds[i].name) == 0)
            kinds[i].run();
    MPI_Finalize();
    free(buffer);
    return 0;
}
