/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from rank 0 to rank 1, and nonblocking collectives, while one end or both compute: for
 * test/bench/overlap. Each argument is a cell, WHO:HOW:LAYOUT:COUNT:SIZE. Prints the cell; seconds
 * until the ends that look are done; calls of MPI_Testall or MPI_Waitall that the receiver and the
 * sender made until then; seconds of computing time that these tests took. Medians of ROUNDS. */
#include "median.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      5
#define COUNT_MAX   64
#define AWAY_S      0.1  /* an end that computes comes back after so long */
#define GIVE_UP_S   20.0 /* a round that takes longer is the last one of its cell */
#define BLOCK_BYTES 64   /* of strided memory; as much lies between two blocks */

enum end { WAITS, AWAY, TESTS, MEETS };

/* What the sender and the receiver do once they have started their messages. */
static const struct who {
    const char *name;
    enum end sender, receiver;
    double period_s; /* between two tests */
} whos[] = {
    {"both", WAITS, WAITS, 0},         {"receiver", AWAY, WAITS, 0},
    {"sender", WAITS, AWAY, 0},        {"rtest1", WAITS, TESTS, 1e-3},
    {"rtest5", WAITS, TESTS, 5e-3},    {"rtest20", WAITS, TESTS, 20e-3},
    {"stest5", TESTS, WAITS, 5e-3},    {"btest1", TESTS, TESTS, 1e-3},
    {"btest5", TESTS, TESTS, 5e-3},    {"btest20", TESTS, TESTS, 20e-3},
    {"away-test5", AWAY, TESTS, 5e-3}, {"barrier", MEETS, MEETS, 0},
};

enum how { ISEND, ISSEND, PERSISTENT, EXCHANGE, IBCAST, IALLREDUCE, IALLTOALL, HOWS };

static const char *const hows[HOWS] = {"isend",  "issend",     "persistent", "exchange",
                                       "ibcast", "iallreduce", "ialltoall"};

struct cell {
    const struct who *who;
    enum how how;
    MPI_Datatype type;
    int count, elements;
    long size;
    char *from[COUNT_MAX], *to[COUNT_MAX];
    MPI_Request requests[2 * COUNT_MAX];
    int request_count;
};

struct round {
    double taken_s, lost_s;
    long calls;
};

static int rank, ranks;

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    volatile double sum = 0;

    while (MPI_Wtime() < end)
        for (int i = 0; i < 50; i++)
            sum = sum + i;
}

