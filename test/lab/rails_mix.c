/* SPDX-License-Identifier: BSD-3-Clause */
/* A mix of messages and collective operations, every byte and the order checked, for the labs that
 * change the lanes meanwhile: rails_mix [--seconds S] [--seed N] [--threads T] [--longest BYTES]
 * [--pause S] [--device 1] [--last S] [--late S]. Prints "mix begins" when traffic begins, and the
 * rounds and wrong messages at the end.
 * --pause is for how long one rank computes, without calling MPI, in every tenth round; with
 * --device 1 messages and broadcasts go from device memory to device memory, a device's or that of
 * the stand-in of test/fake. With --last S rank 0 sends short messages S seconds after the traffic
 * and is in MPI_Finalize when rank 1, as long after that, receives them. With --late S rank 0
 * computes for S seconds before its first call, and rank 1 prints "mix calls" before its own. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/memory/driver.h"
#include "test/fake/cuda_calls.h"

enum { THREADS_MOST = 16, MESSAGES = 6, TAGS = 2, REPORTED_MOST = 20, PAUSE_EVERY = 10 };

struct worker {
    MPI_Comm comm;
    uint64_t seed;
    unsigned rounds;
    long wrong;
    int index;
    unsigned char *out, *in; /* every message has a place of `longest` bytes */
    unsigned char *host;     /* one such place, where what is on a device is made and looked at */
    MPI_Request *requests;
};

static double seconds = 5, pause_s, last_s, late_s;
static uint64_t seed_first = 1;
static int thread_count = 1, longest = 16 << 20, rank, ranks;
static double deadline;
static int on_device;
static driver_context context;

/* ---- what both ends know of a message ---- */

