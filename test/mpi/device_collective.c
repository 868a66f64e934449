/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective operation on device memory leaves the bytes that it leaves in host memory:
 * blocking, nonblocking and persistent, in place or not, with one buffer on a device or both, on
 * communicators of each kind; and so do the calls that pack and unpack. What is compared is the
 * whole receive buffer, what no process writes to as well. Needs libcuda.so.1, as test/mpi/device.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/driver.h"
#include "test/fake/cuda_calls.h"
#include "test/mpi/suite.h"

/* Before Open MPI 5.0 persistent collectives are an extension, with names of its own. */
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum { MOST_RANKS = 16 };
static MPI_Comm world; /* of all processes */
static int world_rank, failures, calls;

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device_collective: %s: %s\n", what,
            driver_words(result, words, sizeof(words)));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *device_new(size_t size)
{
    driver_ptr address = 0;
    must(driver.mem_alloc(&address, size), "cuMemAlloc");
    return (void *) (uintptr_t) address;
}

static void device_free(void *bytes)
{
    must(driver.mem_free((driver_ptr) (uintptr_t) bytes), "cuMemFree");
}

static void copy(void *to, const void *from, size_t size)
{
    must(cuda_copy((driver_ptr) (uintptr_t) to, (driver_ptr) (uintptr_t) from, size), "cuMemcpy");
}

/* --- what the calls of one round share --- */

static struct {
    MPI_Comm comm;
    int rank, others, root; /* of the communicator; what is given as the root */
    bool is_root, is_inter;
    int sources, targets; /* neighbours */
    int count;            /* elements for each process, where all have the same */
    MPI_Datatype type;
    MPI_Op op;
    int own, own_of_all;                        /* elements of this process, in those with counts */
    int counts[MOST_RANKS], displs[MOST_RANKS]; /* by process */
    int pairs[MOST_RANKS];                      /* by process, from this one to it and back */
    int bytes[MOST_RANKS];                      /* where those of a process begin */
    MPI_Aint addresses[MOST_RANKS];             /* the same */
    int same[MOST_RANKS];                       /* to neighbours */
    MPI_Datatype types[MOST_RANKS];
    size_t size; /* of a buffer that all of it fits into */
} now;

static void round_set(MPI_Comm comm, int count, MPI_Datatype type)
{
    MPI_Aint low, extent;
    int step = count + MOST_RANKS + 3;
    int inter, size;

    now.comm = comm;
    now.count = count;
    now.type = type;
    now.op = MPI_SUM;
    MPI_Comm_rank(comm, &now.rank);
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_size(comm, &size);
    now.others = size;
    now.is_inter = inter;
    now.root = size - 1;
    now.is_root = now.rank == now.root;
    if (inter) {
        MPI_Comm_remote_size(comm, &now.others);
        now.is_root = world_rank == 0;
        now.root = now.is_root ? MPI_ROOT : world_rank % 2 == 0 ? MPI_PROC_NULL : 0;
    }
    MPI_Type_get_extent(type, &low, &extent);
    now.own = count + now.rank;
    for (int i = 0; i < MOST_RANKS; i++) {
        now.counts[i] = count + i;
        now.displs[i] = i * step; /* the first is 0: coll/self of Open MPI takes each for 0 */
        now.pairs[i] = count + (now.rank + i) % 3;
        now.addresses[i] = now.displs[i] * extent;
        now.bytes[i] = (int) now.addresses[i];
        now.same[i] = count;
    }
    now.size = (size_t) (step * (MOST_RANKS + 3)) * (size_t) extent;
}

static void types_set(void)
{
    for (int i = 0; i < MOST_RANKS; i++)
        now.types[i] = now.type;
}

/* As Open MPI's Fortran does when a call has returned. It reads types itself that are derived. */
static void types_spoil(void)
{
    if (now.type == MPI_INT)
        memset(now.types, 0xa5, sizeof(now.types));
}

/* --- the operations --- */

enum mode { BLOCKING, NONBLOCKING, REPEATED, MODES };
static const char *const mode_names[] = {"blocking", "nonblocking", "persistent"};

