// SPDX-License-Identifier: BSD-3-Clause
// What a call has sent has left its process when the call ends: the other side need not wait until
// the sender, which computes then, calls MPI again.
//     leaves [--meet FILE] [--compute S] [--bound S] [--late S] [--flood N] [--tries N]
//            CASE[:BYTES]...
// In each case one rank computes after its call, and makes no MPI call, for S seconds or until all
// others have what they wait for. How long they wait, once their own call has begun and the call of
// the one that computes has ended, is printed and must not be longer than the bound. Those that
// wait begin --late seconds after the meeting; of a pair, the one that computes sends --flood
// messages of 1000 bytes before. What does not leave takes all of the S seconds; a wait above the
// bound and below half of that is a busy machine's, and the case is tried again, --tries times in
// all. An option is for the cases after it. All ranks are on one machine and meet in a file, so
// that MPI carries nothing but the case itself; a pair that has not talked before is "new".
#define _GNU_SOURCE
#include "suite.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MOST = 64, TAG = 5, OTHER_TAG = 6, FLOOD_BYTES = 1000, BLOCK = 8, PARTITIONS = 4 };
static const double sender_begins_s = 0.02, nap_s = 2e-4;

// Zeros at first. Every access is sequentially consistent: the file orders nothing but this test.
struct meeting {
    _Atomic int joined, arrived, ended, posted, failed, again;
    _Atomic int64_t begin_ns[RANKS_MOST], end_ns[RANKS_MOST];
};

struct kind {
    const char *name, *clause;
    bool collective; // every rank calls the same; rank 0 computes
    size_t bytes;    // if the command line gives none
    void (*computing)(void), (*waiting)(void);
};

static struct meeting *meeting;
static const char *meeting_path;
static int rank, ranks, meetings, cases_run, flood, tries = 1;
static double compute_s = 1.0, bound_s = 0.15, late_s = 0;

// The case that runs.
static struct {
    const struct kind *kind;
    char name[64];
    size_t bytes, received;
    int computer, waiter, peer, from; // from: whose message is in `in`
    bool is_new;
    unsigned char *out, *in;
} now;

static void fail(const char *sentence)
{
    fprintf(stderr, "leaves %s: rank %d: %s\n", now.name, rank, sentence);
    atomic_store(&meeting->failed, 1);
}

static void stop(const char *sentence)
{
    fprintf(stderr, "leaves: %s\n", sentence);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

// ---- time and the meeting outside of MPI ----

static int64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void nap(double seconds)
{
    struct timespec time = {(time_t) seconds, (long) (1e9 * (seconds - (double) (time_t) seconds))};
    nanosleep(&time, NULL);
}

// Jobs of one machine differ in their names; the ranks of one have the same.
static const char *meeting_default(void)
{
    static char path[512];
    const char *job = getenv("PMIX_NAMESPACE");
    snprintf(path, sizeof path, "/tmp/multilane-leaves.%u.%s", (unsigned) getuid(),
             job ? job : "job");
    return path;
}

// Returns when all ranks have come here.
static void meet(void)
{
    meetings++;
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meetings * ranks)
        nap(nap_s);
}

static void meeting_join(void)
{
    if (!meeting_path)
        meeting_path = meeting_default();
    int file = open(meeting_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *meeting) != 0)
        stop("the file to meet in cannot be made; --meet names another");
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (meeting == MAP_FAILED)
        stop("the file to meet in cannot be mapped");
    close(file);
    if (atomic_fetch_add(&meeting->joined, 1) >= ranks)
        stop("the file to meet in is of another job; remove it");
    meet();
    if (rank == 0)
        unlink(meeting_path);
}

static bool all_ended(void)
{
    return atomic_load(&meeting->ended) >= (cases_run + 1) * ranks;
}

// Without MPI until all have ended their calls or the time is over. One that computes takes a
// processor, all others leave theirs to those that wait.
static void compute(bool busy)
{
    int64_t until = clock_ns() + (int64_t) (1e9 * (compute_s + late_s));
    while (!all_ended() && clock_ns() < until) {
        for (volatile int i = 0; busy && i < 2000; i++)
            ;
        if (!busy)
            nap(nap_s);
    }
}

