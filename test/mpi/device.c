/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from and to device memory: every kind of buffer at either end, sizes of every protocol,
 * modes, datatypes, truncation, memory that is freed and allocated again. Needs libcuda.so.1, a
 * device's or the stand-in of test/fake, whose memory a processor cannot touch without a crash.
 *
 * device [CHAPTER [SIZE]]: one chapter, or all that need nothing but a stand-in that works. SIZE is
 * that of the messages of chapter `unreachable`. */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif

#include "common/memory/driver.h"
#include "common/model/protocol.h"
#include "multilane/measure.h"
#include "test/fake/cuda_calls.h"

static int rank, ranks, failures, size_given;

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        if (failures++ < 20) {                                                                     \
            fprintf(stderr, "device: rank %d: %s:%d: ", rank, __FILE__, __LINE__);                 \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

/* --- memory of every kind -----------------------------------------------------------------------
 */

enum kind { HOST, PINNED, DEVICE, MANAGED, KINDS, MAPPED = KINDS, POOLED };
static const char *const kind_names[] = {"host", "pinned", "device", "managed", "mapped", "pooled"};

static void must(driver_result result, const char *what)
{
    char words[160];
    if (result == DRIVER_SUCCESS)
        return;
    fprintf(stderr, "device: %s: %s\n", what, driver_words(result, words, sizeof(words)));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Memory that the program maps itself, of two chunks that follow each other. */
enum { CHUNK = 2 << 20 };
static const int handle_types = DRIVER_HANDLE_FD | DRIVER_HANDLE_FABRIC;

/* Maps a new chunk there. */
static void chunk_map(driver_ptr at, size_t size)
{
    struct driver_chunk_properties properties = {.type = DRIVER_CHUNK_PINNED,
                                                 .handle_types = handle_types,
                                                 .location = {DRIVER_LOCATION_DEVICE, 0}};
    struct driver_access access = {{DRIVER_LOCATION_DEVICE, 0}, DRIVER_ACCESS_READ_WRITE};
    driver_chunk chunk;
    /* Where there is no fabric the driver may refuse what could go over one. */
    if (cuda_chunk_create(&chunk, size, &properties) != DRIVER_SUCCESS) {
        properties.handle_types = DRIVER_HANDLE_FD;
        must(cuda_chunk_create(&chunk, size, &properties), "cuMemCreate");
    }
    must(driver.range_map(at, size, 0, chunk, 0), "cuMemMap");
    must(driver.chunk_release(chunk), "cuMemRelease");
    must(driver.range_allow(at, size, &access, 1), "cuMemSetAccess");
}

static unsigned char *mapped_new(void)
{
    driver_ptr start;
    must(driver.range_reserve(&start, 2 * CHUNK, 0, 0, 0), "cuMemAddressReserve");
    chunk_map(start, CHUNK);
    chunk_map(start + CHUNK, CHUNK);
    return (unsigned char *) (uintptr_t) start;
}

static void mapped_free(unsigned char *bytes)
{
    driver_ptr start = (driver_ptr) (uintptr_t) bytes;
    must(driver.range_unmap(start, 2 * CHUNK), "cuMemUnmap");
    must(driver.range_free(start, 2 * CHUNK), "cuMemAddressFree");
}

static driver_ptr pooled_new(size_t size)
{
    driver_result (*alloc)(driver_ptr *, size_t, driver_stream);
    driver_ptr address = 0;
    void *symbol = dlsym(RTLD_DEFAULT, "cuMemAllocAsync");
    memcpy(&alloc, &symbol, sizeof(alloc));
    must(symbol ? alloc(&address, size, NULL) : DRIVER_NOT_FOUND, "cuMemAllocAsync");
    return address;
}

static unsigned char *memory_new(enum kind kind, size_t size)
{
    driver_ptr address = 0;
    void *pinned = NULL;
    size = size ? size : 1;
    switch (kind) {
    case DEVICE:
        must(driver.mem_alloc(&address, size), "cuMemAlloc");
        return (unsigned char *) (uintptr_t) address;
    case MANAGED:
        must(cuda_alloc_managed(&address, size), "cuMemAllocManaged");
        return (unsigned char *) (uintptr_t) address;
    case MAPPED:
        return mapped_new();
    case POOLED:
        return (unsigned char *) (uintptr_t) pooled_new(size);
    case PINNED:
        if (driver.mem_host_alloc(&pinned, size, DRIVER_HOST_PORTABLE) == DRIVER_SUCCESS)
            return pinned;
        kind = HOST; /* the stand-in may have none: freed by kind below */
        /* fall through */
    default:
        return malloc(size);
    }
}

static void memory_free(enum kind kind, unsigned char *bytes)
{
    if (kind == MAPPED)
        mapped_free(bytes);
    else if (kind == DEVICE || kind == MANAGED || kind == POOLED)
        must(driver.mem_free((driver_ptr) (uintptr_t) bytes), "cuMemFree");
    else if (kind != PINNED || driver.mem_host_free(bytes) != DRIVER_SUCCESS)
        free(bytes);
}

/* What the driver still has under way then, Multilane sees to, but not in memory that belongs to no
 * context: from a pool, or mapped. There the program has to. */
static void memory_write(unsigned char *to, const unsigned char *from, size_t size)
{
    driver_ptr at = (driver_ptr) (uintptr_t) to;
    static const int attribute[] = {DRIVER_POINTER_CONTEXT};
    driver_context context = NULL;
    void *values[] = {&context};
    if (!size)
        return;
    must(cuda_copy(at, (driver_ptr) (uintptr_t) from, size), "cuMemcpy");
    /* In a context that is gone a driver may say nothing of it. */
    if (driver.pointer_attributes(1, attribute, values, at) == DRIVER_SUCCESS && !context)
        must(driver.stream_synchronize(NULL), "cuStreamSynchronize");
}

static unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char) (i * 31 + (i >> 8) * 7 + seed);
}

static void fill(unsigned char *to, size_t size, unsigned seed)
{
    unsigned char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(i, seed);
    memory_write(to, bytes, size);
    free(bytes);
}

/* The first `size` bytes are those of the seed, and after them `rest` that were not written. */
static void check(const unsigned char *from, size_t size, size_t rest, unsigned seed,
                  unsigned seed_before, const char *what)
{
    unsigned char *bytes = malloc(size + rest + 1);
    memory_write(bytes, from, size + rest);
    for (size_t i = 0; i < size + rest; i++) {
        unsigned char wanted = i < size ? pattern(i, seed) : pattern(i, seed_before);
        if (bytes[i] == wanted)
            continue;
        FAIL("%s: byte %zu of %zu is %u, not %u", what, i, size, bytes[i], wanted);
        break;
    }
    free(bytes);
}

static int other(void)
{
    return rank ^ 1;
}

/* Ranks without a partner look on. */
static bool has_partner(void)
{
    return other() < ranks;
}

/* --- chapters -----------------------------------------------------------------------------------
 */

static const size_t sizes[] = {0,     1,      8,      936,    937,      4096,    8192,
                               40000, 131072, 131073, 300000, 1048579u, 3000000u};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

typedef int (*send_function)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

