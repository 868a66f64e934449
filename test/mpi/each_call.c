/* SPDX-License-Identifier: BSD-3-Clause */
/* One fault at each call in turn: a message is sent again and again over the stand-in BTL
 * (test/fake/btl_flaky.h), and each time another call of the sender's or the receiver's BTL is
 * refused, or accepted and not sent for a while, or a lane is cut or breaks there. Each message
 * arrives right while its sender, whose call has ended, computes; each call ends.
 *     each_call FILE BYTES LANES [--cut] [--share N]
 *     each_call FILE BYTES LANES --unread N
 * The two ranks meet in FILE, outside of MPI. --cut: only cuts and breaks, of each of two lanes;
 * the sender is in MPI then. --share N: every Nth case. --unread N: no fault, but so many messages
 * before the receiver reads the first. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fake/btl_flaky.h"

enum { SENDER, RECEIVER, RANKS, ROUNDS = 50, BLOCK = 64, NEVER = 1u << 30 };
static const double most_s = 3;

/* Zeros at first; each word is sequentially consistent, and written by both ranks or one. */
struct meeting {
    _Atomic long arrived, received, ended;
    _Atomic long failures, calls;
    _Atomic int is_back[RANKS];
};

enum mode { SEND, SYNCHRONOUS, ISEND, PERSISTENT, MODES };
static const char *const mode_names[] = {"send", "ssend", "isend", "start"};
static const char *const fault_names[] = {"none",        "no room", "busy", "held",
                                          "unconnected", "cut",     "break"};

static struct meeting *meeting;
static int rank, bytes, share = 1;
static bool cuts;
static unsigned char *buffer;
static long meetings, cases, selected;
static void (*flaky_plan)(enum flaky_fault, int, unsigned, unsigned);
static unsigned (*flaky_end)(void);
static int (*flaky_is_whole)(void);

struct trial {
    enum mode mode;
    enum flaky_fault fault;
    int side, lane;
    unsigned call;
};

static bool breaks(enum flaky_fault fault)
{
    return fault == FLAKY_CUT || fault == FLAKY_BREAK;
}

static void stop(const char *sentence)
{
    fprintf(stderr, "each_call: %s\n", sentence);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void fail(const struct trial *trial, const char *what)
{
    fprintf(stderr, "each_call: %s, %s at call %u of rank %d, lane %d: rank %d: %s\n",
            mode_names[trial->mode], fault_names[trial->fault], trial->call, trial->side,
            trial->lane, rank, what);
    atomic_fetch_add(&meeting->failures, 1);
}

/* --- outside of MPI -----------------------------------------------------------------------------
 */

static void meeting_join(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(*meeting)) != 0)
        stop("the file to meet in cannot be made");
    meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (meeting == MAP_FAILED)
        stop("the file to meet in cannot be mapped");
    close(file);
}

static void progress(void)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, NEVER >> 15, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* What a lane took that is cut or breaks waits for its sender to be in MPI. */
static void meet(void)
{
    meetings += RANKS;
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meetings) {
        if (cuts)
            progress();
        sched_yield();
    }
}

/* Until the counter says so; false: not in time. */
static bool await(_Atomic long *counter, long wanted, bool in_mpi)
{
    double begin = MPI_Wtime();
    while (atomic_load(counter) < wanted) {
        if (MPI_Wtime() - begin > most_s)
            return false;
        if (in_mpi)
            progress();
        sched_yield();
    }
    return true;
}

/* --- one message --------------------------------------------------------------------------------
 */