static uint64_t mixed(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static uint64_t message_key(const struct worker *worker, int from, int to, int index)
{
    return mixed(mixed(worker->seed + worker->rounds) + ((uint64_t) from << 40) +
                 ((uint64_t) to << 20) + (uint64_t) index);
}

/* As many of each order of magnitude; a few empty ones. */
static int message_size(uint64_t key)
{
    uint64_t draw = mixed(key);
    int bits = 0;

    while ((1u << bits) <= (unsigned) longest)
        bits++;
    return (int) ((mixed(draw) & ((1u << draw % (unsigned) bits) - 1)) % ((unsigned) longest + 1));
}

static void message_fill(unsigned char *data, int size, uint64_t key)
{
    uint64_t word = key;

    for (int at = 0; at < size; at += 8, word = word * 6364136223846793005u + 1442695040888963407u)
        memcpy(data + at, &word, size - at < 8 ? (size_t) (size - at) : 8);
}

/* The first byte that is wrong, or -1. */
static int message_differs(const unsigned char *data, int size, uint64_t key)
{
    uint64_t word = key;

    for (int at = 0; at < size; at += 8, word = word * 6364136223846793005u + 1442695040888963407u)
        if (0 != memcmp(data + at, &word, size - at < 8 ? (size_t) (size - at) : 8))
            return at;
    return -1;
}

static void wrong(struct worker *worker, const char *what, int from, int index, int bytes)
{
    if (worker->wrong++ < REPORTED_MOST)
        fprintf(stderr,
                "rails_mix: round %u, thread %d, rank %d from %d, message %d of %d bytes: %s\n",
                worker->rounds, worker->index, rank, from, index, bytes, what);
}

/* ---- memory ---- */

static void must(driver_result result, const char *what)
{
    char words[160];

    if (DRIVER_SUCCESS == result)
        return;
    fprintf(stderr, "rails_mix: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Before MPI_Init, as a program that uses a device does. */
static int device_begin(void)
{
    driver_result result;
    char words[160];

    if (NULL == dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || !driver_load()) {
        fprintf(stderr, "rails_mix: no driver: %s\n", driver_why());
        return 0;
    }
    result = driver.init(0);
    if (DRIVER_SUCCESS == result)
        result = driver.primary_retain(&context, 0);
    if (DRIVER_SUCCESS == result)
        result = driver.context_push(context);
    if (DRIVER_SUCCESS != result)
        fprintf(stderr, "rails_mix: no context of device 0: %s\n",
                driver_words(result, words, sizeof(words)));
    return DRIVER_SUCCESS == result;
}

static unsigned char *memory_new(size_t bytes)
{
    driver_ptr address = 0;

    if (!on_device)
        return malloc(bytes);
    must(driver.mem_alloc(&address, bytes), "cuMemAlloc");
    return (unsigned char *) (uintptr_t) address;
}

static void memory_free(unsigned char *bytes)
{
    if (on_device)
        must(driver.mem_free((driver_ptr) (uintptr_t) bytes), "cuMemFree");
    else
        free(bytes);
}

static void copy(unsigned char *to, const unsigned char *from, int size)
{
    if (size > 0)
        must(cuda_copy((driver_ptr) (uintptr_t) to, (driver_ptr) (uintptr_t) from, (size_t) size),
             "cuMemcpy");
}

static void data_make(const struct worker *worker, unsigned char *data, int size, uint64_t key)
{
    message_fill(on_device ? worker->host : data, size, key);
    if (on_device)
        copy(data, worker->host, size);
}

static void data_clear(const struct worker *worker, unsigned char *data, int size)
{
    memset(on_device ? worker->host : data, 0, (size_t) size);
    if (on_device)
        copy(data, worker->host, size);
}

static int data_differs(const struct worker *worker, const unsigned char *data, int size,
                        uint64_t key)
{
    if (on_device)
        copy(worker->host, data, size);
    return message_differs(on_device ? worker->host : data, size, key) >= 0;
}

/* ---- messages ---- */

/* Messages to one rank share few tags, so that contents alone show whether order was kept. */
static void messages_exchange(struct worker *worker)
{
    int n = 0;

    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < MESSAGES; i++, n++)
            MPI_Irecv(worker->in + (size_t) n * (size_t) longest, longest, MPI_BYTE, from, i % TAGS,
                      worker->comm, &worker->requests[n]);
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < MESSAGES; i++, n++) {
            uint64_t key = message_key(worker, rank, to, i);
            int place = n - ranks * MESSAGES, size = message_size(key);
            unsigned char *data = worker->out + (size_t) place * (size_t) longest;

            data_make(worker, data, size, key);
            MPI_Isend(data, size, MPI_BYTE, to, i % TAGS, worker->comm, &worker->requests[n]);
        }
}

static void messages_check(struct worker *worker)
{
    MPI_Status statuses[2 * MESSAGES];

    for (int from = 0, n = 0; from < ranks; from++) {
        MPI_Waitall(MESSAGES, &worker->requests[n], statuses);
        for (int i = 0; i < MESSAGES; i++, n++) {
            uint64_t key = message_key(worker, from, rank, i);
            int size = message_size(key), came = -1;
            const unsigned char *data = worker->in + (size_t) n * (size_t) longest;

            MPI_Get_count(&statuses[i], MPI_BYTE, &came);
            if (came != size)
                wrong(worker, "another length, so another message", from, i, came);
            else if (data_differs(worker, data, size, key))
                wrong(worker, "other contents", from, i, size);
        }
    }
    MPI_Waitall(ranks * MESSAGES, &worker->requests[ranks * MESSAGES], MPI_STATUSES_IGNORE);
}

/* ---- collective operations ---- */

static void sum_check(struct worker *worker)
{
    long mine[64], all[64];
    int count = 1 + (int) (message_key(worker, 0, 0, MESSAGES) % 64);

    for (int i = 0; i < count; i++)
        mine[i] = (long) worker->rounds + rank * i;
    MPI_Allreduce(mine, all, count, MPI_LONG, MPI_SUM, worker->comm);
    for (int i = 0; i < count; i++)
        if (all[i] != (long) worker->rounds * ranks + (long) i * ranks * (ranks - 1) / 2) {
            wrong(worker, "another sum", i, count, (int) sizeof mine);
            break;
        }
}

static void broadcast_check(struct worker *worker)
{
    int root = (int) (worker->rounds % (unsigned) ranks);
    uint64_t key = message_key(worker, root, 0, MESSAGES + 1);
    int size = message_size(key);

    if (rank == root)
        data_make(worker, worker->in, size, key);
    else
        data_clear(worker, worker->in, size);
    MPI_Bcast(worker->in, size, MPI_BYTE, root, worker->comm);
    if (data_differs(worker, worker->in, size, key))
        wrong(worker, "another broadcast", root, 0, size);
}

static void compute(const struct worker *worker)
{
    struct timespec time = {(time_t) pause_s, (long) ((pause_s - (double) (time_t) pause_s) * 1e9)};

    if (pause_s > 0 && worker->rounds % PAUSE_EVERY == 1 &&
        (int) (worker->rounds / PAUSE_EVERY) % ranks == rank)
        nanosleep(&time, NULL);
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    int go_on = 1;

    if (on_device && worker->index > 0) /* a context is a thread's */
        must(driver.context_push(context), "cuCtxPushCurrent");
    while (go_on) {
        messages_exchange(worker);
        compute(worker);
        messages_check(worker);
        sum_check(worker);
        broadcast_check(worker);
        worker->rounds++;
        go_on = MPI_Wtime() < deadline;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, worker->comm);
    }
    return NULL;
}

