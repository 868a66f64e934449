// SPDX-License-Identifier: BSD-3-Clause
// Random collective operations, checked: all ranks draw the same ones and compute what must come
// out of them. Plain MPI.
//
//   collective SEED ROUNDS [--by VARIABLE [MOST | --threads COUNT]]
//   collective SEED ROUNDS --differ COUNT [CALL CALL-OF-RANK-1] | --until-lost | --killed
//
// --by: fails where that MPI_T variable has counted none of them, or a message beside operations
// has not come after MOST of them. --threads: each of so many threads has a communicator and ROUNDS
// of its own. --differ: in the end rank 1 calls another operation than the others, of COUNT
// numbers. --until-lost: goes on until some processes are out of reach, which all must be told by
// an error. --killed: one rank dies between two operations or in one, by SEED, and the others are
// told.
#include <math.h>
#include <mpi.h>
#if OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define COMMS     10
#define BYTES_MAX 600000
#define GUARD     16

static int world_rank, world_size;
// Of what all ranks draw alike, and of this one alone.
static _Thread_local uint64_t shared_state, own_state;
static _Thread_local int round_number;
static _Thread_local const char *what = "";

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t) (*state >> 33) % below;
}

static uint32_t all_draw(uint32_t below)
{
    return draw(&shared_state, below);
}

// What rank gives as element i in this round.
static uint32_t given(int rank, size_t i)
{
    uint64_t x =
        (uint64_t) round_number * 1000003 + (uint64_t) rank * 7919 + i * 104729 + shared_state;
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t) (x >> 40);
}

