/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that compute while messages are under way: away WHAT
 *   programs [FIRST [COUNT [STEP_US]]]  random programs, one for each seed from FIRST on: sends and
 *            receives of all kinds and sizes start at random times, between which ranks compute for
 *            up to STEP_US, and end by tests and waits at random times. Every byte is checked
 *   calls MOST BYTES   rank 1 tests every 5 ms: a message of so many bytes needs at most MOST
 * tests, while rank 0 waits, and while it computes; calls-of-receiver asks only for the first
 *   stopped  rank 1 is stopped for a second in the middle of a message, and goes on
 *   between  rank 0 changes its memory as soon as a send is complete
 * programs says how long it took. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES_MAX 24
#define BYTES_MAX    (3 << 20)
#define STRIDE       96 /* of blocks of 64 bytes */
#define AWAY_S       0.3

static int rank, ranks, wrong;

static void expect(int holds, const char *what, long value)
{
    if (holds)
        return;
    if (wrong++ < 10)
        fprintf(stderr, "away: rank %d: %s (%ld)\n", rank, what, value);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static long random_below(uint64_t *state, long limit)
{
    return (long) (random_next(state) % (uint64_t) limit);
}

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;

    while (MPI_Wtime() < end)
        ;
}

/* --- random programs -------------------------------------------------------------------------- */

struct message {
    int from, to, blocks; /* blocks of 64 bytes, or 0: in one piece */
    long bytes;
    int how; /* of the send */
    unsigned char *memory;
    MPI_Request request;
    int is_done;
};