// What did not leave by itself leaves now.
static void progress_until_ended(void)
{
    int found;
    while (!all_ended())
        MPI_Iprobe(MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

// ---- contents ----

static uint64_t key_of(int sender)
{
    return (uint64_t) cases_run * RANKS_MOST + (uint64_t) sender;
}

static void received_from(int sender)
{
    now.from = sender;
    now.received = now.bytes;
}

static void received_check(void)
{
    if (now.received && pattern_check(now.in, now.received, key_of(now.from)) >= 0)
        fail("wrong contents");
}

static void receive(void)
{
    MPI_Status status;
    int count = -1;
    MPI_Recv(now.in, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != (int) now.bytes)
        fail("a message of another length");
    received_from(now.peer);
}

// ---- what the two of a pair call ----

static void send(void)
{
    MPI_Send(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD);
}

static void ssend(void)
{
    MPI_Ssend(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD);
}

static void isend_wait(void)
{
    MPI_Request request;
    MPI_Isend(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void isend_test(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Isend(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void rsend(void)
{
    while (atomic_load(&meeting->posted) != cases_run + 1)
        nap(nap_s);
    MPI_Rsend(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD);
}

static void receive_posted(void)
{
    MPI_Request request;
    MPI_Irecv(now.in, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, &request);
    atomic_store(&meeting->posted, cases_run + 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    received_from(now.peer);
}

static void start_wait(void)
{
    MPI_Request request;
    MPI_Send_init(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void sendrecv(void)
{
    MPI_Sendrecv(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, now.in, (int) now.bytes,
                 MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    received_from(now.peer);
}

// MPI_Bsend ends at once, whatever the lanes are doing; later calls of any kind move the bytes on.
static void bsend_iprobe(void)
{
    enum { LOOKS = 40 };
    static void *space;
    static int space_bytes;
    int found;
    if (space)
        MPI_Buffer_detach(&space, &space_bytes);
    free(space);
    space_bytes = (int) now.bytes + MPI_BSEND_OVERHEAD;
    space = suite_alloc((size_t) space_bytes);
    MPI_Buffer_attach(space, space_bytes);
    MPI_Bsend(now.out, (int) now.bytes, MPI_BYTE, now.peer, TAG, MPI_COMM_WORLD);
    for (int look = 0; look < LOOKS; look++) {
        MPI_Iprobe(MPI_ANY_SOURCE, OTHER_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        nap(nap_s);
    }
}

// Every second block of 8 bytes.
static void strided_send(void)
{
    int blocks = (int) (now.bytes / BLOCK);
    unsigned char *wide = suite_alloc(2 * now.bytes);
    MPI_Datatype type;
    for (int i = 0; i < blocks; i++)
        memcpy(wide + 2 * BLOCK * (size_t) i, now.out + BLOCK * (size_t) i, BLOCK);
    MPI_Type_vector(blocks, BLOCK, 2 * BLOCK, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Send(wide, 1, type, now.peer, TAG, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    free(wide);
}

#if SUITE_MPI_4
static void partitioned(MPI_Request *request)
{
    if (ranks > 2) // its first use makes a communicator of all ranks, and waits for them
        stop("Open MPI's partitioned messages need every rank: psend is for a job of 2");
    MPI_Start(request);
    for (int i = 0; now.computer == rank && i < PARTITIONS; i++)
        MPI_Pready(i, *request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Request_free(request);
}

static void psend(void)
{
    MPI_Request request;
    MPI_Psend_init(now.out, PARTITIONS, (MPI_Count) now.bytes / PARTITIONS, MPI_BYTE, now.peer, TAG,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    partitioned(&request);
}

static void precv(void)
{
    MPI_Request request;
    MPI_Precv_init(now.in, PARTITIONS, (MPI_Count) now.bytes / PARTITIONS, MPI_BYTE, now.peer, TAG,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    partitioned(&request);
    received_from(now.peer);
}
#endif

// Before the call itself; more than the lanes can hold if it is long.
static void flood_send(void)
{
    unsigned char bytes[FLOOD_BYTES];
    pattern_fill(bytes, sizeof bytes, key_of(rank));
    for (int i = 0; i < flood; i++) {
        memcpy(bytes, &i, sizeof i);
        MPI_Send(bytes, FLOOD_BYTES, MPI_BYTE, now.peer, OTHER_TAG, MPI_COMM_WORLD);
    }
}

static void flood_receive(void)
{
    unsigned char bytes[FLOOD_BYTES], wanted[FLOOD_BYTES];
    pattern_fill(wanted, sizeof wanted, key_of(now.peer));
    for (int i = 0; i < flood; i++) {
        memcpy(wanted, &i, sizeof i);
        MPI_Recv(bytes, FLOOD_BYTES, MPI_BYTE, now.peer, OTHER_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (memcmp(bytes, wanted, sizeof bytes) != 0)
            fail("wrong contents or order in the flood");
    }
}

// ---- what all ranks call ----

static void bcast(void)
{
    MPI_Bcast(rank == 0 ? now.out : now.in, (int) now.bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0)
        received_from(0);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void reduce(void)
{
    int mine = 1 << (rank % 16), sum = 0, wanted = 0;
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        wanted += 1 << (i % 16);
    if (rank == ranks - 1 && sum != wanted)
        fail("a wrong sum");
}

static void allgather(void)
{
    MPI_Allgather(now.out, (int) now.bytes, MPI_BYTE, now.in, (int) now.bytes, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        if (pattern_check(now.in + (size_t) i * now.bytes, now.bytes, key_of(i)) >= 0)
            fail("wrong contents");
}

// ---- a case ----

static const struct kind kinds[] = {
    {"send", "MPI_Send", false, 8, send, receive},
    {"isend-wait", "MPI_Isend, MPI_Wait", false, 1000, isend_wait, receive},
    {"isend-test", "MPI_Isend, MPI_Test until it is done", false, 1000, isend_test, receive},
    {"rsend", "MPI_Rsend", false, 1000, rsend, receive_posted},
    {"start-wait", "MPI_Start, MPI_Wait of a persistent send", false, 1000, start_wait, receive},
    {"sendrecv", "MPI_Sendrecv", false, 1000, sendrecv, sendrecv},
    {"bsend", "MPI_Bsend, then some MPI_Iprobe", false, 1000, bsend_iprobe, receive},
    {"strided", "MPI_Send of a vector", false, 1000, strided_send, receive},
#if SUITE_MPI_4
    {"psend", "a partitioned send", false, 1000, psend, precv},
#endif
    // Here who receives computes, and who sends waits until that is known.
    {"ssend", "MPI_Recv of what MPI_Ssend sends", false, 8, receive, ssend},
    {"recv", "MPI_Recv of what MPI_Send sends", false, 1000000, receive, send},
    {"bcast", "MPI_Bcast", true, 8, bcast, bcast},
    {"barrier", "MPI_Barrier", true, 8, barrier, barrier},
    {"reduce", "MPI_Reduce", true, 8, reduce, reduce},
    {"allgather", "MPI_Allgather", true, 8, allgather, allgather},
};

struct pair {
    int low, high;
};

// All pairs, those between the lower and the upper half of the ranks first: in the lab of the rails
// these are on different hosts.
static int pairs_list(struct pair *pairs)
{
    int half = ranks / 2, count = 0;
    for (int across = 1; across >= 0; across--)
        for (int low = 0; low < ranks; low++)
            for (int high = low + 1; high < ranks; high++)
                if ((low < half && high >= half) == across)
                    pairs[count++] = (struct pair){low, high};
    return count;
}

// Each case gets the next pair; the second time round the other one computes.
static void pair_choose(void)
{
    static struct pair pairs[RANKS_MOST * RANKS_MOST];
    static int next;
    static bool all_have_talked;
    int count = pairs_list(pairs);
    if (now.kind->collective) {
        now.computer = 0;
        now.is_new = next == 0 && !all_have_talked;
        all_have_talked = true;
        return;
    }
    bool swap = next / count % 2;
    struct pair pair = pairs[next % count];
    now.is_new = next < count && !all_have_talked;
    now.computer = swap ? pair.high : pair.low;
    now.waiter = swap ? pair.low : pair.high;
    now.peer = rank == now.computer ? now.waiter : now.computer;
    next++;
}

static bool takes_part(int who)
{
    return now.kind->collective || who == now.computer || who == now.waiter;
}

static void part_play(void)
{
    bool computes = rank == now.computer;
    nap(computes ? sender_begins_s : late_s);
    atomic_store(&meeting->begin_ns[rank], clock_ns());
    if (flood && !now.kind->collective)
        (computes ? flood_send : flood_receive)();
    (computes ? now.kind->computing : now.kind->waiting)();
    atomic_store(&meeting->end_ns[rank], clock_ns());
}

// From when on nothing is missing that the call of this rank needs.
static int64_t complete_ns(int who)
{
    int64_t latest = atomic_load(&meeting->begin_ns[who]), other;
    if (!now.kind->collective) {
        other = atomic_load(&meeting->end_ns[now.computer]);
        return other > latest ? other : latest;
    }
    for (int i = 0; i < ranks; i++) {
        other = atomic_load(&meeting->begin_ns[i]);
        latest = other > latest ? other : latest;
    }
    return latest;
}

static double waited_s(int who)
{
    double waited = 1e-9 * (double) (atomic_load(&meeting->end_ns[who]) - complete_ns(who));
    return waited > 0 ? waited : 0;
}

// By rank 0, when all have ended the case.
static void case_judge(int tries_left)
{
    double longest = 0, took;
    int slowest = now.waiter;
    for (int i = 0; i < ranks; i++) {
        bool waits = now.kind->collective || i == now.waiter;
        if (waits && waited_s(i) > longest) {
            longest = waited_s(i);
            slowest = i;
        }
    }
    took = 1e-9 * (double) (atomic_load(&meeting->end_ns[now.computer]) -
                            atomic_load(&meeting->begin_ns[now.computer]));
    printf("leaves %-20s %-3s rank %d computes after a call of %.4f s, rank %d waited %.4f s%s\n",
           now.name, now.is_new ? "new" : "", now.computer, took, slowest, longest,
           longest > bound_s ? " TOO LONG" : "");
    fflush(stdout);
    bool again = longest > bound_s && longest < compute_s / 2 && tries_left > 0;
    atomic_store(&meeting->again, again);
    if (again || longest <= bound_s)
        return;
    fprintf(stderr,
            "leaves %s (%s): rank %d waited %.3f s while rank %d computed; %.3f s is allowed\n",
            now.name, now.kind->clause, slowest, longest, now.computer, bound_s);
    atomic_store(&meeting->failed, 1);
}

static void case_prepare(void)
{
    now.waiter = 0;
    now.received = 0;
    pair_choose();
    now.out = suite_alloc(now.bytes);
    now.in = suite_alloc(now.bytes * (size_t) ranks);
    memset(now.in, 0xEE, now.bytes * (size_t) ranks);
    pattern_fill(now.out, now.bytes, key_of(rank));
}

// Whether the case is to be tried again.
static bool case_run(const struct kind *kind, size_t bytes, int tries_left)
{
    now.kind = kind;
    now.bytes = bytes ? bytes : kind->bytes;
    snprintf(now.name, sizeof now.name, "%s:%zu%s", kind->name, now.bytes,
             flood && !kind->collective ? "+flood" : "");
    case_prepare();
    meet();
    if (takes_part(rank))
        part_play();
    atomic_fetch_add(&meeting->ended, 1);
    compute(rank == now.computer);
    progress_until_ended();
    received_check();
    if (rank == 0)
        case_judge(tries_left);
    meet();
    free(now.out);
    free(now.in);
    cases_run++;
    return atomic_load(&meeting->again);
}

// ---- the command line ----

static size_t size_read(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (*end == 'k' || *end == 'm')
        value *= *end++ == 'k' ? 1000 : 1000000;
    if (*end || value < BLOCK || value > 1e9)
        stop("a size is a number from 8 on, with k or m for thousands or millions");
    return (size_t) value;
}

static void case_named(const char *word)
{
    size_t length = strcspn(word, ":");
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strlen(kinds[i].name) == length && strncmp(kinds[i].name, word, length) == 0) {
            size_t bytes = word[length] ? size_read(word + length + 1) : 0;
            for (int left = tries - 1; case_run(&kinds[i], bytes, left); left--)
                ;
            return;
        }
    fprintf(stderr, "leaves: there is no case %s; there are:", word);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        fprintf(stderr, " %s", kinds[i].name);
    stop("");
}

static void option_read(const char *name, const char *value)
{
    if (strcmp(name, "--compute") == 0)
        compute_s = atof(value);
    else if (strcmp(name, "--bound") == 0)
        bound_s = atof(value);
    else if (strcmp(name, "--late") == 0)
        late_s = atof(value);
    else if (strcmp(name, "--flood") == 0)
        flood = atoi(value);
    else if (strcmp(name, "--tries") == 0)
        tries = atoi(value);
    else
        stop("there is no such option; see the top of its source");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int at = 1;
    if (ranks < 2 || ranks > RANKS_MOST || argc < 2)
        stop("it needs 2 to 64 ranks, and the names of cases");
    if (argc > 3 && strcmp(argv[1], "--meet") == 0) {
        meeting_path = argv[2];
        at = 3;
    }
    meeting_join();
    for (; at < argc; at++) {
        if (strncmp(argv[at], "--", 2) != 0)
            case_named(argv[at]);
        else if (at + 1 < argc) {
            option_read(argv[at], argv[at + 1]);
            at++;
        }
    }
    int failed = atomic_load(&meeting->failed);
    MPI_Finalize();
    return failed;
}