static void fail(int rank, size_t i, double got, double wanted)
{
    fprintf(stderr, "round %d, %s: rank %d has %.17g as element %zu, and should have %.17g\n",
            round_number, what, rank, got, i, wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// --- buffers with guards ---------------------------------------------------------------------

struct buffer {
    unsigned char *memory, *bytes;
    size_t length;
};

static struct buffer buffer_new(size_t length)
{
    struct buffer buffer = {malloc(length + 2 * GUARD), NULL, length};
    memset(buffer.memory, 0xa5, length + 2 * GUARD);
    buffer.bytes = buffer.memory + GUARD;
    return buffer;
}

static void buffer_end(struct buffer *buffer)
{
    for (size_t i = 0; i < GUARD; i++)
        if (buffer->memory[i] != 0xa5 || buffer->bytes[buffer->length + i] != 0xa5)
            fail(world_rank, i, buffer->bytes[buffer->length + i], 0xa5);
    free(buffer->memory);
}

// --- operations whose result is the elements of one rank or of each ---------------------------

// Every other rank has the elements apart, in a type with gaps.
struct layout {
    MPI_Datatype type;
    size_t step; // in elements
};

static struct layout layout_of(bool apart)
{
    struct layout layout = {MPI_UINT32_T, 1};
    if (apart) {
        MPI_Type_create_resized(MPI_UINT32_T, 0, 3 * sizeof(uint32_t), &layout.type);
        MPI_Type_commit(&layout.type);
        layout.step = 3;
    }
    return layout;
}

static void layout_free(struct layout *layout)
{
    if (layout->step > 1)
        MPI_Type_free(&layout->type);
}

static uint32_t *element(const struct buffer *buffer, const struct layout *layout, size_t i)
{
    return (uint32_t *) (void *) buffer->bytes + i * layout->step;
}

static void bcast(MPI_Comm comm, int rank, int size, size_t count)
{
    int root = (int) all_draw((uint32_t) size);
    bool some_apart = all_draw(2);
    struct layout layout = layout_of(some_apart && (rank + root) % 2);
    struct buffer buffer = buffer_new(count * layout.step * sizeof(uint32_t));
    for (size_t i = 0; i < count && rank == root; i++)
        *element(&buffer, &layout, i) = given(root, i);
    MPI_Bcast(buffer.bytes, (int) count, layout.type, root, comm);
    for (size_t i = 0; i < count; i++)
        if (*element(&buffer, &layout, i) != given(root, i))
            fail(rank, i, *element(&buffer, &layout, i), given(root, i));
    for (size_t i = 0; i < count && layout.step > 1; i++)
        if (element(&buffer, &layout, i)[1] != 0xa5a5a5a5)
            fail(rank, i, element(&buffer, &layout, i)[1], 0xa5a5a5a5);
    buffer_end(&buffer);
    layout_free(&layout);
}

// `each`: MPI_Alltoall, where what rank gives to `to` has the number of that.
static void exchange(MPI_Comm comm, int rank, int size, size_t count, bool each)
{
    size_t ranks = (size_t) size, sent = each ? ranks * count : count;
    bool in_place = all_draw(3) == 0, some_apart = all_draw(2);
    // Open MPI's MPI_Alltoall of 12 ranks and more wants one layout in both buffers.
    struct layout layout = layout_of(some_apart && rank % 2 && (!each || size < 12));
    struct buffer from = buffer_new(sent * sizeof(uint32_t));
    struct buffer to = buffer_new(ranks * count * layout.step * sizeof(uint32_t));
    const struct layout plain = {MPI_UINT32_T, 1};
    for (size_t i = 0; i < sent; i++)
        if (in_place)
            *element(&to, &layout, each ? i : (size_t) rank * count + i) = given(rank, i);
        else
            *element(&from, &plain, i) = given(rank, i);
    const void *give = in_place ? MPI_IN_PLACE : from.bytes;
    if (each)
        MPI_Alltoall(give, (int) count, MPI_UINT32_T, to.bytes, (int) count, layout.type, comm);
    else
        MPI_Allgather(give, (int) count, MPI_UINT32_T, to.bytes, (int) count, layout.type, comm);
    for (size_t of = 0; of < ranks; of++)
        for (size_t i = 0; i < count; i++) {
            uint32_t got = *element(&to, &layout, of * count + i);
            uint32_t wanted = given((int) of, each ? (size_t) rank * count + i : i);
            if (got != wanted)
                fail(rank, of * count + i, got, wanted);
        }
    buffer_end(&from);
    buffer_end(&to);
    layout_free(&layout);
}

// Each gives `count` elements, and the root gets all.
static void gather(MPI_Comm comm, int rank, int size, size_t count)
{
    int root = (int) all_draw((uint32_t) size);
    bool in_place = all_draw(3) == 0 && rank == root, some_apart = all_draw(2);
    size_t first = in_place ? (size_t) rank * count : 0;
    struct layout layout = layout_of(some_apart && rank % 2);
    struct buffer from = buffer_new(count * layout.step * sizeof(uint32_t));
    struct buffer to = buffer_new((size_t) size * count * layout.step * sizeof(uint32_t));
    for (size_t i = 0; i < count; i++)
        *element(in_place ? &to : &from, &layout, first + i) = given(rank, i);
    MPI_Gather(in_place ? MPI_IN_PLACE : from.bytes, (int) count, layout.type,
               rank == root ? to.bytes : NULL, (int) count, layout.type, root, comm);
    for (size_t i = 0; i < (size_t) size * count && rank == root; i++)
        if (*element(&to, &layout, i) != given((int) (i / count), i % count))
            fail(rank, i, *element(&to, &layout, i), given((int) (i / count), i % count));
    buffer_end(&from);
    buffer_end(&to);
    layout_free(&layout);
}

// --- reductions ----------------------------------------------------------------------------------

// x -> a x + b, one after the other: the order counts, and each rank does, once.
struct affine {
    uint32_t a, b;
};

static struct affine after(struct affine first, struct affine then)
{
    return (struct affine){then.a * first.a, then.a * first.b + then.b};
}

static void affine_op(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    const struct affine *x = in;
    struct affine *y = in_out;
    (void) type;
    for (int i = 0; i < *count; i++)
        y[i] = after(x[i], y[i]);
}

static struct affine affine_given(int rank, size_t i)
{
    return (struct affine){given(rank, i) | 1, given(rank, i + 500000)};
}

struct located {
    double value;
    int rank;
};

static void affine_set(void *at, int rank, size_t i)
{
    ((struct affine *) at)[i] = affine_given(rank, i);
}

static bool affine_is(const void *at, int size, size_t i)
{
    struct affine all = affine_given(0, i), got = ((const struct affine *) at)[i];
    for (int rank = 1; rank < size; rank++)
        all = after(all, affine_given(rank, i));
    return got.a == all.a && got.b == all.b;
}

static void double_set(void *at, int rank, size_t i)
{
    ((double *) at)[i] = given(rank, i) % 4096;
}

static bool double_is(const void *at, int size, size_t i)
{
    double all = 0;
    for (int rank = 0; rank < size; rank++)
        all += given(rank, i) % 4096;
    return ((const double *) at)[i] == all;
}

static void located_set(void *at, int rank, size_t i)
{
    ((struct located *) at)[i].value = given(rank, i) % 16;
    ((struct located *) at)[i].rank = rank;
}

static bool located_is(const void *at, int size, size_t i)
{
    int best = 0;
    for (int rank = 1; rank < size; rank++)
        if (given(rank, i) % 16 > given(best, i) % 16)
            best = rank;
    const struct located *got = &((const struct located *) at)[i];
    return got->value == given(best, i) % 16 && got->rank == best;
}

static MPI_Datatype affine_type;
static MPI_Op affine_operation;

static void reduce(MPI_Comm comm, int rank, int size, size_t count, bool all)
{
    static const struct {
        size_t bytes;
        void (*set)(void *at, int rank, size_t i);
        bool (*is)(const void *at, int size, size_t i);
    } kinds[] = {{sizeof(struct affine), affine_set, affine_is},
                 {sizeof(double), double_set, double_is},
                 {sizeof(struct located), located_set, located_is}};
    uint32_t kind = all_draw(3);
    MPI_Datatype type = kind == 0 ? affine_type : kind == 1 ? MPI_DOUBLE : MPI_DOUBLE_INT;
    MPI_Op op = kind == 0 ? affine_operation : kind == 1 ? MPI_SUM : MPI_MAXLOC;
    int root = all ? rank : (int) all_draw((uint32_t) size);
    bool in_place = all_draw(3) == 0 && rank == root;
    struct buffer from = buffer_new(count * kinds[kind].bytes);
    struct buffer to = buffer_new(count * kinds[kind].bytes);
    for (size_t i = 0; i < count; i++)
        kinds[kind].set(in_place ? to.bytes : from.bytes, rank, i);
    const void *give = in_place ? MPI_IN_PLACE : from.bytes;
    if (all)
        MPI_Allreduce(give, to.bytes, (int) count, type, op, comm);
    else
        MPI_Reduce(give, to.bytes, (int) count, type, op, root, comm);
    for (size_t i = 0; i < count && rank == root; i++)
        if (!kinds[kind].is(to.bytes, size, i))
            fail(rank, i, kind, -1);
    buffer_end(&from);
    buffer_end(&to);
}

// --- barriers: no rank leaves before all have come
// -------------------------------------------------

static void barrier(MPI_Comm comm, int rank, int size)
{
    struct timespec now;
    double came, left, *all = malloc(2 * (size_t) size * sizeof(double));
    clock_gettime(CLOCK_MONOTONIC, &now);
    came = (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    MPI_Barrier(comm);
    clock_gettime(CLOCK_MONOTONIC, &now);
    left = (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    double mine[2] = {came, left};
    MPI_Gather(mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, comm);
    for (int a = 0; a < size && rank == 0; a++)
        for (int b = 0; b < size; b++)
            if (all[2 * a] > all[2 * b + 1])
                fail(b, 0, all[2 * b + 1], all[2 * a]);
    free(all);
}

// --- the program ---------------------------------------------------------------------------------

// Ranks come at different times: now and then one is far behind.
static void dawdle(void)
{
    if (draw(&own_state, 50) == 0) {
        const struct timespec time = {.tv_nsec = draw(&own_state, 2000000)};
        nanosleep(&time, NULL);
    }
}

// Of elements of up to 8 bytes. coll/node takes up to 64 KiB a turn, and divides a reduction from
// the fourth turn on.
static size_t count_draw(size_t most)
{
    if (all_draw(25) == 0)
        return 0;
    if (all_draw(20) == 0)
        return 8192 * (1 + all_draw(8)) - 1 + all_draw(3);
    switch (all_draw(4)) {
    case 0:
        return 1 + all_draw(4);
    case 1:
        return 1 + all_draw(200);
    case 2:
        return 1 + all_draw(4000) % most;
    default:
        return all_draw(10) ? 1 + all_draw(30) : 1 + all_draw((uint32_t) most);
    }
}

// Across nodes a sum of 2 MiB and more goes in pieces.
static size_t sums_draw(size_t usual)
{
    return usual > 0 && all_draw(10) == 0 ? 262100 + all_draw(150000) : usual;
}

// All give elements of no bytes, which a PML and its collectives see, while Open MPI returns at
// once for a count of 0. True: that was the operation. Not a broadcast: coll/tuned divides by their
// length there.
static bool nothing(MPI_Comm comm, int root, uint32_t kind)
{
    enum { COUNT = 3 };
    struct buffer from = buffer_new(0), to = buffer_new(0);
    MPI_Datatype type;
    MPI_Type_contiguous(0, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    if (kind == 1)
        MPI_Allgather(from.bytes, COUNT, type, to.bytes, COUNT, type, comm);
    else if (kind == 2)
        MPI_Alltoall(from.bytes, COUNT, type, to.bytes, COUNT, type, comm);
    else if (kind == 5)
        MPI_Gather(from.bytes, COUNT, type, to.bytes, COUNT, type, root, comm);
    MPI_Type_free(&type);
    buffer_end(&from);
    buffer_end(&to);
    return kind == 1 || kind == 2 || kind == 5;
}

static void one_round(MPI_Comm comm)
{
    static const char *const names[] = {"MPI_Bcast",     "MPI_Allgather", "MPI_Alltoall",
                                        "MPI_Allreduce", "MPI_Reduce",    "MPI_Gather",
                                        "MPI_Barrier"};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    uint32_t kind = all_draw(7);
    size_t count = count_draw(BYTES_MAX / sizeof(double));
    what = names[kind];
    dawdle();
    if (count == 0 && all_draw(2) && nothing(comm, (int) all_draw((uint32_t) size), kind))
        return;
    switch (kind) {
    case 0:
        bcast(comm, rank, size, count);
        break;
    case 1:
        exchange(comm, rank, size, count, false);
        break;
    case 2:
        exchange(comm, rank, size, (count + (size_t) size - 1) / (size_t) size, true);
        break;
    case 3:
        reduce(comm, rank, size, sums_draw(count), true);
        break;
    case 4:
        reduce(comm, rank, size, count, false);
        break;
    case 5:
        gather(comm, rank, size, count);
        break;
    default:
        barrier(comm, rank, size);
    }
}

static void states_begin(uint64_t seed)
{
    shared_state = seed;
    own_state = seed * 31 + (uint64_t) world_rank;
}

static void all_rounds(MPI_Comm *comms, int rounds)
{
    for (round_number = 0; round_number < rounds; round_number++) {
        int i = (int) all_draw(COMMS);
        if (all_draw(100) == 0) { // another one: whole, in another order, or of some ranks
            MPI_Comm_free(&comms[i]);
            int key = all_draw(2) ? world_rank : -world_rank;
            MPI_Comm_split(MPI_COMM_WORLD, all_draw(3) ? 0 : world_rank % 2, key, &comms[i]);
        }
        one_round(comms[i]);
    }
}

struct thread {
    pthread_t id;
    MPI_Comm comm;
    uint64_t seed;
    int rounds;
};

static void *thread_rounds(void *with)
{
    const struct thread *thread = with;
    states_begin(thread->seed);
    for (round_number = 0; round_number < thread->rounds; round_number++)
        one_round(thread->comm);
    return NULL;
}

static void rounds_in_threads(MPI_Comm *comms, int count, int rounds)
{
    struct thread threads[COMMS];
    for (int i = 0; i < count && i < COMMS; i++) {
        threads[i] = (struct thread){0, comms[i], shared_state + (uint64_t) i, rounds};
        if (pthread_create(&threads[i].id, NULL, thread_rounds, &threads[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < count && i < COMMS; i++)
        pthread_join(threads[i].id, NULL);
}

// The operations that `variable` counts from here on.
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counted = MPI_T_PVAR_HANDLE_NULL;

static void count_begin(const char *variable)
{
    int index, count, threads;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &threads);
    MPI_T_pvar_session_create(&session);
    if (!MPI_T_pvar_get_index(variable, MPI_T_PVAR_CLASS_COUNTER, &index))
        MPI_T_pvar_handle_alloc(session, index, NULL, &counted, &count);
}

static unsigned long long count_end(void)
{
    unsigned long long value = 0;
    if (counted != MPI_T_PVAR_HANDLE_NULL)
        MPI_T_pvar_read(session, counted, &value);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

// One rank is so late that the others look after those that are missing: what they wait for is free
// memory in the first operations, a result in the last.
static void one_is_late(void)
{
    const struct timespec time = {.tv_nsec = 350000000};
    what = "MPI_Bcast with a late rank";
    if (world_rank == world_size - 1)
        nanosleep(&time, NULL);
    for (int i = 0; i < 20; i++) {
        uint32_t word[100] = {world_rank ? 0 : (uint32_t) i};
        MPI_Bcast(word, 100, MPI_UINT32_T, 0, MPI_COMM_WORLD);
        if (word[0] != (uint32_t) i)
            fail(world_rank, 0, word[0], i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// A program may branch by a result: it is the same in all, also where the operation depends on the
// order of its operands, as that of numbers with one that is none.
static void results_are_alike(void)
{
    double results[64];
    what = "MPI_Allreduce in place of NaN";
    for (int which = 0; which < world_size && world_size <= 64; which++) {
        double result = which == world_rank ? NAN : world_rank;
        MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allgather(&result, 1, MPI_DOUBLE, results, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int rank = 0; rank < world_size; rank++)
            if (memcmp(&results[rank], &results[0], sizeof(double)) != 0)
                fail(rank, (size_t) which, results[rank], results[0]);
    }
}

// Rank 0's message goes on while all only add up whether it has come, so many times.
static void messages_move_meanwhile(int most)
{
    static char much[200000];
    MPI_Request request = MPI_REQUEST_NULL;
    int all_came = 0;
    what = "MPI_Allreduce beside a message";
    for (int i = 0; i < 10; i++) // they come at the same time
        MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        MPI_Isend(much, sizeof(much), MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    else if (world_rank == 1)
        MPI_Irecv(much, sizeof(much), MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < most && !all_came; i++) {
        int came = 1;
        if (world_rank == 1)
            MPI_Test(&request, &came, MPI_STATUS_IGNORE);
        MPI_Allreduce(&came, &all_came, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    if (!all_came)
        fail(0, 0, 0, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// False: no error has come in time.
static bool sums_until_lost(void)
{
    const double most_s = 60;
    double begin = MPI_Wtime();
    int one = 1, sum, status = MPI_SUCCESS;
    static char much[BYTES_MAX];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("sums until some are lost\n");
    fflush(stdout);
    while (status == MPI_SUCCESS && MPI_Wtime() - begin < most_s) {
        status = MPI_Bcast(much, BYTES_MAX, MPI_BYTE, 1, MPI_COMM_WORLD);
        if (status == MPI_SUCCESS)
            status = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d: %s\n", world_rank, status == MPI_SUCCESS ? "no error" : "an error");
    return status != MPI_SUCCESS;
}

static void die(int number)
{
    (void) number;
    raise(SIGKILL);
}

// Goes by the memory of the node in several turns, in ranges, or in one turn.
static int sum_or_alike(void)
{
    static double in[BYTES_MAX / sizeof(double)], out[BYTES_MAX / sizeof(double)];
    int count = 1 + (int) all_draw(BYTES_MAX / sizeof(double));
    int root = (int) all_draw((uint32_t) world_size), status;
    switch (all_draw(5)) {
    case 0:
        return MPI_Bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    case 1:
        return MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    case 2:
        return MPI_Barrier(MPI_COMM_WORLD);
    default:
        in[count - 1] = 1;
        status = MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (status == MPI_SUCCESS && out[count - 1] != world_size)
            fail(world_rank, (size_t) count - 1, out[count - 1], world_size);
        in[count - 1] = 0;
        return status;
    }
}

// Of an error that says so, where MPI can go on: without them.
static void go_on_without_the_dead(int status)
{
#if OMPI_MAJOR_VERSION >= 5
    MPI_Comm others;
    int class, size, rank;
    MPI_Error_class(status, &class);
    if (class != MPIX_ERR_PROC_FAILED)
        fail(world_rank, 0, class, MPIX_ERR_PROC_FAILED);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &others);
    MPI_Comm_size(others, &size);
    if (size != world_size - 1)
        fail(world_rank, 0, size, world_size - 1);
    MPI_Comm_rank(others, &rank);
    MPI_Barrier(others);
    if (rank == 0)
        printf("the %d others went on\n", size);
    fflush(stdout);
    MPI_Comm_free(&others);
#else
    const struct timespec time = {.tv_nsec = 300000000}; // for the others to say it
    printf("rank %d: %s\n", world_rank, status == MPI_SUCCESS ? "no error" : "an error");
    fflush(stdout);
    nanosleep(&time, NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
}

static void one_is_killed(int seed)
{
    const double most_s = 20;
    bool dies = world_rank == seed / 2 % world_size, by_timer = seed % 2;
    int before = (int) draw(&own_state, 200), status = MPI_SUCCESS;
    struct itimerval time = {.it_value.tv_usec = 1000 + (int) draw(&own_state, 50000)};
    what = "MPI_Allreduce until one is killed";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    signal(SIGALRM, die);
    if (dies && by_timer)
        setitimer(ITIMER_REAL, &time, NULL);
    double begin = MPI_Wtime();
    for (int i = 0; status == MPI_SUCCESS && MPI_Wtime() - begin < most_s; i++) {
        if (dies && !by_timer && i == before)
            raise(SIGKILL);
        status = sum_or_alike();
    }
    go_on_without_the_dead(status);
}

static void call(const char *name, int count, int *in, int *out)
{
    if (strcmp(name, "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(name, "bcast") == 0)
        MPI_Bcast(in, count, MPI_INT, 0, MPI_COMM_WORLD);
    else if (strcmp(name, "short-bcast") == 0)
        MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else if (strcmp(name, "reduce") == 0)
        MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// Rank 1 calls what the others do not, before them or behind them. Who may leave an operation
// before the others have come waits for all in the next one.
static void calls_differ(const char *others, const char *rank_1, int count, bool is_last, int *in,
                         int *out)
{
    const struct timespec time = {.tv_nsec = 200000000};
    if ((world_rank == 1) == is_last)
        nanosleep(&time, NULL);
    call(world_rank == 1 ? rank_1 : others, count, in, out);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    // Never freed by this program. What is made for it comes before it in MPI_Finalize.
    MPI_Comm comms[COMMS], left;
    bool failed = false;
    if (argc < 3)
        return 2;
    const char *variable = argc > 4 && strcmp(argv[3], "--by") == 0 ? argv[4] : NULL;
    int threads = variable && argc > 6 && strcmp(argv[5], "--threads") == 0 ? atoi(argv[6]) : 0;
    int level = threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, level_given;
    MPI_Init_thread(&argc, &argv, level, &level_given);
    if (level_given < level)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (variable)
        count_begin(variable);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    states_begin(strtoull(argv[1], NULL, 10));
    if (argc > 3 && strcmp(argv[3], "--killed") == 0) {
        one_is_killed(atoi(argv[1]));
        MPI_Finalize();
        return 0;
    }
    MPI_Type_contiguous(2, MPI_UINT32_T, &affine_type);
    MPI_Type_commit(&affine_type);
    MPI_Op_create(affine_op, 0, &affine_operation);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_dup(MPI_COMM_WORLD, &left);
    if (threads > 0)
        rounds_in_threads(comms, threads, atoi(argv[2]));
    else
        all_rounds(comms, atoi(argv[2]));
    one_is_late();
    for (int i = 0; i < 20 && world_size > 1; i++)
        messages_move_meanwhile(variable && argc > 5 && !threads ? atoi(argv[5]) : 1000000);
    if (variable)
        results_are_alike();
    if (argc > 4 && strcmp(argv[3], "--differ") == 0) {
        static int in[BYTES_MAX], out[BYTES_MAX];
        for (int i = 0; i < 10; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        calls_differ(argc > 6 ? argv[5] : "barrier", argc > 6 ? argv[6] : "allreduce",
                     atoi(argv[4]), atoi(argv[1]) % 2 == 0, in, out);
    }
    bool is_lost = argc > 3 && strcmp(argv[3], "--until-lost") == 0;
    if (is_lost)
        failed = !sums_until_lost();
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    for (int i = 0; i < 6 && !is_lost; i++)
        MPI_Barrier(left);
    unsigned long long operations = variable ? count_end() : 0;
    if (variable && world_rank == 0)
        printf("%llu of %s operations counted by %s\n", operations, argv[2], variable);
    if (variable && !operations)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Op_free(&affine_operation);
    MPI_Type_free(&affine_type);
    MPI_Finalize();
    return failed;
}