static MPI_Datatype type_of(const struct message *message)
{
    MPI_Datatype type;

    if (!message->blocks)
        return MPI_BYTE;
    MPI_Type_vector(message->blocks, 64, STRIDE, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static size_t extent_of(const struct message *message)
{
    return message->blocks ? (size_t) message->blocks * STRIDE : (size_t) message->bytes + 1;
}

static unsigned char byte_of(uint64_t seed, int number, size_t at)
{
    return (unsigned char) (seed * 31 + (uint64_t) number * 7 + at + at / 4096);
}

static void memory_fill(struct message *message, uint64_t seed, int number)
{
    for (size_t at = 0; at < extent_of(message); at++)
        message->memory[at] = byte_of(seed, number, at);
}

static void memory_check(const struct message *message, uint64_t seed, int number)
{
    for (size_t at = 0; at < extent_of(message); at++) {
        int is_data = message->blocks ? at % STRIDE < 64 : at < (size_t) message->bytes;
        unsigned char wanted = is_data ? byte_of(seed, number, at) : 0;

        if (message->memory[at] != wanted) {
            expect(0, "another byte came, of the message of seed", (long) seed);
            return;
        }
    }
}

/* Sizes spread evenly over powers of two, so that each way of moving has its part. */
static void message_draw(struct message *message, uint64_t *state)
{
    long power = 1L << random_below(state, 22);

    message->from = (int) random_below(state, ranks);
    message->to = (int) random_below(state, ranks - 1);
    message->to += message->to >= message->from;
    message->bytes = power + random_below(state, power);
    if (message->bytes > BYTES_MAX)
        message->bytes = BYTES_MAX;
    message->blocks = random_below(state, 4) == 0 ? (int) (message->bytes / 64) : 0;
    message->how = (int) random_below(state, 4);
    message->memory = NULL;
    message->is_done = 0;
}

static void message_start(struct message *message, int number)
{
    MPI_Datatype type = type_of(message);
    int count = message->blocks ? 1 : (int) message->bytes;
    void *at = message->memory;
    MPI_Request *request = &message->request;

    if (message->to == rank)
        MPI_Irecv(at, count, type, message->from, number, MPI_COMM_WORLD, request);
    else if (message->how == 0)
        MPI_Issend(at, count, type, message->to, number, MPI_COMM_WORLD, request);
    else
        MPI_Isend(at, count, type, message->to, number, MPI_COMM_WORLD, request);
    if (message->blocks)
        MPI_Type_free(&type);
}

static int is_mine(const struct message *message)
{
    return message->from == rank || message->to == rank;
}

static void message_end(struct message *message, uint64_t seed, int number)
{
    message->is_done = 1;
    if (message->to == rank)
        memory_check(message, seed, number);
    else /* the memory is the user's again */
        memset(message->memory, 0xff, extent_of(message));
    free(message->memory);
}

/* All that are started are ended, in another order, by tests between which this rank computes. */
static void messages_end(struct message *messages, int count, uint64_t seed, uint64_t *own,
                         double step_s)
{
    for (int left = count; left > 0;) {
        int at = (int) random_below(own, count), done = 0;

        left = 0;
        for (int i = 0; i < count; i++)
            left += !messages[i].is_done;
        if (left == 0 || messages[at].is_done)
            continue;
        if (random_below(own, 8) == 0)
            MPI_Wait(&messages[at].request, MPI_STATUS_IGNORE), done = 1;
        else
            MPI_Test(&messages[at].request, &done, MPI_STATUS_IGNORE);
        if (done)
            message_end(&messages[at], seed, at);
        else
            compute(step_s * (double) random_below(own, 100) / 100);
    }
}

static void program_run(uint64_t seed, double step_s)
{
    struct message messages[MESSAGES_MAX];
    uint64_t common = seed * UINT64_C(0x9e3779b97f4a7c15) | 1, own;
    int count = 1 + (int) random_below(&common, MESSAGES_MAX);

    for (int i = 0; i < count; i++)
        message_draw(&messages[i], &common);
    own = (common + (uint64_t) rank * UINT64_C(0xbf58476d1ce4e5b9)) | 1;
    for (int i = 0; i < 8; i++)
        (void) random_next(&own);
    for (int i = 0; i < count; i++) {
        struct message *message = &messages[i];

        message->is_done = !is_mine(message);
        if (message->is_done)
            continue;
        message->memory = calloc(1, extent_of(message));
        if (message->from == rank)
            memory_fill(message, seed, i);
        if (random_below(&own, 3) == 0)
            compute(step_s * (double) random_below(&own, 100) / 100);
        message_start(message, i);
    }
    messages_end(messages, count, seed, &own, step_s);
}

static void programs_run(uint64_t first, long count, double step_s)
{
    double begin, taken;

    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (long i = 0; i < count; i++)
        program_run(first + (uint64_t) i, step_s);
    MPI_Barrier(MPI_COMM_WORLD);
    taken = MPI_Wtime() - begin;
    if (rank == 0)
        printf("away: %ld programs in %.2f s\n", count, taken);
}

/* --- a message and who calls MPI -------------------------------------------------------------- */

static unsigned char *message_memory(long bytes, int value)
{
    unsigned char *memory = malloc((size_t) bytes);

    memset(memory, value, (size_t) bytes);
    return memory;
}

/* How many tests, 5 ms apart, rank 1 needs for a message of rank 0, which computes meanwhile or
 * not. */
static int tests_needed(long bytes, int sender_computes)
{
    unsigned char *memory = message_memory(bytes, 3 * (rank == 0));
    MPI_Request request;
    int tests = 0, done = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Isend(memory, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        if (sender_computes)
            compute(AWAY_S);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Irecv(memory, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        for (; !done; tests++) {
            compute(5e-3);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        for (long i = 0; i < bytes; i++)
            if (memory[i] != 3) {
                expect(0, "another byte came, at", i);
                break;
            }
    }
    free(memory);
    return tests;
}

static void calls_count(int most, long bytes, int sender_computes)
{
    for (int i = 0; i < 3; i++) {
        int tests = tests_needed(bytes, sender_computes);

        expect(rank != 1 || tests <= most,
               sender_computes ? "tests needed while the sender computes" : "tests needed", tests);
    }
}

/* --- what a stopped receiver holds ------------------------------------------------------------ */

/* A child stops its parent after some time, and lets it go on. */
static void stop_me(unsigned after_us, unsigned for_us)
{
    pid_t parent = getpid(), child = fork();

    if (child != 0)
        return;
    usleep(after_us);
    kill(parent, SIGSTOP);
    usleep(for_us);
    kill(parent, SIGCONT);
    _exit(0);
}

static void stopped(void)
{
    const long bytes = 256L << 20;
    unsigned char *memory = message_memory(bytes, 5 * (rank == 0));
    MPI_Request request;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Isend(memory, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        compute(5e-3);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memset(memory, 6, (size_t) bytes);
    } else if (rank == 1) {
        stop_me(10000, 1000000);
        MPI_Recv(memory, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (long i = 0; i < bytes; i++)
            if (memory[i] != 5) {
                expect(0, "another byte came, at", i);
                break;
            }
        (void) wait(NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(memory);
}

/* --- whose memory it is ----------------------------------------------------------------------- */

static void between(void)
{
    const long bytes = 4L << 20;
    unsigned char *memory = message_memory(bytes, 0);

    for (int round = 1; round <= 200; round++) {
        MPI_Request request;

        if (rank == 0) {
            memset(memory, round, (size_t) bytes);
            MPI_Isend(memory, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
            compute((round % 7) * 1e-4);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            memset(memory, 255, (size_t) bytes);
        } else if (rank == 1) {
            compute((round % 5) * 1e-4);
            MPI_Recv(memory, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (long i = 0; i < bytes; i++)
                if (memory[i] != (unsigned char) round) {
                    expect(0, "another byte came, in round", round);
                    break;
                }
        }
    }
    free(memory);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int all_wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        expect(0, "ranks are too few", ranks);
    else if (strcmp(what, "programs") == 0)
        programs_run(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, argc > 3 ? atol(argv[3]) : 20,
                     (argc > 4 ? atof(argv[4]) : 1000) * 1e-6);
    else if (strncmp(what, "calls", 5) == 0 && argc == 4) {
        calls_count(atoi(argv[2]), atol(argv[3]), 0);
        if (strcmp(what, "calls") == 0)
            calls_count(atoi(argv[2]), atol(argv[3]), 1);
    } else if (strcmp(what, "stopped") == 0)
        stopped();
    else if (strcmp(what, "between") == 0)
        between();
    else
        expect(0, "this is not one of programs, calls, calls-of-receiver, stopped, between", argc);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all_wrong != 0;
}
