/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a lane sends from the user's memory: that the sender copies none of their bytes,
 * that a send does not end before its memory may be written again, and that what cannot be sent so
 * is copied and arrives. Two ranks. "in_place NAME": the BTL of that name counts what it copies;
 * "in_place NAME copies": every message is expected to be copied. */
#include <linux/capability.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES ((size_t) 64 << 10)
#define TURNS 20
#define AHEAD 8 /* messages under way at once */

static int rank, failures;

#define HOLDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: does not hold: %s; ", __FILE__, __LINE__, rank,       \
                    #condition);                                                                   \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* --- counters --- */

struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int is_there;
};

static struct counter copied_by_btl, copied_by_pml, in_place;

static void counter_open(struct counter *counter, const char *wanted)
{
    int count;

    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && !counter->is_there; i++) {
        char name[128];
        int length = sizeof(name), verbosity, class, binding, readonly, continuous, atomic, values;
        MPI_Datatype type;
        MPI_T_enum enumeration;

        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &enumeration, NULL,
                                NULL, &binding, &readonly, &continuous, &atomic) == MPI_SUCCESS &&
            strcmp(name, wanted) == 0) {
            MPI_T_pvar_session_create(&counter->session);
            counter->is_there = MPI_T_pvar_handle_alloc(counter->session, i, NULL, &counter->handle,
                                                        &values) == MPI_SUCCESS;
        }
    }
    HOLDS(counter->is_there, "no variable %s", wanted);
}

static unsigned long long counter_read(const struct counter *counter)
{
    unsigned long long value = 0;

    if (counter->is_there)
        MPI_T_pvar_read(counter->session, counter->handle, &value);
    return value;
}

struct counts {
    unsigned long long copied, in_place;
};

static struct counts counts_now(void)
{
    return (struct counts){counter_read(&copied_by_btl) + counter_read(&copied_by_pml),
                           counter_read(&in_place)};
}

/* --- messages --- */

static unsigned char byte_of(int turn, size_t at)
{
    return (unsigned char) (turn * 31 + (int) (at % 251) + (int) (at >> 12));
}

static void fill(unsigned char *memory, int turn)
{
    for (size_t i = 0; i < BYTES; i++)
        memory[i] = byte_of(turn, i);
}

static void expect_bytes(const unsigned char *memory, int turn, const char *what)
{
    size_t wrong = 0;

    for (size_t i = 0; i < BYTES; i++)
        wrong += memory[i] != byte_of(turn, i);
    HOLDS(wrong == 0, "%s, turn %d: %zu bytes are wrong", what, turn, wrong);
}

static unsigned char *memory_new(size_t bytes)
{
    unsigned char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    memset(memory, 0, bytes);
    return memory;
}

/* One after the other from the same memory, which is written again as soon as the send has ended.
 */
static void sends_keep_their_bytes(unsigned char *memory, int kind)
{
    static const char *const names[] = {"MPI_Send", "MPI_Ssend", "MPI_Isend"};
    MPI_Request request;

    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 1) {
            MPI_Recv(memory, (int) BYTES, MPI_BYTE, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect_bytes(memory, turn, names[kind]);
            continue;
        }
        fill(memory, turn);
        if (kind == 0) {
            MPI_Send(memory, (int) BYTES, MPI_BYTE, 1, turn, MPI_COMM_WORLD);
        } else if (kind == 1) {
            MPI_Ssend(memory, (int) BYTES, MPI_BYTE, 1, turn, MPI_COMM_WORLD);
        } else {
            int done = 0;

            MPI_Isend(memory, (int) BYTES, MPI_BYTE, 1, turn, MPI_COMM_WORLD, &request);
            while (!done)
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        memset(memory, 0xee, BYTES);
    }
}

