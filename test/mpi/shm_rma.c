/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations on memory of other ranks: put, get, accumulate, fetch-and-op and
 * compare-and-swap give what they should, on every rank at once, with every operator and wherever
 * in memory. With an argument: large puts and gets of so many threads at once. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 20000

static int rank, ranks;
static _Atomic long wrong;

static void expect(const char *what, int64_t is, int64_t should)
{
    if (is != should) {
        fprintf(stderr, "rank %d: %s is %lld, not %lld\n", rank, what, (long long) is,
                (long long) should);
        atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
    }
}

static void put_and_get(MPI_Win win, int64_t *memory, int words)
{
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    int64_t *data = malloc(sizeof(*data) * (size_t) words);

    for (int i = 0; i < words; i++)
        data[i] = rank * 1000003LL + i;
    MPI_Win_fence(0, win);
    MPI_Put(data, words, MPI_INT64_T, to, 0, words, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    expect("the first word put", memory[0], from * 1000003LL);
    expect("the last word put", memory[words - 1], from * 1000003LL + words - 1);
    for (int i = 0; i < words; i++)
        data[i] = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
    MPI_Get(data, words, MPI_INT64_T, to, 0, words, MPI_INT64_T, win);
    MPI_Win_unlock(to, win);
    for (int i = 0; i < words; i++)
        expect("a word got", data[i], rank * 1000003LL + i);
    MPI_Win_fence(0, win);
    free(data);
}

static void count_together(MPI_Win win, int64_t *memory)
{
    const int64_t one = 1;
    int64_t before, sum = 0, all;
    const int times = 500;

    MPI_Win_fence(0, win);
    memory[0] = memory[1] = memory[2] = 0;
    MPI_Win_fence(0, win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < times; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        sum += before;
        MPI_Accumulate(&one, 1, MPI_INT64_T, i % ranks, 1, 1, MPI_INT64_T, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    /* Every value from 0 on was seen by exactly one. */
    MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    int64_t n = (int64_t) times * ranks;
    expect("the sum of what was fetched", all, n * (n - 1) / 2);
    if (rank == 0)
        expect("the counter", memory[0], n);
    MPI_Allreduce(&memory[1], &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect("what was accumulated", all, n);
}

static void swap_in_turn(MPI_Win win, int64_t *memory)
{
    MPI_Win_fence(0, win);
    memory[2] = 0;
    MPI_Win_fence(0, win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 20; i++) {
        int64_t mine = (int64_t) i * ranks + rank, next = mine + 1, found;

        do {
            MPI_Compare_and_swap(&next, &mine, &found, MPI_INT64_T, 0, 2, win);
            MPI_Win_flush(0, win);
        } while (found != mine);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        expect("the word swapped in turn", memory[2], 20LL * ranks);
}

/* Where the next rank has `before`, `operator` makes `after` of it and `operand`: by
 * MPI_Fetch_and_op, MPI_Get_accumulate and MPI_Accumulate. */
struct operation {
    const char *what;
    MPI_Op operator;
    MPI_Datatype type;
    uint64_t before, operand, after;
};

static void operate_once(MPI_Win win, const struct operation *operation, int way, MPI_Aint at)
{
    int to = (rank + 1) % ranks;
    uint64_t found = 0;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    if (way == 0)
        MPI_Fetch_and_op(&operation->operand, &found, operation->type, to, at, operation->operator,
                         win);
    else if (way == 1)
        MPI_Get_accumulate(&operation->operand, 1, operation->type, &found, 1, operation->type, to,
                           at, 1, operation->type, operation->operator, win);
    else
        MPI_Accumulate(&operation->operand, 1, operation->type, to, at, 1, operation->type,
                       operation->operator, win);
    MPI_Win_unlock(to, win);
    if (way != 2)
        expect(operation->what, (int64_t) found, (int64_t) operation->before);
}

static void operate(MPI_Win win, unsigned char *memory, const struct operation *operation,
                    MPI_Aint at)
{
    int bytes;

    MPI_Type_size(operation->type, &bytes);
    for (int way = 0; way < 3; way++) {
        uint64_t found = 0;

        memcpy(memory + at, &operation->before, (size_t) bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        operate_once(win, operation, way, at);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
        memcpy(&found, memory + at, (size_t) bytes);
        MPI_Win_unlock(rank, win);
        expect(operation->what, (int64_t) found, (int64_t) operation->after);
    }
}

/* Each at a multiple of its size, and not; shorter values are the first bytes of a word. */
static void operate_in_all_ways(void)
{
    const uint64_t high = UINT64_C(1) << 63, high32 = UINT64_C(1) << 31;
    const struct operation operations[] = {
        {"MPI_LAND of 12 and 3", MPI_LAND, MPI_INT64_T, 12, 3, 1},
        {"MPI_LAND of 12 and 0", MPI_LAND, MPI_INT, 12, 0, 0},
        {"MPI_LOR of 0 and 10", MPI_LOR, MPI_INT64_T, 0, 10, 1},
        {"MPI_LOR of 0 and 0", MPI_LOR, MPI_INT, 0, 0, 0},
        {"MPI_LXOR of 12 and 10", MPI_LXOR, MPI_INT64_T, 12, 10, 0},
        {"MPI_LXOR of 0 and 10", MPI_LXOR, MPI_INT, 0, 10, 1},
        {"MPI_MAX of a large one and 1", MPI_MAX, MPI_UINT64_T, high, 1, high},
        {"MPI_MIN of a large one and 1", MPI_MIN, MPI_UINT64_T, high, 1, 1},
        {"MPI_MAX of 1 and a large one", MPI_MAX, MPI_UNSIGNED, 1, high32, high32},
        {"MPI_MIN of 1 and a large one", MPI_MIN, MPI_UINT32_T, 1, high32, 1},
        {"MPI_MAX of the least and 1", MPI_MAX, MPI_INT64_T, high, 1, 1},
        {"MPI_MIN of 1 and the least", MPI_MIN, MPI_INT, 1, high32, high32},
        {"MPI_SUM of 12 and 3", MPI_SUM, MPI_INT64_T, 12, 3, 15},
        {"MPI_SUM of 12 and 4", MPI_SUM, MPI_INT, 12, 4, 16}};
    unsigned char *memory = calloc(2, sizeof(uint64_t));
    MPI_Win win;

    MPI_Win_create(memory, 2 * sizeof(uint64_t), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        for (MPI_Aint at = 0; at <= 3; at += 3)
            operate(win, memory, &operations[i], at);
    MPI_Win_free(&win);
    free(memory);
}

#define THREADS_MAX  8
#define THREAD_TIMES 60

/* What one thread of each rank does with its neighbour: it writes a half of the window there and
 * reads it back, while the answers of other threads' operations come in its own calls. */
struct turn {
    pthread_t thread;
    int number;
    MPI_Win win;
    int64_t *memory, *data;
};

static void *turn_run(void *context)
{
    const struct turn *turn = context;
    int to = (rank + 1) % ranks;

    MPI_Win_lock_all(0, turn->win);
    for (int time = 0; time < THREAD_TIMES; time++) {
        int words = WORDS - 100 * time;

        for (int i = 0; i < words; i++)
            turn->data[i] = turn->number * 1000003LL + time * 1009LL + i;
        MPI_Put(turn->data, words, MPI_INT64_T, to, 0, words, MPI_INT64_T, turn->win);
        MPI_Win_flush(to, turn->win);
        for (int i = 0; i < words; i++)
            turn->data[i] = -1;
        MPI_Get(turn->data, words, MPI_INT64_T, to, 0, words, MPI_INT64_T, turn->win);
        MPI_Win_flush(to, turn->win);
        for (int i = 0; i < words; i++)
            if (turn->data[i] != turn->number * 1000003LL + time * 1009LL + i) {
                expect("a word that a thread got back", turn->data[i],
                       turn->number * 1000003LL + time * 1009LL + i);
                break;
            }
    }
    MPI_Win_unlock_all(turn->win);
    return NULL;
}

static void among_threads(int threads)
{
    struct turn turns[THREADS_MAX];

    for (int i = 0; i < threads; i++) {
        turns[i].number = i;
        turns[i].memory = calloc(WORDS, sizeof(int64_t));
        turns[i].data = calloc(WORDS, sizeof(int64_t));
        MPI_Win_create(turns[i].memory, WORDS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL,
                       MPI_COMM_WORLD, &turns[i].win);
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&turns[i].thread, NULL, turn_run, &turns[i]);
    for (int i = 0; i < threads; i++)
        pthread_join(turns[i].thread, NULL);
    for (int i = 0; i < threads; i++) {
        MPI_Win_free(&turns[i].win);
        free(turns[i].memory);
        free(turns[i].data);
    }
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 0, provided;
    int64_t *memory;
    long all, mine;
    MPI_Win win;

    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (threads > THREADS_MAX || (threads && provided != MPI_THREAD_MULTIPLE)) {
        fprintf(stderr, "shm_rma: no %d threads here\n", threads);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    among_threads(threads);
    memory = calloc(WORDS, sizeof(*memory));
    /* Memory of the program's own: only the BTL, not a shared window, can reach it. */
    MPI_Win_create(memory, WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    put_and_get(win, memory, 1);
    put_and_get(win, memory, 100);
    put_and_get(win, memory, WORDS);
    count_together(win, memory);
    swap_in_turn(win, memory);
    MPI_Win_free(&win);
    free(memory);
    /* From 5.0 on osc/rdma asks no BTL for it but does it by messages of its own, over stock BTLs
     * too: MPI_LAND, LOR and LXOR not at all, MPI_MAX and MPI_MIN as if all values had a sign. */
    if (OMPI_MAJOR_VERSION < 5)
        operate_in_all_ways();
    mine = atomic_load_explicit(&wrong, memory_order_relaxed);
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("one-sided operations: %ld wrong\n", all);
    MPI_Finalize();
    return all != 0;
}