#define ARGUMENTS(...) __VA_ARGS__
#define OPERATION(name, nonblocking, arguments)                                                    \
    static int name(enum mode mode, const void *sbuf, void *rbuf)                                  \
    {                                                                                              \
        MPI_Request request = MPI_REQUEST_NULL;                                                    \
        int error;                                                                                 \
        (void) sbuf;                                                                               \
        if (mode == BLOCKING)                                                                      \
            return MPI_##name(ARGUMENTS arguments, now.comm);                                      \
        if (mode == NONBLOCKING) {                                                                 \
            error = MPI_##nonblocking(ARGUMENTS arguments, now.comm, &request);                    \
            types_spoil();                                                                         \
            return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);                          \
        }                                                                                          \
        error = PERSISTENT(name)(ARGUMENTS arguments, now.comm, MPI_INFO_NULL, &request);          \
        types_spoil();                                                                             \
        for (int i = 0; i < 2 && !error; i++) {                                                    \
            error = MPI_Start(&request);                                                           \
            error = error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);                         \
        }                                                                                          \
        return error ? error : MPI_Request_free(&request);                                         \
    }

OPERATION(Allreduce, Iallreduce, (sbuf, rbuf, now.count, now.type, now.op))
OPERATION(Reduce, Ireduce, (sbuf, rbuf, now.count, now.type, now.op, now.root))
OPERATION(Scan, Iscan, (sbuf, rbuf, now.count, now.type, now.op))
OPERATION(Exscan, Iexscan, (sbuf, rbuf, now.count, now.type, now.op))
OPERATION(Reduce_scatter, Ireduce_scatter, (sbuf, rbuf, now.counts, now.type, now.op))
OPERATION(Reduce_scatter_block, Ireduce_scatter_block, (sbuf, rbuf, now.count, now.type, now.op))
OPERATION(Bcast, Ibcast, (rbuf, now.count, now.type, now.root))
OPERATION(Allgather, Iallgather, (sbuf, now.count, now.type, rbuf, now.count, now.type))
OPERATION(Allgatherv, Iallgatherv,
          (sbuf, now.own, now.type, rbuf, now.counts, now.displs, now.type))
OPERATION(Gather, Igather, (sbuf, now.count, now.type, rbuf, now.count, now.type, now.root))
OPERATION(Gatherv, Igatherv,
          (sbuf, now.own, now.type, rbuf, now.counts, now.displs, now.type, now.root))
OPERATION(Scatter, Iscatter, (sbuf, now.count, now.type, rbuf, now.count, now.type, now.root))
OPERATION(Scatterv, Iscatterv,
          (sbuf, now.counts, now.displs, now.type, rbuf, now.own, now.type, now.root))
OPERATION(Alltoall, Ialltoall, (sbuf, now.count, now.type, rbuf, now.count, now.type))
OPERATION(Alltoallv, Ialltoallv,
          (sbuf, now.pairs, now.displs, now.type, rbuf, now.pairs, now.displs, now.type))
OPERATION(Alltoallw, Ialltoallw,
          (sbuf, now.pairs, now.bytes, now.types, rbuf, now.pairs, now.bytes, now.types))
OPERATION(Neighbor_allgather, Ineighbor_allgather,
          (sbuf, now.count, now.type, rbuf, now.count, now.type))
OPERATION(Neighbor_allgatherv, Ineighbor_allgatherv,
          (sbuf, now.count, now.type, rbuf, now.same, now.displs, now.type))
OPERATION(Neighbor_alltoall, Ineighbor_alltoall,
          (sbuf, now.count, now.type, rbuf, now.count, now.type))
OPERATION(Neighbor_alltoallv, Ineighbor_alltoallv,
          (sbuf, now.same, now.displs, now.type, rbuf, now.same, now.displs, now.type))
OPERATION(Neighbor_alltoallw, Ineighbor_alltoallw,
          (sbuf, now.same, now.addresses, now.types, rbuf, now.same, now.addresses, now.types))

static int Reduce_local(enum mode mode, const void *sbuf, void *rbuf)
{
    return mode == BLOCKING ? MPI_Reduce_local(sbuf, rbuf, now.count, now.type, now.op)
                            : MPI_SUCCESS;
}

enum place { NOWHERE, SENT, SENT_AT_ROOT, RECEIVED_AT_ROOT }; /* what may be MPI_IN_PLACE */

struct operation {
    const char *name;
    int (*call)(enum mode, const void *, void *);
    enum place place;
    bool computes, is_of_groups; /* for numbers alone; not between two groups */
};