static int send_persistent(const void *buffer, int count, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm)
{
    MPI_Request request;
    MPI_Send_init(buffer, count, type, to, tag, comm, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Request_free(&request);
}

static const struct {
    const char *name;
    send_function send;
} modes[] = {{"MPI_Send", MPI_Send},
             {"MPI_Ssend", MPI_Ssend},
             {"MPI_Bsend", MPI_Bsend},
             {"a persistent send", send_persistent}};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

/* From every kind to every kind, both ways, the receive first or the message first. */
static void between(enum kind from, enum kind to, size_t size, unsigned mode)
{
    char what[128];
    unsigned seed = (unsigned) size + from * 7 + to * 3 + mode;
    bool is_sender = rank % 2 == 0;
    MPI_Status status;
    MPI_Request request;
    snprintf(what, sizeof(what), "%s of %zu bytes from %s to %s memory", modes[mode].name, size,
             kind_names[from], kind_names[to]);
    for (int turn = 0; turn < 2; turn++, is_sender = !is_sender) {
        unsigned char *bytes = memory_new(is_sender ? from : to, size + 64);
        fill(bytes, size + 64, is_sender ? seed : seed + 1);
        if (is_sender) {
            if (turn)
                MPI_Recv(NULL, 0, MPI_BYTE, other(), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            modes[mode].send(bytes, (int) size, MPI_BYTE, other(), 1, MPI_COMM_WORLD);
        } else {
            int count = -1;
            MPI_Irecv(bytes, (int) size + 64, MPI_BYTE, turn ? other() : MPI_ANY_SOURCE, 1,
                      MPI_COMM_WORLD, &request);
            if (turn) /* the receive is posted before the message comes */
                MPI_Send(NULL, 0, MPI_BYTE, other(), 9, MPI_COMM_WORLD);
            MPI_Wait(&request, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (count != (int) size)
                FAIL("%s: %d bytes came", what, count);
            check(bytes, size, 64, seed, seed + 1, what);
        }
        memory_free(is_sender ? from : to, bytes);
    }
}

static void chapter_kinds(void)
{
    static unsigned char attached[1 << 23];
    if (!has_partner())
        return;
    MPI_Buffer_attach(attached, sizeof(attached));
    for (unsigned mode = 0; mode < MODES; mode++)
        for (int from = 0; from < KINDS; from++)
            for (int to = 0; to < KINDS; to++)
                for (int i = 0; i < SIZES; i++) {
                    /* All sizes from device to device; of other pairs every third, and of other
                     * modes those that matter. */
                    bool is_main = from == DEVICE && to == DEVICE;
                    if ((!is_main || mode) && (i + from + to + (int) mode) % 3)
                        continue;
                    if (mode && (from < DEVICE || to == PINNED || to == MANAGED))
                        continue;
                    between((enum kind) from, (enum kind) to, sizes[i], mode);
                }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
}

static void chapter_self(void)
{
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            for (int i = (from + to) % 2; i < SIZES; i += 2) {
                unsigned char *out = memory_new((enum kind) from, sizes[i]);
                unsigned char *in = memory_new((enum kind) to, sizes[i]);
                fill(out, sizes[i], 5);
                MPI_Sendrecv(out, (int) sizes[i], MPI_BYTE, rank, 2, in, (int) sizes[i], MPI_BYTE,
                             rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check(in, sizes[i], 0, 5, 0, "a message to itself");
                memory_free((enum kind) from, out);
                memory_free((enum kind) to, in);
            }
}

/* A device does not count. */
static bool is_stand_in(void)
{
    return dlsym(RTLD_DEFAULT, "multilane_standin_copies") != NULL;
}

/* What the stand-in counts; 0 where there is none. */
static long count_now(const char *of_what)
{
    long (*count)(void);
    void *symbol = dlsym(RTLD_DEFAULT, of_what);
    memcpy(&count, &symbol, sizeof(count));
    return symbol ? count() : 0;
}

/* Copies of the driver's so far, and kernels. */
static long copies_now(void)
{
    return count_now("multilane_standin_copies");
}

/* Kernels alone. */
static long kernels_now(void)
{
    return count_now("multilane_standin_kernels");
}

/* Datatypes whose bytes lie apart. The span of `count` of them is at most SPAN bytes. Those whose
 * blocks are regular take few copies, whatever the number of blocks; 0: not counted. */
enum { TYPES = 5, PACKED_TYPES = 7, SPAN = 2000000 };
static const long most_copies[PACKED_TYPES] = {6, 0, 40, 60, 0, 0, 0};

/* The same where a kernel packs what is not regular: a table of blocks, and a kernel and a copy for
 * each piece of the message. */
static bool is_packed_by_kernels;
static const long most_copies_packed[PACKED_TYPES] = {6, 6, 40, 6, 6, 40, 12};
static const bool is_irregular[PACKED_TYPES] = {false, true, false, true, true, true, true};

static MPI_Datatype type_make(int which, int *count)
{
    enum { BLOCKS = 40, MANY_BLOCKS = 20000 };
    static int lengths[MANY_BLOCKS], at[MANY_BLOCKS];
    MPI_Datatype type, part;
    *count = 1;
    switch (which) {
    case 0: /* columns of a matrix */
        MPI_Type_vector(500, 3, 300, MPI_INT, &type);
        break;
    case 1: /* blocks of growing length and distance, some of them touching */
    case 5: /* more of them */
        for (int i = 0, next = 0; i < BLOCKS; i++) {
            lengths[i] = i + 1;
            at[i] = next;
            next += i % 3 ? lengths[i] + i * 5 : lengths[i];
        }
        MPI_Type_indexed(BLOCKS, lengths, at, MPI_DOUBLE, &type);
        *count = which == 1 ? 7 : 60;
        break;
    case 6: /* very many */
        for (int i = 0, next = 0; i < MANY_BLOCKS; i++) {
            lengths[i] = 1 + i % 7 % 2;
            at[i] = next;
            next += lengths[i] + 1 + i % 5;
        }
        MPI_Type_indexed(MANY_BLOCKS, lengths, at, MPI_INT, &type);
        break;
    case 2: /* one block in every element */
        MPI_Type_contiguous(9, MPI_BYTE, &part);
        MPI_Type_create_resized(part, 0, 13, &type);
        MPI_Type_free(&part);
        *count = 100000;
        break;
    case 3: /* a part of a cube */
    {
        int whole[3] = {20, 30, 40}, some[3] = {10, 12, 17}, start[3] = {3, 5, 7};
        MPI_Type_create_subarray(3, whole, some, start, MPI_ORDER_C, MPI_FLOAT, &type);
        *count = 15;
        break;
    }
    default: /* starts before its address and has its blocks in descending order */
    {
        MPI_Aint displacements[3] = {4096, 512, 100};
        int counts[3] = {11, 21, 3};
        MPI_Datatype parts[3] = {MPI_CHAR, MPI_SHORT, MPI_DOUBLE};
        MPI_Type_create_struct(3, counts, displacements, parts, &type);
        *count = 150;
        break;
    }
    }
    MPI_Type_commit(&type);
    return type;
}

/* A kernel runs where the datatype is irregular and lies on a device, and nowhere else. Below 0:
 * no datatype. */
static void kernels_check(int which, enum kind kind, long kernels, const char *what)
{
    bool may = which >= 0 && is_irregular[which] && kind == DEVICE;
    bool must_run = may && is_packed_by_kernels && is_stand_in();
    if ((kernels > 0 && !may) || (kernels == 0 && must_run))
        FAIL("%s: %ld kernels ran", what, kernels);
}

/* The same message, packed by Open MPI in host memory, is what has to come. */
static void typed(int which, enum kind from, enum kind to, bool packed_end)
{
    const long *most = is_packed_by_kernels ? most_copies_packed : most_copies;
    int count, size, position = 0;
    MPI_Datatype type = type_make(which, &count);
    MPI_Aint low, extent;
    char what[96];
    snprintf(what, sizeof(what), "datatype %d from %s to %s%s", which, kind_names[from],
             kind_names[to], packed_end ? ", received packed" : "");
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &low, &extent);
    if ((size_t) extent * (size_t) count > SPAN) {
        FAIL("%s: it spans %zu bytes", what, (size_t) extent * (size_t) count);
        return;
    }
    unsigned char *model = malloc(SPAN), *wanted = calloc(1, SPAN), *came = malloc(SPAN);
    unsigned char *packed = malloc((size_t) (size * count));
    for (size_t i = 0; i < SPAN; i++)
        model[i] = pattern(i, 3);
    MPI_Pack(model, count, type, packed, size * count, &position, MPI_COMM_WORLD);
    position = 0;
    if (packed_end)
        memcpy(wanted, packed, (size_t) (size * count));
    else
        MPI_Unpack(packed, size * count, &position, wanted, count, type, MPI_COMM_WORLD);

    if (rank % 2 == 0) {
        unsigned char *out = memory_new(from, SPAN);
        memory_write(out, model, SPAN);
        long copies = copies_now(), kernels = kernels_now();
        MPI_Send(out, count, type, other(), 3, MPI_COMM_WORLD);
        copies = copies_now() - copies;
        if (most[which] && copies > most[which])
            FAIL("%s: %ld copies of the driver's, not at most %ld", what, copies, most[which]);
        kernels_check(which, from, kernels_now() - kernels, what);
        memory_free(from, out);
    } else {
        unsigned char *in = memory_new(to, SPAN);
        memset(came, 0, SPAN);
        memory_write(in, came, SPAN);
        long kernels = kernels_now();
        if (packed_end)
            MPI_Recv(in, size * count, MPI_BYTE, other(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Recv(in, count, type, other(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        kernels_check(packed_end ? -1 : which, to, kernels_now() - kernels, what);
        memory_write(came, in, SPAN);
        if (memcmp(came, wanted, SPAN) != 0)
            FAIL("%s: other bytes came", what);
        memory_free(to, in);
    }
    free(model);
    free(wanted);
    free(came);
    free(packed);
    MPI_Type_free(&type);
}

static void chapter_types(void)
{
    if (!has_partner())
        return;
    for (int which = 0; which < TYPES; which++)
        for (int packed_end = 0; packed_end < 2; packed_end++) {
            typed(which, DEVICE, DEVICE, packed_end);
            typed(which, DEVICE, HOST, packed_end);
            typed(which, HOST, DEVICE, packed_end);
        }
    if (rank == 0)
        printf("device: %ld kernels have run\n", kernels_now());
}

/* With device code, also for irregular datatypes: whole, and cut off by a shorter receive. */
static void chapter_packed(void)
{
    if (!has_partner())
        return;
    is_packed_by_kernels = true;
    for (int which = 0; which < PACKED_TYPES; which++)
        for (int packed_end = 0; packed_end < 2; packed_end++) {
            typed(which, DEVICE, DEVICE, packed_end);
            typed(which, DEVICE, HOST, packed_end);
            typed(which, HOST, DEVICE, packed_end);
        }
    is_packed_by_kernels = false;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: irregular datatypes were packed by kernels\n");
}

/* A message that is longer than its receive: the receive says so, and nothing is written behind. */
static void chapter_truncate(void)
{
    if (!has_partner())
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 2; i < SIZES; i++)
        for (int from = 0; from < KINDS; from++) {
            size_t size = sizes[i], room = size / 2;
            if (rank % 2 == 0) {
                unsigned char *out = memory_new((enum kind) from, size);
                fill(out, size, 4);
                MPI_Send(out, (int) size, MPI_BYTE, other(), 4, MPI_COMM_WORLD);
                memory_free((enum kind) from, out);
            } else {
                unsigned char *in = memory_new(DEVICE, size);
                MPI_Status status;
                int found, class = MPI_SUCCESS;
                fill(in, size, 8);
                MPI_Probe(other(), 4, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &found);
                if (found != (int) size)
                    FAIL("a probe found %d bytes, not %zu", found, size);
                int rc = MPI_Recv(in, (int) room, MPI_BYTE, other(), 4, MPI_COMM_WORLD, &status);
                MPI_Error_class(rc, &class);
                if (class != MPI_ERR_TRUNCATE)
                    FAIL("%zu bytes for %zu: error class %d", size, room, class);
                check(in, room, size - room, 4, 8, "a truncated message");
                memory_free(DEVICE, in);
            }
        }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The same request again and again, each time with other bytes. */
static void chapter_persistent(void)
{
    static const size_t lengths[] = {100, 5000, 700001};
    if (!has_partner())
        return;
    for (int length = 0; length < 3; length++) {
        size_t size = lengths[length];
        unsigned char *bytes = memory_new(DEVICE, size);
        MPI_Request request;
        if (rank % 2 == 0)
            MPI_Send_init(bytes, (int) size, MPI_BYTE, other(), 8, MPI_COMM_WORLD, &request);
        else
            MPI_Recv_init(bytes, (int) size, MPI_BYTE, other(), 8, MPI_COMM_WORLD, &request);
        for (unsigned round = 0; round < 4; round++) {
            if (rank % 2 == 0)
                fill(bytes, size, round);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (rank % 2)
                check(bytes, size, 0, round, 0, "a persistent receive");
        }
        MPI_Request_free(&request);
        memory_free(DEVICE, bytes);
    }
}

/* A receive of a message that a probe has taken. */
static void chapter_probe(void)
{
    if (!has_partner())
        return;
    for (int i = 1; i < SIZES; i++) {
        unsigned char *bytes = memory_new(DEVICE, sizes[i]);
        if (rank % 2 == 0) {
            fill(bytes, sizes[i], 9);
            MPI_Send(bytes, (int) sizes[i], MPI_BYTE, other(), 10, MPI_COMM_WORLD);
        } else {
            MPI_Message message;
            MPI_Status status;
            int count = -1;
            MPI_Mprobe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (count != (int) sizes[i])
                FAIL("a probe found %d bytes, not %zu", count, sizes[i]);
            MPI_Mrecv(bytes, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            check(bytes, sizes[i], 0, 9, 0, "a message that was probed for");
        }
        memory_free(DEVICE, bytes);
    }
}

/* Buffers on every device, from each to each. */
static void chapter_devices(void)
{
    int count = 0;
    if (!has_partner())
        return;
    must(driver.device_count(&count), "cuDeviceGetCount");
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++)
            for (int i = 1; i < SIZES; i += 2) {
                int device = rank % 2 == 0 ? from : to;
                driver_context context;
                must(driver.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
                must(driver.context_push(context), "cuCtxPushCurrent");
                unsigned char *bytes = memory_new(DEVICE, sizes[i]);
                if (rank % 2 == 0)
                    fill(bytes, sizes[i], 2);
                must(driver.context_pop(&context), "cuCtxPopCurrent");
                if (rank % 2 == 0)
                    MPI_Send(bytes, (int) sizes[i], MPI_BYTE, other(), 11, MPI_COMM_WORLD);
                else
                    MPI_Recv(bytes, (int) sizes[i], MPI_BYTE, other(), 11, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                if (rank % 2)
                    check(bytes, sizes[i], 0, 2, 0, "between devices");
                memory_free(DEVICE, bytes);
            }
    if (count_now("multilane_standin_far_copies"))
        FAIL("the driver copied in contexts for which memory was not opened");
}

/* So much of the host's is from the heap: a smaller piece may be one that another thread had from a
 * heap of its own, which malloc maps, and that this thread has freed. */
enum { HEAP_BYTES = 60000 };

/* Questions about it: a sanitizer maps its heap as malloc maps large blocks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OF_HEAP = 1 };
#else
enum { OF_HEAP = 0 };
#endif

/* How often a message of the same memory asks the driver whose memory that is: once, and where a
 * lane takes the memory itself, once by that lane; of the heap never. */
static void chapter_questions(void)
{
    enum { MESSAGES = 20, SOME = MESSAGES / 2 }; /* of the context, when others use it too */
    static const struct {
        enum kind kind;
        size_t size;
        long most;
    } cases[] = {{HOST, 8, OF_HEAP}, {HOST, 4 << 20, 1}, {DEVICE, 8, 2}, {DEVICE, 1 << 20, 2}};
    for (size_t i = 0; has_partner() && i < sizeof(cases) / sizeof(cases[0]); i++) {
        int size = (int) cases[i].size;
        unsigned char *bytes = memory_new(cases[i].kind, cases[i].size + HEAP_BYTES);
        long before = 0;
        for (int message = -1; message < MESSAGES; message++) {
            if (message == 0) /* the first one has made what others use */
                before = count_now("multilane_standin_questions");
            if (rank % 2 == 0)
                MPI_Send(bytes, size, MPI_BYTE, other(), 13, MPI_COMM_WORLD);
            else
                MPI_Recv(bytes, size, MPI_BYTE, other(), 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        long asked = count_now("multilane_standin_questions") - before;
        if (rank % 2 == 0 && asked > cases[i].most * MESSAGES + (cases[i].most ? SOME : 0))
            FAIL("%d messages of %d bytes of %s memory asked the driver %ld times", MESSAGES, size,
                 kind_names[cases[i].kind], asked);
        memory_free(cases[i].kind, bytes);
    }
}

/* Large messages of two buffers in turn. How often the driver was asked to open memory, and did. */
static void two_buffers(long *asked, long *opened)
{
    enum { MESSAGES = 10, SIZE = 300000 };
    unsigned char *bytes[2] = {memory_new(DEVICE, SIZE), memory_new(DEVICE, SIZE)};
    *asked = count_now("multilane_standin_opens");
    *opened = count_now("multilane_standin_opened");
    for (unsigned message = 0; message < MESSAGES; message++) {
        unsigned char *at = bytes[message % 2];
        if (rank % 2 == 0) {
            fill(at, SIZE, message);
            MPI_Send(at, SIZE, MPI_BYTE, other(), 14, MPI_COMM_WORLD);
        } else {
            MPI_Recv(at, SIZE, MPI_BYTE, other(), 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(at, SIZE, 0, message, 0, "one of two buffers");
        }
    }
    *asked = count_now("multilane_standin_opens") - *asked;
    *opened = count_now("multilane_standin_opened") - *opened;
    memory_free(DEVICE, bytes[0]);
    memory_free(DEVICE, bytes[1]);
}

/* Halos: messages from and to many places of one allocation, or of chunks that are mapped, also
 * over the border of two. The receiver gets them, the sender copies nothing. */
static void halo(enum kind kind, size_t apart, int chunks)
{
    enum { PLACES = 1000, SIZE = 40000 };
    size_t last = (PLACES - 1) * apart;
    unsigned char *bytes = memory_new(kind, last + SIZE);
    long exported = count_now("multilane_standin_exports");
    long opened = count_now("multilane_standin_opened") + count_now("multilane_standin_imports");
    if (rank % 2 == 0)
        fill(bytes + last, SIZE, 15);
    long copies = copies_now();
    for (size_t i = 0; has_partner() && i < PLACES; i++) {
        unsigned char *at = bytes + i * apart;
        if (rank % 2 == 0)
            MPI_Send(at, SIZE, MPI_BYTE, other(), 15, MPI_COMM_WORLD);
        else
            MPI_Recv(at, SIZE, MPI_BYTE, other(), 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    exported = count_now("multilane_standin_exports") - exported;
    opened =
        count_now("multilane_standin_opened") + count_now("multilane_standin_imports") - opened;
    copies = copies_now() - copies;
    if (is_stand_in() && has_partner() &&
        (exported != (rank % 2 ? 0 : chunks) || opened != (rank % 2 ? chunks : 0)))
        FAIL("%d places of %d allocations of %s memory: %ld handles, %ld times opened", PLACES,
             chunks, kind_names[kind], exported, opened);
    if (is_stand_in() && has_partner() && rank % 2 == 0 && copies != 0)
        FAIL("the sender of %s memory made %ld copies", kind_names[kind], copies);
    if (has_partner() && rank % 2)
        check(bytes + last, SIZE, 0, 15, 0, "the last place");
    memory_free(kind, bytes);
}

static void chapter_halo(void)
{
    halo(DEVICE, 80000, 1);
    if (driver.range_map) {
        halo(MAPPED, 2000, 1); /* all in the first chunk */
        halo(MAPPED, 4000, 2);
    }
}

/* One chunk after the other at the same place. The driver may give the next one the handle of the
 * last, and no number tells them apart. */
static void chapter_mapped_again(void)
{
    enum { ROUNDS = 40, SIZE = 300000 };
    driver_ptr start;
    must(driver.range_reserve(&start, CHUNK, 0, 0, 0), "cuMemAddressReserve");
    for (unsigned round = 0; has_partner() && round < ROUNDS; round++) {
        unsigned char *bytes = (unsigned char *) (uintptr_t) start;
        chunk_map(start, CHUNK);
        fill(bytes, SIZE, rank % 2 ? 0 : round);
        for (int message = 0; message < 2; message++)
            if (rank % 2 == 0)
                MPI_Send(bytes, SIZE, MPI_BYTE, other(), 38, MPI_COMM_WORLD);
            else
                MPI_Recv(bytes, SIZE, MPI_BYTE, other(), 38, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank % 2)
            check(bytes, SIZE, 0, round, 0, "a chunk in the place of another");
        must(driver.range_unmap(start, CHUNK), "cuMemUnmap");
    }
    must(driver.range_free(start, CHUNK), "cuMemAddressFree");
    if (is_stand_in() && has_partner() && rank % 2 &&
        count_now("multilane_standin_imports") != ROUNDS)
        FAIL("%d chunks were opened %ld times", ROUNDS, count_now("multilane_standin_imports"));
}

/* --- what messages ask of the driver --- */

/* Calls that take a real driver long: none of them is made for memory that was seen before. */
static const char *const slow_calls[] = {"cuDevicePrimaryCtxRetain",
                                         "cuIpcGetMemHandle",
                                         "cuIpcOpenMemHandle",
                                         "cuIpcCloseMemHandle",
                                         "cuMemAlloc",
                                         "cuMemFree",
                                         "cuMemHostAlloc",
                                         "cuMemHostRegister",
                                         "cuMemExportToShareableHandle",
                                         "cuMemImportFromShareableHandle",
                                         "cuMemAddressReserve",
                                         "cuMemMap",
                                         "cuMemSetAccess",
                                         "cuMemUnmap",
                                         "cuMemGetHandleForAddressRange",
                                         "cuModuleLoadData",
                                         "cuPointerSetAttribute",
                                         "cuStreamCreate"};

static long calls_of(const char *name)
{
    long (*calls)(const char *);
    void *symbol = dlsym(RTLD_DEFAULT, "multilane_standin_calls");
    memcpy(&calls, &symbol, sizeof(calls));
    return symbol ? calls(name) : 0;
}

static long calls_slow(void)
{
    long count = 0;
    for (size_t i = 0; i < sizeof(slow_calls) / sizeof(slow_calls[0]); i++)
        count += calls_of(slow_calls[i]);
    return count;
}

/* How often one looks whether a copy has ended, which takes the other call too, depends on the time
 * that it takes. */
static long calls_but_polls(void)
{
    return calls_of(NULL) - calls_of("cuEventQuery") -
           calls_of("cuThreadExchangeStreamCaptureMode");
}

/* What a real driver takes long for, in the whole of this chapter and the program's own calls
 * included: 2 devices in each of 2 components, each with 3 streams; one handle of cudaMalloc'ed
 * memory and three of chunks, for which the fabric is tried first; 2 sizes of pinned pieces. */
static void calls_bounded(void)
{
    static const struct {
        const char *name;
        long most;
    } bounds[] = {{"cuDevicePrimaryCtxRetain", 4},
                  {"cuStreamCreate", 12},
                  {"cuIpcGetMemHandle", 1},
                  {"cuIpcOpenMemHandle", 1},
                  {"cuMemExportToShareableHandle", 6},
                  {"cuMemImportFromShareableHandle", 3},
                  {"cuMemAddressReserve", 6},
                  {"cuMemMap", 9},
                  {"cuMemSetAccess", 9},
                  {"cuMemHostAlloc", 0},
                  {"cuMemHostRegister", 2},
                  {"cuMemAlloc", 6},
                  {"cuModuleLoadData", 0}};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (calls_of(bounds[i].name) > bounds[i].most)
            FAIL("%s was called %ld times", bounds[i].name, calls_of(bounds[i].name));
    }
}

/* From mapped memory to itself, with the lane of device memory: so many copies at most. */
static void self_from(const unsigned char *from, size_t size, long most, const char *what)
{
    unsigned char *in = malloc(size);
    long before = copies_now();
    MPI_Sendrecv(from, (int) size, MPI_BYTE, rank, 2, in, (int) size, MPI_BYTE, rank, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long copies = copies_now() - before;
    check(in, size, 0, 3, 0, what);
    if (copies > most)
        FAIL("%s: %ld copies", what, copies);
    free(in);
}

/* From a chunk that is not the first of its range; and from many, more than a turn of a transfer,
 * of which this takes three. */
static void chapter_self_chunk(void)
{
    enum { CHUNKS = 20, BYTES = 1 << 20, TURNS = 3 };
    driver_ptr start;
    must(driver.range_reserve(&start, CHUNKS * CHUNK, 0, 0, 0), "cuMemAddressReserve");
    for (driver_ptr i = 0; i < CHUNKS; i++)
        chunk_map(start + i * CHUNK, CHUNK);
    unsigned char *range = (unsigned char *) (uintptr_t) start;
    fill(range + CHUNK, BYTES, 3);
    self_from(range + CHUNK, BYTES, 1, "from a second chunk");
    fill(range, CHUNKS * CHUNK, 3);
    self_from(range, CHUNKS * CHUNK, TURNS, "from many chunks");
    must(driver.range_unmap(start, CHUNKS * CHUNK), "cuMemUnmap");
    must(driver.range_free(start, CHUNKS * CHUNK), "cuMemAddressFree");
}

/* Long messages of a process to itself, from the host to a device: one copy, or where the host's
 * bytes have gaps as many as staging has pieces. */
static void chapter_self_long(void)
{
    enum { BYTES = 20 << 20, ROW = 64, PIECE = 512 << 10 };
    MPI_Datatype rows;
    MPI_Type_vector(BYTES / ROW, ROW, 2 * ROW, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    unsigned char *out = calloc(2, BYTES), *in = memory_new(DEVICE, BYTES);
    for (int gaps = 0; gaps < 2; gaps++) {
        for (size_t i = 0; i < BYTES; i++)
            out[gaps ? i / ROW * 2 * ROW + i % ROW : i] = pattern(i, 6 + gaps);
        long before = copies_now(), most = gaps ? BYTES / PIECE + 2 : 1;
        MPI_Sendrecv(out, gaps ? 1 : BYTES, gaps ? rows : MPI_BYTE, rank, 2, in, BYTES, MPI_BYTE,
                     rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        long copies = copies_now() - before;
        check(in, BYTES, 0, 6 + gaps, 0, "a long message to itself");
        if (copies > most)
            FAIL("%s: %ld copies", gaps ? "with gaps" : "contiguous", copies);
    }
    free(out);
    memory_free(DEVICE, in);
    MPI_Type_free(&rows);
}

/* Few bytes for a device that both ranks use, or one each. */
static void chapter_few(void)
{
    static const size_t few[] = {1, 2, 3, 8, 63, 64, 1000, 1001, 32767, 65535, 65536};
    if (!has_partner())
        return;
    between(DEVICE, DEVICE, 8, 0); /* both have met their device */
    between(DEVICE, DEVICE, 8, 0);
    long before = calls_of("cuMemcpy2DAsync"), all = 0;
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++)
        between(HOST, DEVICE, few[i], 0);
    before = calls_of("cuMemcpy2DAsync") - before;
    MPI_Allreduce(&before, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: few bytes went %s\n", all ? "as rows" : "as they are");
}

/* Prints what a message of memory that was seen before costs both ends in calls of the driver. */
static void chapter_calls(void)
{
    enum { MESSAGES = 20, WARM = 5 };
    static const struct {
        enum kind kind;
        int size;
        double most; /* at either end, on average */
    } cases[] = {{HOST, 8, OF_HEAP},   {HOST, 1 << 20, 1},    {DEVICE, 8, 7}, {DEVICE, 1 << 20, 9},
                 {MAPPED, 8, 8},       {MAPPED, 1 << 20, 11}, {POOLED, 8, 8}, {POOLED, 1 << 20, 60},
                 {MAPPED, 3 << 20, 17}}; /* in two chunks */
    for (size_t i = 0; has_partner() && i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *bytes = memory_new(cases[i].kind, (size_t) cases[i].size + HEAP_BYTES);
        long slow = 0;
        double calls = 0, theirs;
        for (int message = -WARM; message < MESSAGES; message++) {
            if (message == 0) {
                calls = (double) calls_but_polls();
                slow = calls_slow();
            }
            if (rank % 2 == 0)
                MPI_Send(bytes, cases[i].size, MPI_BYTE, other(), 13, MPI_COMM_WORLD);
            else
                MPI_Recv(bytes, cases[i].size, MPI_BYTE, other(), 13, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        calls = ((double) calls_but_polls() - calls) / MESSAGES;
        slow = calls_slow() - slow;
        MPI_Sendrecv(&calls, 1, MPI_DOUBLE, other(), 13, &theirs, 1, MPI_DOUBLE, other(), 13,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0)
            printf("calls of the driver, %s memory, %d bytes: sender %.1f, receiver %.1f\n",
                   kind_names[cases[i].kind], cases[i].size, calls, theirs);
        if (slow > 0)
            FAIL("%d messages of %d bytes of %s memory made %ld slow calls", MESSAGES,
                 cases[i].size, kind_names[cases[i].kind], slow);
        if (calls > cases[i].most)
            FAIL("a message of %d bytes of %s memory made %.1f calls", cases[i].size,
                 kind_names[cases[i].kind], calls);
        memory_free(cases[i].kind, bytes);
    }
    calls_bounded();
}

/* Memory that can be opened is opened once, also of a device that the receiver does not see. */
static void chapter_opened(void)
{
    long asked, opened;
    if (!has_partner())
        return;
    two_buffers(&asked, &opened);
    if (is_stand_in() && rank % 2 && (asked != 2 || opened != 2))
        FAIL("two buffers: opened %ld times, asked for %ld times", opened, asked);
    if (count_now("multilane_standin_far_copies"))
        FAIL("the driver copied in contexts for which memory was not opened");
}

/* A message to oneself is the first buffer on a device. Who measures it leaves memory there to the
 * others by a handle; who finds that done does not. Then messages both ways, by what was measured.
 */
static void chapter_measured(void)
{
    enum { SIZE = 300000, MESSAGES = 4 };
    unsigned char *out = memory_new(DEVICE, SIZE), *in = memory_new(DEVICE, SIZE);
    int measured, all = 0;
    fill(out, SIZE, 90 + (unsigned) rank);
    MPI_Sendrecv(out, SIZE, MPI_BYTE, rank, 36, in, SIZE, MPI_BYTE, rank, 36, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(in, SIZE, 0, 90 + (unsigned) rank, 0, "to oneself");
    measured = (int) count_now("multilane_standin_exports");
    MPI_Reduce(&measured, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d of %d processes measured a device\n", all, ranks);
    /* Measuring in turns needs both processes on a processor: on a busy machine it comes late. */
    double end = MPI_Wtime() + 0.5;
    for (int i = 0, goes_on = 1; has_partner() && (i < MESSAGES || goes_on); i++) {
        int size = i % 2 ? SIZE : 8, mine = MPI_Wtime() < end, theirs = 0;
        MPI_Sendrecv(&mine, 1, MPI_INT, other(), 40, &theirs, 1, MPI_INT, other(), 40,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        goes_on = mine && theirs;
        MPI_Sendrecv(out, size, MPI_BYTE, other(), 37, in, size, MPI_BYTE, other(), 37,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in, (size_t) size, 0, 90 + (unsigned) other(), 0, "by what was measured");
    }
    memory_free(DEVICE, out);
    memory_free(DEVICE, in);
}

/* What was measured on this node, opened anew, so that it can be locked as by another process;
 * below 0: it is not open here. */
static int measurements_open(void)
{
    char name[32], target[64] = "";
    int i = 0;
    for (; i < 1024 && !strstr(target, "multilane-devices"); i++) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", i);
        ssize_t length = readlink(name, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
    }
    return i < 1024 ? open(name, O_RDWR | O_CLOEXEC) : -1;
}

/* Another process has them, and is stopped: a send does not wait for it. */
static void chapter_locked(void)
{
    enum { SIZE = 1000 };
    unsigned char *bytes = memory_new(rank % 2 ? HOST : DEVICE, SIZE);
    if (has_partner() && rank % 2) {
        MPI_Send(bytes, SIZE, MPI_BYTE, other(), 38, MPI_COMM_WORLD);
        MPI_Recv(bytes, SIZE, MPI_BYTE, other(), 39, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (has_partner()) {
        MPI_Recv(bytes, SIZE, MPI_BYTE, other(), 38, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int locked = measurements_open();
        if (locked < 0 || flock(locked, LOCK_EX) != 0)
            FAIL("nothing was measured");
        double start_s = MPI_Wtime();
        MPI_Send(bytes, SIZE, MPI_BYTE, other(), 39, MPI_COMM_WORLD);
        if (MPI_Wtime() - start_s > 0.5)
            FAIL("a send took %g s", MPI_Wtime() - start_s);
        close(locked);
    }
    memory_free(rank % 2 ? HOST : DEVICE, bytes);
}

/* Kernels of the program have the device until this has been called. The second process has
 * measured it before. */
static void chapter_busy(void)
{
    enum { SIZE = 300000 };
    unsigned char *out = memory_new(DEVICE, SIZE), *in = memory_new(DEVICE, SIZE);
    MPI_Request requests[2];
    if (!has_partner())
        return;
    fill(out, SIZE, 60 + (unsigned) rank);
    if (rank % 2)
        MPI_Sendrecv(out, 8, MPI_BYTE, rank, 42, in, 8, MPI_BYTE, rank, 42, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in, SIZE, MPI_BYTE, other(), 43, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, SIZE, MPI_BYTE, other(), 43, MPI_COMM_WORLD, &requests[1]);
    count_now("multilane_standin_release");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in, SIZE, 0, 60 + (unsigned) other(), 0, "while the device is busy");
    memory_free(DEVICE, out);
    memory_free(DEVICE, in);
}

/* The first message from a device, to oneself. */
static void device_use(int device)
{
    driver_context context;
    must(driver.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(driver.context_push(context), "cuCtxPushCurrent");
    unsigned char *bytes = memory_new(DEVICE, 16);
    MPI_Sendrecv(bytes, 8, MPI_BYTE, rank, 44, bytes + 8, 8, MPI_BYTE, rank, 44, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    memory_free(DEVICE, bytes);
    must(driver.context_pop(&context), "cuCtxPopCurrent");
}

/* How often the page of measurements names this process. */
static int measurements_name(void)
{
    int found = 0, file = measurements_open();
    int32_t word, me = (int32_t) getpid();
    while (file >= 0 && read(file, &word, sizeof(word)) == (ssize_t) sizeof(word))
        found += word == me;
    close(file);
    return found;
}

/* The second process asks the first one for turns, which has reset its device: it is asked no more,
 * as to be asked keeps its progress busy. */
static void chapter_asked(void)
{
    enum { ROUNDS = 20 };
    int before = 0;
    if (rank == 0) {
        device_use(0);
        before = measurements_name();
        must(cuda_reset(0), "cuDevicePrimaryCtxReset");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        device_use(0);
    for (int round = 0; round < ROUNDS; round++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && measurements_name() >= before)
        FAIL("it is asked still: it is named %d times, before it was %d", measurements_name(),
             before);
}

/* Memory that cannot be opened is tried for a while, each device's for itself. */
static void chapter_asking(void)
{
    enum { ROUNDS = 600, MOST = 100 };
    for (int turn = 0; turn < 2; turn++) {
        for (int device = 0; device < 2 && rank == turn; device++)
            device_use(device);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int round = 0; round < ROUNDS; round++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (count_now("multilane_standin_opens") > MOST)
        FAIL("memory of 2 devices was tried %ld times", count_now("multilane_standin_opens"));
}

/* The last process dies, and the others go on without it: what libmpi packs by itself is packed
 * still. */
static void chapter_survivors(void)
{
#if OMPI_MAJOR_VERSION >= 5
    enum { SIZE = 5000 };
    unsigned char *bytes = memory_new(DEVICE, SIZE);
    MPI_Comm shrunk;
    int left, mine;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == ranks - 1)
        raise(SIGKILL);
    while (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS)
        ;
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &shrunk);
    MPI_Comm_rank(shrunk, &mine);
    MPI_Comm_size(shrunk, &left);
    fill(bytes, SIZE, 70 + (unsigned) mine);
    MPI_Sendrecv_replace(bytes, SIZE, MPI_BYTE, (mine + 1) % left, 45, (mine + left - 1) % left, 45,
                         shrunk, MPI_STATUS_IGNORE);
    check(bytes, SIZE, 0, 70 + (unsigned) ((mine + left - 1) % left), 0,
          "after a process has died");
    if (failures == 0)
        printf("device: rank %d went on with %d others\n", rank, left - 1);
    fflush(stdout);
    memory_free(DEVICE, bytes);
    MPI_Comm_free(&shrunk);
#endif
}

/* The program sends from and receives into memory that is its partner's, which it has opened by IPC
 * itself. */
static void chapter_imported(void)
{
    enum { SIZE = 300000 };
    static const int sizes[] = {8, 40000, SIZE};
    struct driver_ipc_handle handle;
    unsigned char *mine = memory_new(DEVICE, SIZE), *other_buffer = memory_new(DEVICE, SIZE),
                  *at = mine;
    driver_ptr opened = 0;
    if (!has_partner())
        return;
    if (rank % 2) {
        must(driver.ipc_export(&handle, (driver_ptr) (uintptr_t) mine), "cuIpcGetMemHandle");
        MPI_Send(&handle, sizeof(handle), MPI_BYTE, other(), 41, MPI_COMM_WORLD);
        at = other_buffer;
    } else {
        MPI_Recv(&handle, sizeof(handle), MPI_BYTE, other(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        must(driver.ipc_open(&opened, handle, DRIVER_IPC_LAZY_PEER_ACCESS), "cuIpcOpenMemHandle");
        at = (unsigned char *) (uintptr_t) opened;
    }
    for (int turn = 0; turn < 2 * 3; turn++) {
        int size = sizes[turn / 2];
        if (rank % 2 == turn % 2) {
            fill(at, (size_t) size, 50 + (unsigned) turn);
            MPI_Send(at, size, MPI_BYTE, other(), 41, MPI_COMM_WORLD);
        } else {
            MPI_Recv(at, size, MPI_BYTE, other(), 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(at, (size_t) size, 0, 50 + (unsigned) turn, 0,
                  "memory that was opened by the program");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (opened)
        must(driver.ipc_close(opened), "cuIpcCloseMemHandle");
    MPI_Barrier(MPI_COMM_WORLD);
    memory_free(DEVICE, mine);
    memory_free(DEVICE, other_buffer);
}

/* Memory that cannot be opened is asked for once, not by each message. */
static void chapter_refused(void)
{
    long asked, opened;
    if (!has_partner())
        return;
    two_buffers(&asked, &opened);
    if (rank % 2 && (asked != 2 || opened != 0))
        FAIL("two buffers: opened %ld times, asked for %ld times", opened, asked);
}

/* What is open already is in the way of what is to be opened: it is closed, and opened anew. */
static void chapter_in_the_way(void)
{
    long asked, opened;
    if (!has_partner())
        return;
    two_buffers(&asked, &opened);
    if (rank % 2 && opened != 10)
        FAIL("two buffers: opened %ld times, asked for %ld times", opened, asked);
}

static long imports_now(void)
{
    return count_now("multilane_standin_imports");
}

/* Chunks of different sizes, one mapped behind the other. */
static size_t row_place(int chunk)
{
    return (size_t) CHUNK * (size_t) (chunk < 2 ? chunk : chunk + 1);
}

static void row_chunk_map(driver_ptr row, int chunk)
{
    chunk_map(row + row_place(chunk), row_place(chunk + 1) - row_place(chunk));
}

static void row_message(unsigned char *from, unsigned char *to, size_t size, unsigned seed)
{
    if (rank % 2 == 0) {
        fill(from, size, seed);
        MPI_Send(from, (int) size, MPI_BYTE, other(), 39, MPI_COMM_WORLD);
    } else {
        MPI_Recv(to, (int) size, MPI_BYTE, other(), 39, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(to, size, 0, seed, 0, "over the borders of chunks");
    }
}

/* Messages over all of these chunks and over some, at either end and to the host; then with another
 * chunk in the place of one. */
static void row_of(int chunks)
{
    enum { ROUNDS = 3, CUT = 4097 };
    size_t size = row_place(chunks), replaced = row_place(chunks / 2);
    unsigned char *host = malloc(size);
    driver_ptr row;
    must(driver.range_reserve(&row, size, 0, 0, 0), "cuMemAddressReserve");
    unsigned char *bytes = (unsigned char *) (uintptr_t) row;
    for (int i = 0; i < chunks; i++)
        row_chunk_map(row, i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        row_message(bytes + CUT, bytes + 3, size - CUT, 4 * round);
        row_message(bytes + CHUNK - 1, bytes, size - CHUNK - 30, 4 * round + 1);
        row_message(bytes + replaced - CUT, host, 2 * CUT, 4 * round + 2);
        row_message(host, bytes + replaced - 7, CHUNK + 6, 4 * round + 3);
        size_t length = row_place(chunks / 2 + 1) - replaced;
        must(driver.range_unmap(row + replaced, length), "cuMemUnmap");
        row_chunk_map(row, chunks / 2);
    }
    must(driver.range_unmap(row, size), "cuMemUnmap");
    must(driver.range_free(row, size), "cuMemAddressFree");
    free(host);
}

/* Mapped memory, in one chunk of it and over the borders of several; at a place where other memory
 * was a moment ago. Prints whether the other process's memory was opened. */
static void chapter_mapped(void)
{
    static const size_t lengths[] = {100, 300000, 1500000};
    long all = 0, opened = imports_now();
    if (!driver.range_map) {
        printf("device: the driver has no mapped memory\n");
        return;
    }
    for (int i = 0; has_partner() && i < 3; i++) {
        between(MAPPED, MAPPED, lengths[i], 0);
        between(MAPPED, DEVICE, lengths[i], 0);
        between(MAPPED, HOST, lengths[i], 0);
        between(DEVICE, MAPPED, lengths[i], 0);
    }
    for (unsigned round = 0; has_partner() && round < 6; round++) {
        size_t from = round % 2 ? CHUNK - 200000 : 0, size = 400000;
        unsigned char *bytes = memory_new(MAPPED, 0);
        if (rank % 2 == 0) {
            fill(bytes + from, size, round);
            MPI_Send(bytes + from, (int) size, MPI_BYTE, other(), 12, MPI_COMM_WORLD);
        } else {
            MPI_Recv(bytes + from, (int) size, MPI_BYTE, other(), 12, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            check(bytes + from, size, 0, round, 0, "in or between two chunks");
        }
        memory_free(MAPPED, bytes);
    }
    for (int i = 0; has_partner() && i < 3; i++)
        row_of(i < 2 ? 2 + i : 40);
    opened = imports_now() - opened;
    MPI_Allreduce(&opened, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: %s of the other process was opened\n", all ? "memory" : "no memory");
}

/* Whatever a program that measures has forced, device memory goes as planned. */
static void chapter_forced(void)
{
    const struct multilane_measure *measure = dlsym(RTLD_DEFAULT, MULTILANE_MEASURE_SYMBOL);
    static const int forced[] = {MODEL_EAGER_COPY, MODEL_RNDV_AM, MODEL_RNDV_GET, MODEL_RNDV_PUT,
                                 MULTILANE_MEASURE_PLANNED};
    if (!has_partner())
        return;
    if (!measure) {
        FAIL("there is no %s", MULTILANE_MEASURE_SYMBOL);
        return;
    }
    for (size_t i = 0; i < sizeof(forced) / sizeof(forced[0]); i++) {
        measure->force(other(), forced[i], 0);
        between(DEVICE, DEVICE, 100, 0);
        between(DEVICE, DEVICE, 1048579, 0);
        between(DEVICE, HOST, 1048579, 0);
        between(HOST, DEVICE, 1048579, 0);
    }
}

/* Other memory at the same place: handles that are kept must not bring back the old one. */
static void chapter_reuse(void)
{
    if (!has_partner())
        return;
    size_t size = 200000;
    for (unsigned round = 0; round < 100; round++) {
        /* Of changing length, so that the places overlap and are not always the same. */
        size_t length = size - round % 3 * 70000;
        unsigned char *bytes = memory_new(DEVICE, length);
        if (rank % 2 == 0) {
            fill(bytes, length, round);
            MPI_Send(bytes, (int) length, MPI_BYTE, other(), 5, MPI_COMM_WORLD);
        } else {
            MPI_Recv(bytes, (int) length, MPI_BYTE, other(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(bytes, length, 0, round, 0, "memory allocated anew");
        }
        memory_free(DEVICE, bytes);
    }
}

/* More at once than there are slots, in both directions, received in another order. */
static void chapter_many(void)
{
    enum { MANY = 48 };
    static const size_t lengths[] = {100, 5000, 100000, 700001};
    unsigned char *out[MANY], *in[MANY];
    MPI_Request requests[2 * MANY];
    if (!has_partner())
        return;
    for (int length = 0; length < 4; length++) {
        size_t size = lengths[length];
        for (int i = 0; i < MANY; i++) {
            out[i] = memory_new(DEVICE, size);
            in[i] = memory_new(i % 4 ? DEVICE : HOST, size);
            fill(out[i], size, (unsigned) i);
            if (i % 2)
                MPI_Issend(out[i], (int) size, MPI_BYTE, other(), i, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Isend(out[i], (int) size, MPI_BYTE, other(), i, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = MANY - 1; i >= 0; i--)
            MPI_Irecv(in[i], (int) size, MPI_BYTE, other(), i, MPI_COMM_WORLD, &requests[MANY + i]);
        MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            check(in[i], size, 0, (unsigned) i, 0, "one of many");
            memory_free(DEVICE, out[i]);
            memory_free(i % 4 ? DEVICE : HOST, in[i]);
        }
    }
}

/* --- directly, by RDMA ---------------------------------------------------------------------------
 */

/* What the stand-in for an RDMA device that registers dmabufs counts. */
static long registrations_now(void)
{
    return count_now("multilane_standin_registrations");
}

/* Of the driver's, in place of a lane. */
static long driver_flushes_now(void)
{
    return count_now("multilane_standin_driver_flushes");
}

static long flushes_now(void)
{
    return count_now("multilane_standin_flushes");
}

/* The stand-in says that its devices need no flush. */
static bool device_orders(void)
{
    const char *settings = getenv("MULTILANE_FAKE_CUDA");
    return settings && strstr(settings, "orders=200");
}

/* From somewhere in a buffer to somewhere in another. Where lanes reach device memory no copy is
 * made; and what came into it was flushed, at the receiver and nowhere else. */
static void direct_round(enum kind from, enum kind to, size_t size, bool must)
{
    enum { AT = 4099, REST = 64, BEFORE = 77 };
    bool is_sender = rank % 2 == 0;
    enum kind kind = is_sender ? from : to;
    size_t room = AT + size + REST;
    unsigned char *bytes = memory_new(kind, room);
    unsigned seed = (unsigned) size + from * 3;
    char what[96];
    snprintf(what, sizeof(what), "%zu bytes from %s to %s memory", size, kind_names[from],
             kind_names[to]);
    fill(bytes, room, BEFORE);
    if (is_sender)
        fill(bytes + AT, size, seed);
    MPI_Barrier(MPI_COMM_WORLD);
    long copies = copies_now(), flushes = flushes_now();
    if (is_sender)
        MPI_Ssend(bytes + AT, (int) size, MPI_BYTE, other(), 17, MPI_COMM_WORLD);
    else
        MPI_Recv(bytes + AT, (int) size + REST, MPI_BYTE, other(), 17, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    copies = copies_now() - copies;
    flushes = flushes_now() - flushes;
    if (must && copies)
        FAIL("%s: %ld copies of the driver's", what, copies);
    if (must && !is_sender && (flushes > 0) != (to == DEVICE && !device_orders()))
        FAIL("%s: %ld flushes", what, flushes);
    if (is_sender && flushes)
        FAIL("%s: %ld flushes at the sender", what, flushes);
    unsigned char *came = malloc(room);
    memory_write(came, bytes, room);
    for (size_t i = 0; i < room; i++) {
        bool is_inside = i >= AT && i < AT + size;
        if (came[i] == (is_inside ? pattern(i - AT, seed) : pattern(i, BEFORE)))
            continue;
        FAIL("%s: byte %zu is wrong", what, i);
        break;
    }
    free(came);
    memory_free(kind, bytes);
}

/* The same memory is registered once; other memory at its address anew. */
static void direct_again(bool must)
{
    enum { SIZE = 300000, ROUNDS = 5, LANES_MAX = 2 };
    for (unsigned turn = 0; turn < 3; turn++) {
        unsigned char *bytes = memory_new(DEVICE, SIZE);
        long before = registrations_now();
        for (unsigned round = 0; round < ROUNDS; round++) {
            unsigned seed = turn * ROUNDS + round;
            if (rank % 2 == 0) {
                fill(bytes, SIZE, seed);
                MPI_Send(bytes, SIZE, MPI_BYTE, other(), 18, MPI_COMM_WORLD);
            } else {
                MPI_Recv(bytes, SIZE, MPI_BYTE, other(), 18, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check(bytes, SIZE, 0, seed, 0, "the same memory again");
            }
        }
        before = registrations_now() - before;
        if (must && (before < 1 || before > LANES_MAX))
            FAIL("turn %u: %ld registrations for %d messages", turn, before, ROUNDS);
        memory_free(DEVICE, bytes);
    }
}

/* All combinations in which one end is a device's. Prints whether they went directly: that the
 * first message tells, and then all of them do but what the driver gives no dmabuf of. */
static void chapter_direct(void)
{
    static const size_t lengths[] = {1, 8, 100, 5000, 131073, 700001};
    long before = registrations_now(), all = 0;
    if (!has_partner())
        return;
    direct_round(DEVICE, DEVICE, 100000, false);
    bool must = registrations_now() > before;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        direct_round(DEVICE, DEVICE, lengths[i], must);
        direct_round(DEVICE, HOST, lengths[i], must);
        direct_round(HOST, DEVICE, lengths[i], must);
    }
    direct_round(MANAGED, DEVICE, 200000, false);
    direct_round(DEVICE, MANAGED, 200000, false);
    between(MAPPED, MAPPED, 400000, 0);
    direct_again(must);
    before = registrations_now() - before;
    MPI_Allreduce(&before, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: %s went directly\n", all ? "messages" : "no message");
}

/* The stand-in fails the lane's flush: the driver flushes, and where that cannot, or fails, the
 * receive ends in an error, as its bytes may not be there. That ends the connection that flushes,
 * and messages pass through memory of the host until there is another. */
static void chapter_unflushed(void)
{
    int size = 100000, class = MPI_SUCCESS;
    const char *settings = getenv("MULTILANE_FAKE_CUDA");
    bool by_driver = !settings || !strstr(settings, "flush");
    unsigned char *bytes = memory_new(DEVICE, (size_t) size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned round = 0; has_partner() && round < 3; round++) {
        long before = driver_flushes_now();
        if (rank % 2 == 0) {
            fill(bytes, (size_t) size, round);
            MPI_Send(bytes, size, MPI_BYTE, other(), 19, MPI_COMM_WORLD);
            continue;
        }
        MPI_Error_class(
            MPI_Recv(bytes, size, MPI_BYTE, other(), 19, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            &class);
        bool is_staged = round > 0 && class == MPI_SUCCESS && driver_flushes_now() == before;
        if (!is_staged && class != (by_driver ? MPI_SUCCESS : MPI_ERR_OTHER))
            FAIL("a receive that was not flushed by its lane: error class %d", class);
        if (!is_staged && (driver_flushes_now() > before) != by_driver)
            FAIL("%ld flushes of the driver's", driver_flushes_now() - before);
        if (by_driver || is_staged)
            check(bytes, (size_t) size, 0, round, 0, "a receive that the driver flushed");
    }
    memory_free(DEVICE, bytes);
    if (by_driver && rank == 0)
        printf("device: the driver flushed\n");
}

/* Sixteen synchronous sends that wait must not keep a later message from going first. */
static void chapter_order(void)
{
    enum { WAITING = 40 };
    size_t small = 100000, large = 3000000;
    MPI_Request requests[WAITING];
    unsigned char *bytes[WAITING + 1];
    if (!has_partner())
        return;
    for (int i = 0; i <= WAITING; i++)
        bytes[i] = memory_new(DEVICE, i < WAITING ? small : large);
    if (rank % 2 == 0) {
        for (int i = 0; i < WAITING; i++) {
            fill(bytes[i], small, (unsigned) i);
            MPI_Issend(bytes[i], (int) small, MPI_BYTE, other(), 100 + i, MPI_COMM_WORLD,
                       &requests[i]);
        }
        fill(bytes[WAITING], large, WAITING);
        MPI_Send(bytes[WAITING], (int) large, MPI_BYTE, other(), 99, MPI_COMM_WORLD);
        MPI_Waitall(WAITING, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(bytes[WAITING], (int) large, MPI_BYTE, other(), 99, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check(bytes[WAITING], large, 0, WAITING, 0, "the message that goes first");
        for (int i = 0; i < WAITING; i++) {
            MPI_Recv(bytes[i], (int) small, MPI_BYTE, other(), 100 + i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            check(bytes[i], small, 0, (unsigned) i, 0, "a message that waited");
        }
    }
    for (int i = 0; i <= WAITING; i++)
        memory_free(DEVICE, bytes[i]);
}

/* More messages wait for their receives than there are slots, and hold them all: a later message
 * that is received first goes all the same. */
static void chapter_held(void)
{
    enum { WAITING = 400, SMALL = 4096, LARGE = (5 << 20) + 1000 };
    MPI_Request requests[WAITING + 1];
    if (!has_partner())
        return;
    unsigned char *small = memory_new(DEVICE, WAITING * SMALL), *large = memory_new(DEVICE, LARGE);
    if (rank % 2 == 0) {
        fill(small, WAITING * SMALL, 1);
        fill(large, LARGE, 2);
        for (int i = 0; i < WAITING; i++)
            MPI_Isend(small + i * SMALL, SMALL, MPI_BYTE, other(), 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(large, LARGE, MPI_BYTE, other(), 2, MPI_COMM_WORLD, &requests[WAITING]);
        MPI_Waitall(WAITING + 1, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(large, LARGE, MPI_BYTE, other(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < WAITING; i++)
            MPI_Recv(small + i * SMALL, SMALL, MPI_BYTE, other(), 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(large, LARGE, 0, 2, 0, "the message that is received first");
        check(small, WAITING * SMALL, 0, 1, 0, "the messages that waited");
    }
    memory_free(DEVICE, small);
    memory_free(DEVICE, large);
}

static void chapter_collective(void)
{
    for (int i = 0; i < SIZES; i++) {
        unsigned char *bytes = memory_new(DEVICE, sizes[i]);
        if (rank == 0)
            fill(bytes, sizes[i], 6);
        MPI_Bcast(bytes, (int) sizes[i], MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        check(bytes, sizes[i], 0, 6, 0, "a broadcast");
        memory_free(DEVICE, bytes);
    }
}

/* Collectives that leave a rank's own part where it is. */
static void chapter_in_place(void)
{
    size_t part = 50000, size = part * (size_t) ranks;
    unsigned char *bytes = memory_new(DEVICE, size);
    unsigned char *mine = bytes + (size_t) rank * part;
    int count = (int) part;
    for (unsigned round = 0; round < 3; round++) {
        fill(mine, part, round + (unsigned) rank);
        if (round == 0)
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, count, MPI_BYTE, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, bytes, count, MPI_BYTE, 0, MPI_COMM_WORLD);
        else
            MPI_Gather(mine, count, MPI_BYTE, NULL, 0, MPI_BYTE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < ranks && (rank == 0 || round == 0); i++)
            check(bytes + (size_t) i * part, part, 0, round + (unsigned) i, 0, "a gathered part");
    }
    if (rank == 0) {
        fill(bytes, size, 77);
        MPI_Scatter(bytes, count, MPI_BYTE, MPI_IN_PLACE, 0, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        unsigned char *wanted = malloc(size), *came = malloc(part);
        for (size_t i = 0; i < size; i++)
            wanted[i] = pattern(i, 77);
        MPI_Scatter(NULL, 0, MPI_BYTE, mine, count, MPI_BYTE, 0, MPI_COMM_WORLD);
        memory_write(came, mine, part);
        if (memcmp(came, wanted + (size_t) rank * part, part) != 0)
            FAIL("a scattered part: other bytes came");
        free(wanted);
        free(came);
    }
    memory_free(DEVICE, bytes);
}

/* One-sided operations with buffers on a device are refused, and change nothing of the window. */
static void one_sided_refused(MPI_Win window)
{
    unsigned char *bytes = memory_new(DEVICE, 64), host[64];
    int next = (rank + 1) % ranks, values[2] = {0, 0}, *on_device = (int *) (void *) bytes;
    MPI_Request request;
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window);
    int codes[] = {
        MPI_Put(bytes, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, window),
        MPI_Get(bytes, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, window),
        MPI_Accumulate(bytes, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window),
        MPI_Get_accumulate(values, 1, MPI_INT, bytes, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM,
                           window),
        MPI_Fetch_and_op(values, bytes, MPI_INT, next, 0, MPI_SUM, window),
        MPI_Compare_and_swap(values, on_device, values + 1, MPI_INT, next, 0, window),
        MPI_Rput(bytes, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, window, &request),
        MPI_Rget(bytes, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, window, &request),
        MPI_Raccumulate(bytes, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, window, &request),
        MPI_Rget_accumulate(bytes, 1, MPI_INT, values, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM,
                            window, &request)};
    MPI_Get(host, 64, MPI_BYTE, rank, 0, 64, MPI_BYTE, window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        int class = MPI_SUCCESS;
        MPI_Error_class(codes[i], &class);
        if (class != MPI_ERR_BUFFER)
            FAIL("one-sided operation %zu from device memory: the error is of class %d", i, class);
    }
    if (host[0] != (rank + ranks - 1) % ranks + 1)
        FAIL("a window after what was refused: %u is there", host[0]);
    memory_free(DEVICE, bytes);
}

/* With MPI_NO_OP the origin is not looked at. */
static void no_op_takes_any_origin(MPI_Win window, const unsigned char *device, unsigned char is)
{
    unsigned char got = 0, gotten = 0;
    MPI_Win_fence(0, window);
    MPI_Fetch_and_op(device, &got, MPI_UNSIGNED_CHAR, rank, 0, MPI_NO_OP, window);
    MPI_Get_accumulate(device, 1, MPI_UNSIGNED_CHAR, &gotten, 1, MPI_UNSIGNED_CHAR, rank, 0, 1,
                       MPI_UNSIGNED_CHAR, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    if (got != is || gotten != is)
        FAIL("MPI_NO_OP gets %u and %u, not %u", got, gotten, is);
}

static void attach_refused(void)
{
    unsigned char *bytes = memory_new(DEVICE, 4096);
    MPI_Win window;
    int class = MPI_SUCCESS;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_attach(window, bytes, 4096), &class);
    if (class != MPI_ERR_RMA_ATTACH)
        FAIL("attached device memory: the error is of class %d", class);
    MPI_Win_free(&window);
    memory_free(DEVICE, bytes);
}

/* Windows in device memory of one process are refused in all, and those in host memory are not. */
static void chapter_window(void)
{
    unsigned char *bytes = memory_new(DEVICE, 4096), host[64] = {0}, mine[64];
    MPI_Win window;
    int class = MPI_SUCCESS;
    memset(mine, rank + 1, sizeof(mine));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(
        MPI_Win_create(rank ? host : bytes, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), &class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (class != MPI_ERR_WIN)
        FAIL("a window in device memory: the error is of class %d", class);
    MPI_Win_create(host, sizeof(host), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(mine, sizeof(mine), MPI_BYTE, (rank + 1) % ranks, 0, sizeof(mine), MPI_BYTE, window);
    MPI_Win_fence(0, window);
    if (host[0] != (rank + ranks - 1) % ranks + 1)
        FAIL("a window in host memory: %u came", host[0]);
    one_sided_refused(window);
    no_op_takes_any_origin(window, bytes, host[0]);
    MPI_Win_free(&window);
    attach_refused();
    memory_free(DEVICE, bytes);
}

/* Memory that is no longer there: an error, not a crash. Only said of what was used before. */
static void chapter_freed(void)
{
    unsigned char *bytes = memory_new(DEVICE, 4096);
    int class = MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    fill(bytes, 4096, 1);
    MPI_Request request;
    MPI_Irecv(bytes + 2048, 100, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(bytes, 100, MPI_BYTE, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memory_free(DEVICE, bytes);
    MPI_Error_class(MPI_Send(bytes, 100, MPI_BYTE, 0, 0, MPI_COMM_SELF), &class);
    if (class != MPI_ERR_BUFFER)
        FAIL("a send from freed device memory: error class %d", class);
}

/* The stand-in fails copies after some: an error at the end that meets it, and no end waits. */
static void chapter_fails(void)
{
    size_t size = 3000000;
    unsigned char *bytes = memory_new(DEVICE, size);
    int class, errors = 0, all = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 5; round++) {
        int rc = rank % 2 == 0 ? MPI_Send(bytes, (int) size, MPI_BYTE, other(), 7, MPI_COMM_WORLD)
                               : MPI_Recv(bytes, (int) size, MPI_BYTE, other(), 7, MPI_COMM_WORLD,
                                          MPI_STATUS_IGNORE);
        MPI_Error_class(rc, &class);
        errors += class != MPI_SUCCESS;
    }
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: %s\n", all ? "errors were reported" : "no error was reported");
}

/* The stand-in fails a copy and then knows nothing any more: errors, and the host's messages go on.
 */
static void chapter_lost(void)
{
    size_t size = 3000000;
    unsigned char *bytes = memory_new(DEVICE, size), *host = calloc(1, size);
    int class = MPI_SUCCESS, sum = 0;
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Isend(host, (int) size, MPI_BYTE, rank, 7, MPI_COMM_WORLD, &request);
    MPI_Error_class(
        MPI_Recv(bytes, (int) size, MPI_BYTE, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    if (class == MPI_SUCCESS)
        FAIL("a message was received on a device that is lost");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) {
        int rc = MPI_Send(bytes, i ? 1 : (int) size, MPI_BYTE, rank, 14, MPI_COMM_WORLD);
        MPI_Error_class(rc, &class);
        if (class == MPI_SUCCESS)
            FAIL("a message was sent from a device that is lost");
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks * (ranks - 1) / 2)
        FAIL("the host's messages suffer");
    free(host);
}

static void device_begin(void);

/* Programs may reset their devices, which ends all that anybody has there, and use them again. */
static void chapter_reset(void)
{
    int devices = 0;
    if (!has_partner())
        return;
    must(driver.device_count(&devices), "cuDeviceGetCount");
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < SIZES; i++)
            between(DEVICE, DEVICE, sizes[i], 0);
        typed(1, DEVICE, DEVICE, false);
        memory_new(DEVICE, 1000); /* is never freed */
        MPI_Barrier(MPI_COMM_WORLD);
        for (int device = 0; device < devices; device++)
            must(cuda_reset(device), "cuDevicePrimaryCtxReset");
        if (turn < 2) /* and at last Open MPI ends after them */
            device_begin();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("device: the devices were reset\n");
}

/* The lanes to the other process get lost while messages are under way, and errors are returned:
 * whatever waits ends in one. */
static void chapter_unreachable(void)
{
    enum { WAITING = 4 };
    static const double most_s = 60;
    int size = size_given ? size_given : 50000;
    unsigned char *bytes = memory_new(DEVICE, 6 * (size_t) size);
    MPI_Request requests[WAITING];
    double begin = MPI_Wtime();
    int class = MPI_SUCCESS;
    if (ranks != 2) {
        fprintf(stderr, "device: chapter unreachable is for 2 ranks, not %d\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < WAITING; i++)
        if (i % 2)
            MPI_Isend(bytes + i * size, size, MPI_BYTE, other(), 100 + i, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Irecv(bytes + i * size, size, MPI_BYTE, other(), 200 + i, MPI_COMM_WORLD,
                      &requests[i]);
    while (class == MPI_SUCCESS && MPI_Wtime() - begin < most_s)
        MPI_Error_class(MPI_Sendrecv(bytes + 4 * size, size, MPI_BYTE, other(), 16,
                                     bytes + 5 * size, size, MPI_BYTE, other(), 16, MPI_COMM_WORLD,
                                     MPI_STATUS_IGNORE),
                        &class);
    if (class == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < WAITING; i++)
        if (MPI_Wait(&requests[i], MPI_STATUS_IGNORE) == MPI_SUCCESS)
            FAIL("what waits for a lost process ends without an error");
    printf("device: rank %d went on, %d failures\n", rank, failures);
}

static bool has_come(const unsigned char *from, size_t size, unsigned seed)
{
    unsigned char *bytes = malloc(size);
    size_t same = 0;
    memory_write(bytes, from, size);
    while (same < size && bytes[same] == pattern(same, seed))
        same++;
    free(bytes);
    return same == size;
}

/* What the progress thread is for: a message moves while both ranks are out of MPI. */
static void chapter_computing(void)
{
    static const double most_s = 60;
    static const size_t sizes[] = {20000, 4 << 20};
    for (int i = 0; i < 2; i++) {
        size_t size = sizes[i];
        unsigned char *out = memory_new(DEVICE, size), *in = memory_new(DEVICE, size);
        MPI_Request requests[2];
        fill(out, size, 50 + (unsigned) rank);
        fill(in, size, 3);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(in, (int) size, MPI_BYTE, other(), 30, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, (int) size, MPI_BYTE, other(), 30, MPI_COMM_WORLD, &requests[1]);
        double begin = MPI_Wtime(); /* which makes no progress */
        while (!has_come(in, size, 50 + (unsigned) other()) && MPI_Wtime() - begin < most_s)
            usleep(1000);
        if (!has_come(in, size, 50 + (unsigned) other()))
            FAIL("%zu bytes have not come while both ranks were out of MPI", size);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        memory_free(DEVICE, out);
        memory_free(DEVICE, in);
    }
}

/* Another thread of the program captures a graph meanwhile, which only calls that know of it leave
 * whole. */
static struct capture {
    driver_context context;
    driver_result begun, ended;
    sem_t has_begun, may_end;
} capture;

static driver_result capture_call(const char *name, driver_stream stream, void **graph)
{
    driver_result (*begin)(driver_stream, int);
    driver_result (*end)(driver_stream, void **);
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol)
        return DRIVER_NOT_FOUND;
    memcpy(&begin, &symbol, sizeof(begin));
    memcpy(&end, &symbol, sizeof(end));
    return graph ? end(stream, graph) : begin(stream, 0);
}

static void *capture_run(void *unused)
{
    driver_stream stream;
    void *graph;
    must(driver.context_push(capture.context), "cuCtxPushCurrent");
    must(driver.stream_create(&stream, DRIVER_STREAM_NON_BLOCKING), "cuStreamCreate");
    capture.begun = capture_call("cuStreamBeginCapture_v2", stream, NULL);
    sem_post(&capture.has_begun);
    sem_wait(&capture.may_end);
    capture.ended = capture_call("cuStreamEndCapture", stream, &graph);
    must(driver.stream_destroy(stream), "cuStreamDestroy");
    return unused;
}

static void chapter_capture(void)
{
    static const size_t sizes[] = {8, 5000, 300000, 2 << 20};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    unsigned char *bytes[COUNT];
    pthread_t thread;
    for (int i = 0; i < COUNT; i++) {
        bytes[i] = memory_new(DEVICE, sizes[i]);
        fill(bytes[i], sizes[i], 60 + (unsigned) rank);
    }
    must(driver.context_pop(&capture.context), "cuCtxPopCurrent");
    must(driver.context_push(capture.context), "cuCtxPushCurrent");
    sem_init(&capture.has_begun, 0, 0);
    sem_init(&capture.may_end, 0, 0);
    pthread_create(&thread, NULL, capture_run, NULL);
    sem_wait(&capture.has_begun);
    must(capture.begun, "cuStreamBeginCapture");
    for (int i = 0; has_partner() && i < COUNT; i++) {
        if (rank % 2 == 0)
            MPI_Send(bytes[i], (int) sizes[i], MPI_BYTE, other(), 31, MPI_COMM_WORLD);
        else
            MPI_Recv(bytes[i], (int) sizes[i], MPI_BYTE, other(), 31, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    sem_post(&capture.may_end);
    pthread_join(thread, NULL);
    if (capture.ended != DRIVER_SUCCESS)
        FAIL("messages broke a capture: %d", capture.ended);
    for (int i = 0; i < COUNT; i++) {
        if (has_partner() && rank % 2)
            check(bytes[i], sizes[i], 0, 60 + (unsigned) other(), 0, "while a graph is captured");
        memory_free(DEVICE, bytes[i]);
    }
}

/* Announced messages between host and device, with the lane of device memory: the end whose memory
 * is the host's copies all of it at once, whichever end that is. Shorter ones go by messages, whose
 * bytes the device's end copies. */
static void chapter_ends(void)
{
    static const size_t sizes[] = {5000, 8 << 20};
    for (int i = 0; has_partner() && i < 4; i++) {
        bool is_sender = rank % 2 == 0, to_device = i / 2, is_long = i % 2;
        size_t size = sizes[is_long];
        enum kind kind = is_sender == to_device ? HOST : DEVICE;
        unsigned char *bytes = memory_new(kind, size);
        fill(bytes, size, is_sender ? 70 : 71);
        MPI_Barrier(MPI_COMM_WORLD);
        long copies = copies_now();
        if (is_sender)
            MPI_Ssend(bytes, (int) size, MPI_BYTE, other(), 70, MPI_COMM_WORLD);
        else
            MPI_Recv(bytes, (int) size, MPI_BYTE, other(), 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        copies = copies_now() - copies;
        if (is_long ? copies != (kind == HOST) : (copies != 0) != (kind == DEVICE))
            FAIL("%zu bytes %s a device: %ld copies at the end with %s memory", size,
                 to_device ? "to" : "from", copies, kind_names[kind]);
        if (!is_sender)
            check(bytes, size, 0, 70, 71, "between host and device");
        memory_free(kind, bytes);
    }
}

/* Is this a stand-in whose memory the processor cannot touch? A child tries, and must crash. */
static void check_stand_in(void)
{
    const unsigned char *bytes = memory_new(DEVICE, 4096);
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*(const volatile unsigned char *) bytes);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status))
        FAIL("touching device memory does not crash, so this run would prove little");
    memory_free(DEVICE, (unsigned char *) (uintptr_t) bytes);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool is_alone; /* only run when it is named: it needs more than a stand-in that works */
} chapters[] = {
    {"stand-in", check_stand_in, false},
    {"kinds", chapter_kinds, false},
    {"self", chapter_self, false},
    {"self-long", chapter_self_long, true},
    {"self-chunk", chapter_self_chunk, true},
    {"few", chapter_few, true},
    {"types", chapter_types, false},
    {"truncate", chapter_truncate, false},
    {"persistent", chapter_persistent, false},
    {"probe", chapter_probe, false},
    {"devices", chapter_devices, false},
    {"forced", chapter_forced, false},
    {"mapped", chapter_mapped, false},
    {"reuse", chapter_reuse, false},
    {"many", chapter_many, false},
    {"questions", chapter_questions, false},
    {"order", chapter_order, false},
    {"held", chapter_held, true},
    {"collective", chapter_collective, false},
    {"packed", chapter_packed, true},
    {"in-place", chapter_in_place, true},
    {"window", chapter_window, true},
    {"freed", chapter_freed, false},
    {"halo", chapter_halo, true},
    {"mapped-again", chapter_mapped_again, true},
    {"calls", chapter_calls, true},
    {"opened", chapter_opened, true},
    {"imported", chapter_imported, true},
    {"ends", chapter_ends, true},
    {"measured", chapter_measured, true},
    {"locked", chapter_locked, true},
    {"busy", chapter_busy, true},
    {"survivors", chapter_survivors, true},
    {"asked", chapter_asked, true},
    {"asking", chapter_asking, true},
    {"refused", chapter_refused, true},
    {"in-the-way", chapter_in_the_way, true},
    {"direct", chapter_direct, true},
    {"unflushed", chapter_unflushed, true},
    {"reset", chapter_reset, true},
    {"unreachable", chapter_unreachable, true},
    {"fails", chapter_fails, true},
    {"lost", chapter_lost, true},
    {"computing", chapter_computing, true},
    {"capture", chapter_capture, true},
};
enum { CHAPTERS = sizeof(chapters) / sizeof(chapters[0]) };

/* Ranks take turns at the devices. */
static void device_begin(void)
{
    driver_context context;
    const char *given = getenv("OMPI_COMM_WORLD_RANK");
    int count = 0, turn = given ? atoi(given) : 0;
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || !driver_load()) {
        fprintf(stderr, "device: no driver: %s\n", driver_why());
        exit(1);
    }
    must(driver.init(0), "cuInit");
    must(driver.device_count(&count), "cuDeviceGetCount");
    must(driver.primary_retain(&context, turn % count), "cuDevicePrimaryCtxRetain");
    must(driver.context_push(context), "cuCtxPushCurrent");
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    int all = 0, run = 0;
    size_given = argc > 2 ? atoi(argv[2]) : 0;
    device_begin();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < CHAPTERS; i++) {
        if (wanted ? strcmp(wanted, chapters[i].name) != 0 : chapters[i].is_alone)
            continue;
        chapters[i].run();
        run++;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && !wanted)
        printf("device: %s\n", all ? "failed" : "all chapters passed");
    MPI_Finalize();
    if (run == 0)
        fprintf(stderr, "device: there is no chapter %s\n", wanted);
    return run == 0 || all > 0 || failures > 0;
}