static void wrong(const char *what, const char *word)
{
    fprintf(stderr, "overlap_measure: %s \"%s\"\n", what, word);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static char *buffer_new(size_t bytes, int value)
{
    char *buffer = malloc(bytes + 1);

    if (NULL == buffer)
        wrong("no memory for a message of", "this size");
    memset(buffer, value, bytes + 1);
    return buffer;
}

static void send_new(struct cell *cell, int index, MPI_Request *request)
{
    void *from = cell->from[index];
    int to = 1 - rank;

    if (PERSISTENT == cell->how)
        MPI_Send_init(from, cell->elements, cell->type, to, index, MPI_COMM_WORLD, request);
    else if (ISSEND == cell->how)
        MPI_Issend(from, cell->elements, cell->type, to, index, MPI_COMM_WORLD, request);
    else
        MPI_Isend(from, cell->elements, cell->type, to, index, MPI_COMM_WORLD, request);
}

static void receive_new(struct cell *cell, int index, MPI_Request *request)
{
    void *to = cell->to[index];
    int from = 1 - rank;

    if (PERSISTENT == cell->how)
        MPI_Recv_init(to, cell->elements, cell->type, from, index, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(to, cell->elements, cell->type, from, index, MPI_COMM_WORLD, request);
}

static void collective_new(struct cell *cell, int index, MPI_Request *request)
{
    void *from = cell->from[index], *to = cell->to[index];
    int each = cell->elements / ranks;

    if (IBCAST == cell->how)
        MPI_Ibcast(0 == rank ? from : to, cell->elements, cell->type, 0, MPI_COMM_WORLD, request);
    else if (IALLREDUCE == cell->how)
        MPI_Iallreduce(from, to, cell->elements, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD, request);
    else
        MPI_Ialltoall(from, each, cell->type, to, each, cell->type, MPI_COMM_WORLD, request);
}

static int sends(const struct cell *cell)
{
    return 0 == rank || (EXCHANGE == cell->how && 1 == rank);
}

static int receives(const struct cell *cell)
{
    return 1 == rank || (EXCHANGE == cell->how && 0 == rank);
}

/* The receives come first where both ends do both. */
static void requests_make(struct cell *cell)
{
    MPI_Request *next = cell->requests;

    for (int i = 0; i < cell->count && cell->how >= IBCAST; i++)
        collective_new(cell, i, next++);
    for (int i = 0; i < cell->count && cell->how < IBCAST && receives(cell); i++)
        receive_new(cell, i, next++);
    for (int i = 0; i < cell->count && cell->how < IBCAST && sends(cell); i++)
        send_new(cell, i, next++);
    cell->request_count = (int) (next - cell->requests);
}

static void requests_start(struct cell *cell)
{
    if (PERSISTENT == cell->how)
        MPI_Startall(cell->request_count, cell->requests);
    else
        requests_make(cell);
}

/* Both ends begin together, the receiver, as a rule, a little earlier. */
static void meet(void)
{
    char word = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank)
        MPI_Recv(&word, 1, MPI_BYTE, 1, COUNT_MAX, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (1 == rank)
        MPI_Send(&word, 1, MPI_BYTE, 0, COUNT_MAX, MPI_COMM_WORLD);
}

static void end_test(struct cell *cell, struct round *round, double start)
{
    int done = 0;

    while (!done && MPI_Wtime() - start < GIVE_UP_S) {
        double before;

        compute(cell->who->period_s);
        before = MPI_Wtime();
        MPI_Testall(cell->request_count, cell->requests, &done, MPI_STATUSES_IGNORE);
        round->lost_s += MPI_Wtime() - before;
        round->calls++;
    }
    round->taken_s = MPI_Wtime() - start;
}

static void end_wait(struct cell *cell, struct round *round, double start)
{
    MPI_Waitall(cell->request_count, cell->requests, MPI_STATUSES_IGNORE);
    round->calls++;
    round->taken_s = MPI_Wtime() - start;
}

static struct round end_do(struct cell *cell, enum end end, double start)
{
    struct round round = {0, 0, 0};

    switch (end) {
    case AWAY:
        compute(AWAY_S);
        round.taken_s = 0; /* the other end's time counts */
        break;
    case MEETS:
        compute(AWAY_S);
        MPI_Barrier(MPI_COMM_WORLD);
        end_wait(cell, &round, start);
        round.taken_s -= AWAY_S;
        break;
    case TESTS:
        end_test(cell, &round, start);
        break;
    default:
        end_wait(cell, &round, start);
        break;
    }
    return round;
}

static struct round cell_round(struct cell *cell)
{
    struct round round;
    double start;

    meet();
    start = MPI_Wtime();
    requests_start(cell);
    round = end_do(cell, 0 == rank ? cell->who->sender : cell->who->receiver, start);
    MPI_Waitall(cell->request_count, cell->requests, MPI_STATUSES_IGNORE);
    return round;
}

static void cell_check(const struct cell *cell)
{
    for (int i = 0; i < cell->count && cell->how < IBCAST && receives(cell); i++) {
        const char *end = cell->to[i] + cell->size - 1;

        if (cell->to[i][0] != 1 || (cell->type == MPI_BYTE && *end != 1))
            wrong("the bytes are not those that were sent, cell of", cell->who->name);
        memset(cell->to[i], 0, (size_t) cell->size);
    }
}

/* The first round is not counted: connections are made and buffers grow in it. */
static void cell_measure(struct cell *cell, const char *name)
{
    double taken[ROUNDS], lost[ROUNDS], calls[2][ROUNDS];
    int count = 0;

    if (PERSISTENT == cell->how)
        requests_make(cell);
    for (int i = -1; i < ROUNDS && (count < 1 || taken[count - 1] < GIVE_UP_S / 10); i++) {
        struct round round = cell_round(cell);
        double mine[4] = {round.taken_s, round.lost_s, 1 == rank ? (double) round.calls : 0,
                          0 == rank ? (double) round.calls : 0},
               most[4];

        cell_check(cell);
        MPI_Allreduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i < 0 && most[0] < GIVE_UP_S / 10)
            continue;
        taken[count] = most[0];
        lost[count] = most[1];
        calls[0][count] = most[2];
        calls[1][count++] = most[3];
    }
    if (PERSISTENT == cell->how)
        for (int i = 0; i < cell->request_count; i++)
            MPI_Request_free(&cell->requests[i]);
    if (0 == rank) {
        printf("%s %.7f %.0f %.0f %.7f\n", name, median(taken, count), median(calls[0], count),
               median(calls[1], count), median(lost, count));
        fflush(stdout);
    }
}

static void cell_name(struct cell *cell, const char *word, char who[16], char how[16])
{
    char layout[16], end;

    if (sscanf(word, "%15[^:]:%15[^:]:%15[^:]:%d:%ld%c", who, how, layout, &cell->count,
               &cell->size, &end) != 5 ||
        cell->count < 1 || cell->count > COUNT_MAX || cell->size < BLOCK_BYTES ||
        cell->size > 1L << 30)
        wrong("a cell is WHO:HOW:LAYOUT:COUNT:SIZE, not", word);
    cell->elements = (int) cell->size;
    cell->type = MPI_BYTE;
    if (0 == strcmp(layout, "blocks")) {
        cell->elements = 1;
        MPI_Type_vector((int) (cell->size / BLOCK_BYTES), BLOCK_BYTES, 2 * BLOCK_BYTES, MPI_BYTE,
                        &cell->type);
        MPI_Type_commit(&cell->type);
    } else if (strcmp(layout, "bytes") != 0) {
        wrong("there is no layout of that name in", word);
    }
}

static void cell_of(struct cell *cell, const char *word)
{
    char who[16], how[16];

    memset(cell, 0, sizeof *cell);
    cell_name(cell, word, who, how);
    for (size_t i = 0; i < sizeof whos / sizeof *whos; i++)
        if (0 == strcmp(who, whos[i].name))
            cell->who = &whos[i];
    while (cell->how < HOWS && strcmp(how, hows[cell->how]) != 0)
        cell->how++;
    if (NULL == cell->who || HOWS == cell->how)
        wrong("there is no end or call of that name in", word);
    for (int i = 0; i < cell->count; i++) {
        cell->from[i] = buffer_new(2 * (size_t) cell->size, 1);
        cell->to[i] = buffer_new(2 * (size_t) cell->size, 0);
    }
}

static void cell_free(struct cell *cell)
{
    for (int i = 0; i < cell->count; i++) {
        free(cell->from[i]);
        free(cell->to[i]);
    }
    if (cell->type != MPI_BYTE)
        MPI_Type_free(&cell->type);
}

int main(int argc, char **argv)
{
    static struct cell cell;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++) {
        cell_of(&cell, argv[i]);
        cell_measure(&cell, argv[i]);
        cell_free(&cell);
    }
    MPI_Finalize();
    return 0;
}