#define ROW(name, ...)                                                                             \
    {                                                                                              \
        "MPI_" #name, name, __VA_ARGS__                                                            \
    }
static const struct operation operations[] = {
    ROW(Allreduce, SENT, true, false),
    ROW(Reduce, SENT_AT_ROOT, true, false),
    ROW(Scan, SENT, true, true),
    ROW(Exscan, SENT, true, true),
    ROW(Reduce_scatter, SENT, true, false),
    ROW(Reduce_scatter_block, SENT, true, false),
    ROW(Reduce_local, NOWHERE, true, true),
    ROW(Bcast, NOWHERE, false, false),
    ROW(Allgather, SENT, false, false),
    ROW(Allgatherv, SENT, false, false),
    ROW(Gather, SENT_AT_ROOT, false, false),
    ROW(Gatherv, SENT_AT_ROOT, false, false),
    ROW(Scatter, RECEIVED_AT_ROOT, false, false),
    ROW(Scatterv, RECEIVED_AT_ROOT, false, false),
    ROW(Alltoall, SENT, false, false),
    ROW(Alltoallv, SENT, false, false),
    ROW(Alltoallw, SENT, false, false),
};
static const struct operation neighbour_operations[] = {
    ROW(Neighbor_allgather, NOWHERE, false, true), ROW(Neighbor_allgatherv, NOWHERE, false, true),
    ROW(Neighbor_alltoall, NOWHERE, false, true),  ROW(Neighbor_alltoallv, NOWHERE, false, true),
    ROW(Neighbor_alltoallw, NOWHERE, false, true),
};

/* --- the comparison --- */

static void fill(int *numbers, size_t size, int seed)
{
    for (size_t i = 0; i < size / sizeof(int); i++)
        numbers[i] = (int) ((i * 7 + (size_t) seed * 31) % 1009);
}

/* Memory that fills the gaps in the heap, so that what is allocated next has no gaps between. */
static struct {
    bool is_wanted;
    size_t count;
    void *kept[8192];
} filling;

static void heap_fill(void)
{
    enum { STEP = 16, MOST = 1024, OF_EACH_SIZE = 16 };
    for (size_t size = STEP / 2; size < MOST; size += STEP)
        for (int i = 0; i < OF_EACH_SIZE && filling.count < 8192; i++)
            filling.kept[filling.count++] = malloc(size);
}

/* On buffers of which `devices` says, by bits, which lie on a device; the receive buffer then
 * holds what is left. */
static int call_on(const struct operation *operation, enum mode mode, int devices, bool in_place,
                   const int *sent, int *received)
{
    void *sbuf = (void *) sent, *rbuf = received;
    if (devices & 1)
        copy(sbuf = device_new(now.size), sent, now.size);
    if (devices & 2)
        copy(rbuf = device_new(now.size), received, now.size);
    bool is_place_sent =
        operation->place == SENT || (operation->place == SENT_AT_ROOT && now.is_root);
    bool is_place_received = operation->place == RECEIVED_AT_ROOT && now.is_root;
    if (filling.is_wanted)
        heap_fill();
    types_set();
    int error = operation->call(mode, in_place && is_place_sent ? MPI_IN_PLACE : sbuf,
                                in_place && is_place_received ? MPI_IN_PLACE : rbuf);
    if (devices & 1)
        device_free(sbuf);
    if (devices & 2) {
        copy(received, rbuf, now.size);
        device_free(rbuf);
    }
    return error;
}

static void compare(const struct operation *operation, enum mode mode, int devices, bool in_place)
{
    int *sent = malloc(now.size), *wanted = malloc(now.size), *came = malloc(now.size);
    fill(sent, now.size, world_rank + 1);
    fill(wanted, now.size, world_rank + 100);
    fill(came, now.size, world_rank + 100);
    call_on(operation, mode, 0, in_place, sent, wanted);
    int error = call_on(operation, mode, devices, in_place, sent, came);
    calls++;
    size_t at = 0;
    while (at < now.size / sizeof(int) && came[at] == wanted[at])
        at++;
    if ((error || at < now.size / sizeof(int)) && failures++ < 20)
        fprintf(stderr,
                "device_collective: rank %d: %s, %s%s, %d elements, on devices: %d%s: error %d, "
                "number %zu is %d, not %d\n",
                world_rank, operation->name, mode_names[mode], in_place ? ", in place" : "",
                now.count, devices, now.is_inter ? ", between groups" : "", error, at,
                came[at % (now.size / sizeof(int))], wanted[at % (now.size / sizeof(int))]);
    free(sent);
    free(wanted);
    free(came);
}