static void message_send(enum mode mode)
{
    MPI_Request request;
    switch (mode) {
    case SYNCHRONOUS:
        MPI_Ssend(buffer, bytes, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD);
        return;
    case ISEND:
        MPI_Isend(buffer, bytes, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    case PERSISTENT:
        MPI_Send_init(buffer, bytes, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        return;
    default:
        MPI_Send(buffer, bytes, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD);
    }
}

static unsigned char byte_at(int index)
{
    return (unsigned char) (selected + index * 7 + index / 251);
}

static void send_one(const struct trial *trial)
{
    for (int i = 0; i < bytes; i++)
        buffer[i] = byte_at(i);
    message_send(trial->mode);
    memset(buffer, 0, (size_t) bytes); /* it is ours again */
    atomic_fetch_add(&meeting->ended, 1);
    if (!await(&meeting->received, selected + 1, breaks(trial->fault))) {
        fail(trial, "the call has ended, and the receiver waits for the message");
        await(&meeting->received, selected + 1, true);
    }
}

static void receive_one(const struct trial *trial)
{
    memset(buffer, 0, (size_t) bytes);
    MPI_Recv(buffer, bytes, MPI_BYTE, SENDER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    atomic_fetch_add(&meeting->received, 1);
    for (int i = 0; i < bytes; i++)
        if (buffer[i] != byte_at(i)) {
            fail(trial, "a byte is wrong");
            break;
        }
    memset(buffer, 0, (size_t) bytes);
    if (!await(&meeting->ended, selected + 1, breaks(trial->fault))) {
        fail(trial, "the message is here, and its sender waits");
        await(&meeting->ended, selected + 1, true);
    }
}

/* --- lanes that come back -----------------------------------------------------------------------
 */

/* Open MPI counts from the moment that a handle is there: so these stay. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle lanes_lost, lanes_returned;

static void count_open(const char *name, MPI_T_pvar_handle *handle)
{
    int index, count;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, handle, &count) != MPI_SUCCESS)
        stop("there is no such variable of MPI_T");
}

static void counts_open(void)
{
    if (MPI_T_pvar_session_create(&session) != MPI_SUCCESS)
        stop("no session of MPI_T");
    count_open("pml_multilane_lanes_lost", &lanes_lost);
    count_open("pml_multilane_lanes_returned", &lanes_returned);
}

static unsigned long long count_read(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    MPI_T_pvar_read(session, handle, &value);
    return value;
}

/* With traffic both ways, so that each asks after the lanes that it misses. */
static void lanes_await(void)
{
    double begin = MPI_Wtime();
    do {
        int mine = 0, other;
        MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 2, &other, 1, MPI_INT, 1 - rank, 2,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        atomic_store(&meeting->is_back[rank],
                     flaky_is_whole() && count_read(lanes_lost) == count_read(lanes_returned));
        meet();
        if (MPI_Wtime() - begin > 10 * most_s)
            stop("a lane that was mended does not come back");
        mine = atomic_load(&meeting->is_back[SENDER]) && atomic_load(&meeting->is_back[RECEIVER]);
        meet();
        if (mine)
            return;
    } while (true);
}

/* --- all of them --------------------------------------------------------------------------------
 */

/* Of what the lane that is back now carried before, none came later. */
static void nothing_came_late(const struct trial *trial)
{
    for (int i = 0; rank == RECEIVER && i < bytes; i++)
        if (buffer[i] != 0) {
            fail(trial, "bytes came after the message");
            return;
        }
}

/* Returns the calls that there were. */
static unsigned trial_run(const struct trial *trial)
{
    meet();
    if (rank == trial->side)
        flaky_plan(trial->fault, trial->lane, trial->call, ROUNDS);
    meet();
    if (rank == SENDER)
        send_one(trial);
    else if (rank == RECEIVER)
        receive_one(trial);
    meet();
    if (rank == trial->side)
        atomic_store(&meeting->calls, flaky_end());
    selected++;
    meet();
    if (breaks(trial->fault)) {
        lanes_await();
        nothing_came_late(trial);
    }
    MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, 3, NULL, 0, MPI_BYTE, 1 - rank, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return (unsigned) atomic_load(&meeting->calls);
}

/* One more than the calls of a message without a fault: the fault itself may bring one. */
static void calls_run(struct trial trial)
{
    trial.call = NEVER;
    unsigned calls = trial_run(&trial);
    for (trial.call = 1; trial.call <= calls + 1; trial.call++)
        if (cases++ % share == 0)
            trial_run(&trial);
}

static void faults_run(int lanes)
{
    struct trial trial;
    for (trial.mode = 0; trial.mode < MODES; trial.mode++)
        for (trial.side = SENDER; trial.side < RANKS; trial.side++)
            for (trial.fault = FLAKY_NO_ROOM; trial.fault < FLAKY_FAULTS; trial.fault++)
                for (trial.lane = 0; trial.lane < lanes; trial.lane++)
                    if (cuts == breaks(trial.fault))
                        calls_run(trial);
}

/* More than the kernel keeps: the last calls end when the receiver reads. */
static void unread_run(int count)
{
    struct trial trial = {.mode = SEND, .fault = FLAKY_NONE};
    meet();
    for (int i = 0; i < count && rank == SENDER; i++)
        MPI_Send(buffer, bytes, MPI_BYTE, RECEIVER, 1, MPI_COMM_WORLD);
    if (rank == RECEIVER)
        usleep(200000);
    for (int i = 0; i < count && rank == RECEIVER; i++)
        MPI_Recv(buffer, bytes, MPI_BYTE, SENDER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == RECEIVER)
        atomic_fetch_add(&meeting->received, 1);
    else if (!await(&meeting->received, 1, false))
        fail(&trial, "the calls have ended, and the receiver waits for a message");
    cases = count;
}

static void functions_find(void)
{
    *(void **) &flaky_plan = dlsym(RTLD_DEFAULT, "mca_btl_flaky_plan");
    *(void **) &flaky_end = dlsym(RTLD_DEFAULT, "mca_btl_flaky_end");
    *(void **) &flaky_is_whole = dlsym(RTLD_DEFAULT, "mca_btl_flaky_is_whole");
    if (!flaky_plan || !flaky_end || !flaky_is_whole)
        stop("the stand-in BTL is not there: --mca btl self,flaky");
}

int main(int argc, char **argv)
{
    int provided, lanes, unread = 0;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        stop("usage: each_call FILE BYTES LANES [--cut] [--share N] [--unread N]");
    bytes = atoi(argv[2]);
    lanes = atoi(argv[3]);
    for (int i = 4; i < argc; i++) {
        cuts |= strcmp(argv[i], "--cut") == 0;
        if (strcmp(argv[i], "--share") == 0 && i + 1 < argc)
            share = atoi(argv[++i]);
        else if (strcmp(argv[i], "--unread") == 0 && i + 1 < argc)
            unread = atoi(argv[++i]);
    }
    functions_find();
    counts_open();
    buffer = malloc((size_t) bytes + BLOCK);
    meeting_join(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (unread)
        unread_run(unread);
    else
        faults_run(lanes);
    long failures = atomic_load(&meeting->failures);
    if (rank == SENDER)
        printf("each_call: %ld of %ld cases run, %ld failures\n", (cases + share - 1) / share,
               cases, failures);
    MPI_Barrier(MPI_COMM_WORLD);
    free(buffer);
    MPI_T_finalize();
    MPI_Finalize();
    return failures != 0;
}