/* ---- the job ---- */

static void worker_prepare(struct worker *worker, int index)
{
    size_t places = (size_t) ranks * MESSAGES, bytes = places * (size_t) longest;

    *worker = (struct worker){.seed = mixed(seed_first) + (uint64_t) index, .index = index};
    worker->out = memory_new(bytes);
    worker->in = memory_new(bytes);
    worker->host = malloc((size_t) longest);
    worker->requests = malloc(2 * places * sizeof *worker->requests);
    if (NULL == worker->out || NULL == worker->in || NULL == worker->host ||
        NULL == worker->requests) {
        fprintf(stderr, "rails_mix: no memory for %zu messages of %d bytes\n", places, longest);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &worker->comm);
}

static void worker_end(struct worker *worker)
{
    MPI_Comm_free(&worker->comm);
    memory_free(worker->out);
    memory_free(worker->in);
    free(worker->host);
    free(worker->requests);
}

static void workers_run(struct worker *workers)
{
    pthread_t threads[THREADS_MOST];

    for (int t = 1; t < thread_count; t++)
        if (0 != pthread_create(&threads[t], NULL, worker_run, &workers[t])) {
            fprintf(stderr, "rails_mix: thread %d could not be started\n", t);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    worker_run(&workers[0]);
    for (int t = 1; t < thread_count; t++)
        pthread_join(threads[t], NULL);
}

static void sleep_s(double s)
{
    const struct timespec time = {.tv_sec = (time_t) s, .tv_nsec = (long) ((s - (long) s) * 1e9)};

    nanosleep(&time, NULL);
}

/* The number of wrong ones. */
static long last_messages(void)
{
    long wrong = 0;

    sleep_s(rank == 0 ? last_s : 2 * last_s);
    for (uint64_t i = 0; rank < 2 && i < 200; i++) {
        uint64_t word = mixed(i);

        if (rank == 0) {
            MPI_Send(&word, 1, MPI_UINT64_T, 1, TAGS, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&word, 1, MPI_UINT64_T, 0, TAGS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += word != mixed(i);
        }
    }
    if (rank == 1)
        printf("last messages: %ld wrong\n", wrong);
    return wrong;
}

static void say(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}

/* The first message of all. */
static void late_message(void)
{
    if (1 == rank) {
        say("mix calls");
        MPI_Ssend(NULL, 0, MPI_BYTE, 0, TAGS, MPI_COMM_WORLD);
    } else if (0 == rank) {
        sleep_s(late_s);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAGS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static int options_read(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (0 == strcmp(argv[i], "--seconds"))
            seconds = atof(value);
        else if (0 == strcmp(argv[i], "--seed"))
            seed_first = strtoull(value, NULL, 10);
        else if (0 == strcmp(argv[i], "--threads"))
            thread_count = atoi(value);
        else if (0 == strcmp(argv[i], "--longest"))
            longest = atoi(value);
        else if (0 == strcmp(argv[i], "--pause"))
            pause_s = atof(value);
        else if (0 == strcmp(argv[i], "--last"))
            last_s = atof(value);
        else if (0 == strcmp(argv[i], "--late"))
            late_s = atof(value);
        else if (0 == strcmp(argv[i], "--device"))
            on_device = atoi(value);
        else
            return 0;
    }
    return argc % 2 == 1 && longest > 0 && longest <= 1 << 28 && thread_count >= 1 &&
           thread_count <= THREADS_MOST;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS_MOST];
    long wrong_here = 0, wrong_all = 0;
    unsigned rounds = 0;
    int provided;

    if (!options_read(argc, argv)) {
        fprintf(stderr, "rails_mix: arguments that it does not know; they stand at its top\n");
        return 2;
    }
    if (on_device && !device_begin())
        return 2;
    MPI_Init_thread(&argc, &argv, thread_count > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (thread_count > 1 && provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "rails_mix: this MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (late_s > 0)
        late_message();
    for (int t = 0; t < thread_count; t++)
        worker_prepare(&workers[t], t);
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank)
        say("mix begins");
    deadline = MPI_Wtime() + seconds;
    workers_run(workers);
    for (int t = 0; t < thread_count; t++) {
        wrong_here += workers[t].wrong;
        rounds += workers[t].rounds;
        worker_end(&workers[t]);
    }
    MPI_Allreduce(&wrong_here, &wrong_all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank)
        printf("mix ends: %u rounds of %d ranks, %ld wrong\n", rounds, ranks, wrong_all);
    if (last_s > 0)
        wrong_all += last_messages();
    MPI_Finalize();
    return 0 != wrong_all;
}