static void all_of(const struct operation *table, size_t rows, MPI_Comm comm, int count,
                   MPI_Datatype type)
{
    round_set(comm, count, type);
    for (size_t i = 0; i < rows; i++) {
        if ((table[i].computes && type != MPI_INT) || (table[i].is_of_groups && now.is_inter))
            continue;
        for (int mode = 0; mode < MODES; mode++)
            for (int devices = 1; devices < 4; devices++)
                for (int in_place = 0; in_place < 2; in_place++)
                    if (!in_place || (table[i].place != NOWHERE && !now.is_inter))
                        compare(&table[i], (enum mode) mode, devices, in_place);
    }
}

#define ALL_OF(table, comm, count, type)                                                           \
    all_of(table, sizeof(table) / sizeof((table)[0]), comm, count, type)

/* --- chapters --- */

/* Three of eight numbers, the elements one number closer than their extent would have it. */
static MPI_Datatype type_with_gaps(void)
{
    MPI_Datatype blocks, type;
    int lengths[2] = {1, 2}, at[2] = {1, 5};
    MPI_Type_indexed(2, lengths, at, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, 8 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&blocks);
    return type;
}

static void chapter_operations(void)
{
    MPI_Datatype gaps = type_with_gaps();
    ALL_OF(operations, world, 1, MPI_INT);
    ALL_OF(operations, world, 0, MPI_INT);
    ALL_OF(operations, world, 20000, MPI_INT);
    ALL_OF(operations, world, 100, gaps);
    ALL_OF(operations, MPI_COMM_SELF, 100, MPI_INT);
    MPI_Type_free(&gaps);
}

static void chapter_groups(void)
{
    MPI_Comm half, both;
    MPI_Comm_split(world, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, world, 1 - world_rank % 2, 3, &both);
    ALL_OF(operations, both, 100, MPI_INT);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void chapter_neighbours(void)
{
    MPI_Datatype gaps = type_with_gaps();
    MPI_Comm line, graph;
    int ranks, periodic = 0;
    MPI_Comm_size(world, &ranks);
    int before = (world_rank + ranks - 1) % ranks,
        behind[2] = {(world_rank + 1) % ranks, world_rank};
    /* Its ends have a neighbour each that is none. */
    MPI_Cart_create(world, 1, &ranks, &periodic, 0, &line);
    int from[2] = {before, world_rank}, weights[2] = {1, 1};
    MPI_Dist_graph_create_adjacent(world, 2, from, weights, 2, behind, weights, MPI_INFO_NULL, 0,
                                   &graph);
    ALL_OF(neighbour_operations, line, 100, MPI_INT);
    ALL_OF(neighbour_operations, graph, 5000, MPI_INT);
    ALL_OF(neighbour_operations, graph, 30, gaps);
    MPI_Comm_free(&line);
    MPI_Comm_free(&graph);
    MPI_Type_free(&gaps);
}

static void add_pairs(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < 2 * *count; i++)
        ((int *) in_out)[i] += ((int *) in)[i];
}

/* Many at a time, of a datatype and with an operator that the program frees while they are under
 * way, waited for in the other order. */
static void chapter_under_way(void)
{
    enum { MANY = 12, PAIRS = 3000 };
    MPI_Request requests[MANY];
    int *in[MANY], *out[MANY], numbers[2 * PAIRS], ranks;
    MPI_Datatype pair;
    MPI_Op add;
    MPI_Comm_size(world, &ranks);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add_pairs, 1, &add);
    for (int i = 0; i < MANY; i++) {
        in[i] = device_new(sizeof(numbers));
        out[i] = device_new(sizeof(numbers));
        for (int j = 0; j < 2 * PAIRS; j++)
            numbers[j] = i + j % 100;
        copy(in[i], numbers, sizeof(numbers));
        MPI_Iallreduce(in[i], out[i], PAIRS, pair, add, world, &requests[i]);
    }
    MPI_Type_free(&pair);
    MPI_Op_free(&add);
    for (int i = MANY; i-- > 0;) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        copy(numbers, out[i], sizeof(numbers));
        for (int j = 0; j < 2 * PAIRS; j++)
            if (numbers[j] != ranks * (i + j % 100) && failures++ < 20)
                fprintf(stderr, "device_collective: rank %d: number %d of sum %d is %d\n",
                        world_rank, j, i, numbers[j]);
        device_free(in[i]);
        device_free(out[i]);
    }
    calls += MANY;
}