/* Many at once, of a length that is no multiple of anything, from memory that begins nowhere. */
static void many_at_once(unsigned char *memory)
{
    const int length = 20011;
    MPI_Request requests[AHEAD];

    for (int turn = 0; turn < TURNS / 2; turn++) {
        for (int i = 0; i < AHEAD; i++) {
            unsigned char *at = memory + i * (length + 13) + 7;

            if (rank == 0) {
                memset(at, turn * AHEAD + i, (size_t) length);
                MPI_Isend(at, length, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(at, length, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(AHEAD, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; rank == 1 && i < AHEAD; i++)
            for (int at = 0; at < length; at++)
                if (memory[i * (length + 13) + 7 + at] != (unsigned char) (turn * AHEAD + i)) {
                    HOLDS(0, "message %d of turn %d is wrong at %d", i, turn, at);
                    break;
                }
    }
}

/* Every second block: no lane gathers so many pieces. */
static void several_pieces(unsigned char *memory)
{
    MPI_Datatype type;

    MPI_Type_vector((int) (BYTES / 512), 256, 512, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 0) {
            fill(memory, turn);
            MPI_Send(memory, 1, type, 1, turn, MPI_COMM_WORLD);
            continue;
        }
        memset(memory, 0, BYTES);
        MPI_Recv(memory, 1, type, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t at = 0; at < BYTES; at++)
            if (at % 512 < 256 && memory[at] != byte_of(turn, at)) {
                HOLDS(0, "turn %d, several pieces: wrong at %zu", turn, at);
                break;
            }
    }
    MPI_Type_free(&type);
}

/* From here on no memory is registered any more, as none may be locked. False: this process may
 * lock what it likes. (It cannot give that up by itself: a device that was opened before that takes
 * no more orders.) */
static int lock_no_more(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    struct rlimit none = {0, 0};

    return syscall(SYS_capget, &head, data) == 0 && !(data[0].effective >> CAP_IPC_LOCK & 1) &&
           setrlimit(RLIMIT_MEMLOCK, &none) == 0;
}

static void check_counts(const char *what, struct counts before, unsigned long long bytes,
                         int copies)
{
    struct counts now = counts_now();

    if (rank != 0)
        return;
    printf("%s: %llu bytes copied, %llu in place\n", what, now.copied - before.copied,
           now.in_place - before.in_place);
    HOLDS(copies ? now.copied - before.copied >= bytes : now.copied == before.copied,
          "%s: %llu bytes copied", what, now.copied - before.copied);
    HOLDS(copies ? now.in_place == before.in_place : now.in_place - before.in_place == bytes,
          "%s: %llu bytes in place", what, now.in_place - before.in_place);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"send", "ssend", "isend"};
    int provided, all, copies = argc > 2 && strcmp(argv[2], "copies") == 0;
    char name[128];
    unsigned char *memory = memory_new(4 * BYTES), *other = memory_new(BYTES);
    struct counts before;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof(name), "btl_%s_copied_bytes", argc > 1 ? argv[1] : "");
    counter_open(&copied_by_btl, name);
    snprintf(name, sizeof(name), "btl_%s_in_place_bytes", argc > 1 ? argv[1] : "");
    counter_open(&in_place, name);
    counter_open(&copied_by_pml, "pml_multilane_copied_bytes");
    MPI_Barrier(MPI_COMM_WORLD);
    before = counts_now();
    several_pieces(memory);
    check_counts("several pieces", before, TURNS * BYTES / 2, 1);
    for (int kind = 0; kind < 3; kind++) {
        MPI_Barrier(MPI_COMM_WORLD);
        before = counts_now();
        sends_keep_their_bytes(memory, kind);
        check_counts(names[kind], before, TURNS * BYTES, copies);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    before = counts_now();
    many_at_once(memory);
    check_counts("many at once", before, UINT64_C(20011) * AHEAD * (TURNS / 2), copies);
    MPI_Barrier(MPI_COMM_WORLD);
    before = counts_now();
    if (lock_no_more()) { /* in both ranks or in none */
        sends_keep_their_bytes(other, 0);
        check_counts("memory that cannot be registered", before, TURNS * BYTES, 1);
    }
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        printf("in_place: all holds\n");
    MPI_T_finalize();
    MPI_Finalize();
    return all != 0;
}