/* Where the first process has no element, what is received begins behind the start of its buffer.
 * The image of that buffer then starts before its memory: not at the image of the other one, which
 * lies there in a heap without gaps, or Open MPI would take the two for one buffer. */
static void chapter_neighbouring_images(void)
{
    static const struct operation allgatherv = ROW(Allgatherv, SENT, false, false);
    filling.is_wanted = true;
    for (int behind = 0; behind < 40; behind += 8) {
        round_set(world, 0, MPI_INT);
        for (int i = 1; i < MOST_RANKS; i++)
            now.displs[i] += behind;
        compare(&allgatherv, NONBLOCKING, 3, false);
        compare(&allgatherv, REPEATED, 3, false);
    }
    filling.is_wanted = false;
    while (filling.count > 0)
        free(filling.kept[--filling.count]);
}

/* --- what libmpi itself packs --- */

static void wrong_if(bool is_wrong, const char *call, int devices, int count)
{
    calls++;
    if (is_wrong && failures++ < 20)
        fprintf(stderr, "device_collective: rank %d: %s of %d elements, on devices: %d: wrong\n",
                world_rank, call, count, devices);
}

/* A buffer with these bytes, on a device or not. */
static void *buffer_new(bool is_device, const void *bytes, size_t size)
{
    void *buffer = is_device ? device_new(size) : malloc(size);
    if (is_device)
        copy(buffer, bytes, size);
    else
        memcpy(buffer, bytes, size);
    return buffer;
}

static void buffer_take(bool is_device, void *buffer, void *bytes, size_t size)
{
    if (is_device) {
        copy(bytes, buffer, size);
        device_free(buffer);
    } else {
        memcpy(bytes, buffer, size);
        free(buffer);
    }
}

/* Packs from `buffer` into `packed` and unpacks into another buffer; results in both. */
static void pack_both(int devices, int *numbers, int *back, size_t size, char *bytes, int most,
                      int count, MPI_Datatype type, bool is_external)
{
    bool typed_there = devices & 1, bytes_there = devices & 2;
    void *typed = buffer_new(typed_there, numbers, size);
    void *packed = buffer_new(bytes_there, bytes, (size_t) most);
    MPI_Aint at_external = 7, end = most;
    int at = 7;
    if (is_external)
        MPI_Pack_external("external32", typed, count, type, packed, end, &at_external);
    else
        MPI_Pack(typed, count, type, packed, most, &at, world);
    buffer_take(typed_there, typed, numbers, size);
    typed = buffer_new(typed_there, back, size);
    at = 7, at_external = 7;
    if (is_external)
        MPI_Unpack_external("external32", packed, end, &at_external, typed, count, type);
    else
        MPI_Unpack(packed, most, &at, typed, count, type, world);
    buffer_take(typed_there, typed, back, size);
    buffer_take(bytes_there, packed, bytes, (size_t) most);
}

static void pack_compare(int count, MPI_Datatype type, size_t element, bool is_external)
{
    size_t size = (size_t) count * element, most = size + 20;
    int *numbers[2], *back[2];
    char *bytes[2];
    for (int devices = 1; devices < 4; devices++) {
        for (int i = 0; i < 2; i++) {
            fill(numbers[i] = malloc(size), size, world_rank);
            fill(back[i] = malloc(size), size, 500);
            memset(bytes[i] = malloc(most), 3, most);
            pack_both(i ? devices : 0, numbers[i], back[i], size, bytes[i], (int) most, count, type,
                      is_external);
        }
        wrong_if(memcmp(numbers[0], numbers[1], size) != 0 || memcmp(back[0], back[1], size) != 0 ||
                     memcmp(bytes[0], bytes[1], most) != 0,
                 is_external ? "MPI_Pack_external" : "MPI_Pack", devices, count);
        for (int i = 0; i < 2; i++) {
            free(numbers[i]);
            free(back[i]);
            free(bytes[i]);
        }
    }
}

/* Each sends its numbers to the next process in turn, and receives the numbers of the one before.
 */
static void replace_compare(int count, MPI_Datatype type, size_t element, bool is_nonblocking)
{
    size_t size = (size_t) count * element;
    int *numbers[2], ranks;
    MPI_Comm_size(world, &ranks);
    int next = (world_rank + 1) % ranks, before = (world_rank + ranks - 1) % ranks;
    for (int i = 0; i < 2; i++) {
        fill(numbers[i] = malloc(size), size, world_rank);
        void *buffer = buffer_new(i, numbers[i], size);
#if SUITE_MPI_4
        MPI_Request request;
        if (is_nonblocking) {
            MPI_Isendrecv_replace(buffer, count, type, next, 5, before, 5, world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
#endif
        if (!is_nonblocking)
            MPI_Sendrecv_replace(buffer, count, type, next, 5, before, 5, world, MPI_STATUS_IGNORE);
        buffer_take(i, buffer, numbers[i], size);
    }
    wrong_if(memcmp(numbers[0], numbers[1], size) != 0,
             is_nonblocking ? "MPI_Isendrecv_replace" : "MPI_Sendrecv_replace", 1, count);
    free(numbers[0]);
    free(numbers[1]);
}

static void chapter_packed(void)
{
    MPI_Datatype gaps = type_with_gaps();
    const struct {
        int count;
        MPI_Datatype type;
        size_t element;
    } rows[] = {{1, MPI_INT, 4}, {50000, MPI_INT, 4}, {1, gaps, 32}, {3000, gaps, 32}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pack_compare(rows[i].count, rows[i].type, rows[i].element, false);
        pack_compare(rows[i].count, rows[i].type, rows[i].element, true);
        replace_compare(rows[i].count, rows[i].type, rows[i].element, false);
        replace_compare(rows[i].count, rows[i].type, rows[i].element, SUITE_MPI_4);
    }
    MPI_Type_free(&gaps);
}

static const struct {
    const char *name;
    void (*run)(void);
} chapters[] = {
    {"operations", chapter_operations},
    {"groups", chapter_groups},
    {"neighbours", chapter_neighbours},
    {"under-way", chapter_under_way},
    {"neighbouring-images", chapter_neighbouring_images},
    {"packed", chapter_packed},
};

/* Ranks take turns at the devices. */
static void device_begin(void)
{
    driver_context context;
    const char *given = getenv("OMPI_COMM_WORLD_RANK");
    int count = 0, turn = given ? atoi(given) : 0;
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || !driver_load()) {
        fprintf(stderr, "device_collective: no driver: %s\n", driver_why());
        exit(1);
    }
    must(driver.init(0), "cuInit");
    must(driver.device_count(&count), "cuDeviceGetCount");
    must(driver.primary_retain(&context, turn % count), "cuDevicePrimaryCtxRetain");
    must(driver.context_push(context), "cuCtxPushCurrent");
}

#if SUITE_MPI_4
static MPI_Session session;

static void mpi_begin(int is_session)
{
    MPI_Group group;
    if (!is_session) {
        MPI_Init(NULL, NULL);
        world = MPI_COMM_WORLD;
        return;
    }
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &world);
    MPI_Group_free(&group);
}

static void mpi_end(int is_session)
{
    if (!is_session) {
        MPI_Finalize();
        return;
    }
    MPI_Comm_free(&world);
    MPI_Session_finalize(&session);
}
#else
static void mpi_begin(int is_session)
{
    (void) is_session;
    MPI_Init(NULL, NULL);
    world = MPI_COMM_WORLD;
}

static void mpi_end(int is_session)
{
    (void) is_session;
    MPI_Finalize();
}
#endif

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    int mine[2], all[2];
    device_begin();
    mpi_begin(argc > 2);
    MPI_Comm_rank(world, &world_rank);
    for (size_t i = 0; i < sizeof(chapters) / sizeof(chapters[0]); i++)
        if (!wanted || strcmp(wanted, chapters[i].name) == 0)
            chapters[i].run();
    mine[0] = failures;
    mine[1] = calls;
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, world);
    if (world_rank == 0)
        printf("device_collective: %d calls, %d wrong\n", all[1], all[0]);
    mpi_end(argc > 2);
    return all[0] > 0 || all[1] == 0;
}
