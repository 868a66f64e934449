/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the bare ring between two processes on two cores, and the two ways of waiting against each
 * other: every side on memory of its own (local-poll), or both on one state word (single-state). */
#define _GNU_SOURCE
#include "common/ring/ring.h"
#include "test/bench/median.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_LINES  1024u
#define RUNS        7
#define PIECE_BYTES 8192u
#define SLOTS       8u
#define SLOT_WORDS  (PIECE_BYTES / 8)

enum { SENDER = 0, RECEIVER = 1 };

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static void *shared_alloc(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("ring_bench: mmap");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static void core_bind(int core)
{
    cpu_set_t allowed, one;
    int seen = 0;

    if (0 != sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == core)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) == 0 || 0 != sched_setaffinity(0, sizeof(one), &one)) {
        fprintf(stderr, "ring_bench: needs two cores to run on\n");
        exit(1);
    }
}

/* One direction between two processes. */
struct channel {
    struct ring_feedback *feedback;
    struct ring_line *lines;
    struct ring_sender sender;
    struct ring_receiver receiver;
    uint64_t stale[RING_LINES / 64];
};

static void channel_create(struct channel *channel)
{
    channel->feedback = shared_alloc(sizeof(*channel->feedback));
    channel->lines = shared_alloc(ring_bytes(RING_LINES));
    memset(channel->stale, 0, sizeof(channel->stale));
    ring_sender_init(&channel->sender, channel->lines, RING_LINES, channel->feedback,
                     channel->stale);
    ring_receiver_init(&channel->receiver, channel->lines, RING_LINES, channel->feedback);
}

static void ring_send_bytes(struct channel *channel, const void *data, size_t length)
{
    void *room;

    while (NULL == (room = ring_reserve(&channel->sender, 8, length)))
        ring_relax();
    memcpy(room, data, length);
    ring_publish(&channel->sender, 1, RING_KIND_FIRST, 8, length);
}

static void ring_receive_bytes(struct channel *channel, void *data)
{
    struct ring_message message;

    while (RING_EMPTY == ring_peek(&channel->receiver, &message))
        ring_relax();
    memcpy(data, message.payload, message.length);
    ring_release(&channel->receiver, &message);
}

/* The two ways of waiting, over slots of PIECE_BYTES. */
struct slots {
    /* local-poll: with the receiver, with the sender. */
    _Alignas(64) _Atomic uint64_t data_ready;
    _Alignas(64) _Atomic uint64_t slot_free;
    /* single-state: one word a slot, 0 free, else the bytes in it plus 1; lives with the receiver.
     */
    struct {
        _Alignas(64) _Atomic uint64_t word;
    } state[SLOTS];
    _Alignas(4096) unsigned char data[SLOTS][PIECE_BYTES];
};

struct slots_end {
    struct slots *slots;
    uint64_t count;      /* pieces so far */
    uint64_t known_free; /* local-poll: the sender's copy of slot_free */
};

static void local_send(struct slots_end *end, const unsigned char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;

        while (end->count >= end->known_free + SLOTS) {
            end->known_free = atomic_load_explicit(&end->slots->slot_free, memory_order_acquire);
            ring_relax();
        }
        memcpy(end->slots->data[end->count % SLOTS], data + done, piece);
        atomic_store_explicit(&end->slots->data_ready, ++end->count, memory_order_release);
        done += piece;
    }
}

static void local_receive(struct slots_end *end, unsigned char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;

        while (atomic_load_explicit(&end->slots->data_ready, memory_order_acquire) <= end->count)
            ring_relax();
        memcpy(data + done, end->slots->data[end->count % SLOTS], piece);
        atomic_store_explicit(&end->slots->slot_free, ++end->count, memory_order_release);
        done += piece;
    }
}

static void single_send(struct slots_end *end, const unsigned char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;
        _Atomic uint64_t *state = &end->slots->state[end->count % SLOTS].word;

        while (0 != atomic_load_explicit(state, memory_order_acquire))
            ring_relax();
        memcpy(end->slots->data[end->count % SLOTS], data + done, piece);
        atomic_store_explicit(state, piece + 1, memory_order_release);
        end->count++;
        done += piece;
    }
}

static void single_receive(struct slots_end *end, unsigned char *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;
        _Atomic uint64_t *state = &end->slots->state[end->count % SLOTS].word;

        while (0 == atomic_load_explicit(state, memory_order_acquire))
            ring_relax();
        memcpy(data + done, end->slots->data[end->count % SLOTS], piece);
        atomic_store_explicit(state, 0, memory_order_release);
        end->count++;
        done += piece;
    }
}

enum way { WAY_RING, WAY_LOCAL, WAY_SINGLE };

struct end {
    enum way way;
    struct channel *out, *in; /* WAY_RING */
    struct slots_end slots_out, slots_in;
};

static void end_send(struct end *end, const unsigned char *data, size_t length)
{
    size_t max = ring_length_max(RING_LINES) / 2;

    if (end->way == WAY_LOCAL)
        local_send(&end->slots_out, data, length);
    else if (end->way == WAY_SINGLE)
        single_send(&end->slots_out, data, length);
    else
        for (size_t done = 0; done < length; done += max)
            ring_send_bytes(end->out, data + done, length - done < max ? length - done : max);
}

static void end_receive(struct end *end, unsigned char *data, size_t length)
{
    size_t max = ring_length_max(RING_LINES) / 2;

    if (end->way == WAY_LOCAL)
        local_receive(&end->slots_in, data, length);
    else if (end->way == WAY_SINGLE)
        single_receive(&end->slots_in, data, length);
    else
        for (size_t done = 0; done < length; done += max)
            ring_receive_bytes(end->in, data + done);
}

enum test { TEST_PINGPONG, TEST_STREAM };

/* Runs one end; the sender returns seconds a message one way. */
static double end_run(struct end *end, int role, enum test test, size_t length, long count)
{
    unsigned char *data = malloc(length < 8 ? 8 : length);
    double start;

    if (NULL == data)
        exit(1);
    memset(data, role, length < 8 ? 8 : length);
    start = now_s();
    for (long i = 0; i < count; i++) {
        if (role == SENDER)
            end_send(end, data, length);
        else
            end_receive(end, data, length);
        if (test == TEST_PINGPONG && role == SENDER)
            end_receive(end, data, length);
        else if (test == TEST_PINGPONG)
            end_send(end, data, length);
    }
    /* A stream ends when its last byte was read. */
    if (test == TEST_STREAM && role == SENDER)
        end_receive(end, data, 8 < length ? 8 : length);
    else if (test == TEST_STREAM)
        end_send(end, data, 8 < length ? 8 : length);
    start = now_s() - start;
    free(data);
    return start / (double) count / (test == TEST_PINGPONG ? 2 : 1);
}

static double once(enum way way, enum test test, size_t length, long count)
{
    struct channel forth, back;
    struct slots *slots = shared_alloc(2 * sizeof(*slots));
    struct end near = {.way = way, .out = &forth, .in = &back};
    struct end far = {.way = way, .out = &back, .in = &forth};
    cpu_set_t before;
    double seconds;
    int status;
    pid_t child;

    channel_create(&forth);
    channel_create(&back);
    near.slots_out.slots = far.slots_in.slots = &slots[0];
    near.slots_in.slots = far.slots_out.slots = &slots[1];
    child = fork();
    if (child < 0) {
        perror("ring_bench: fork");
        exit(1);
    }
    if (child == 0) {
        core_bind(RECEIVER);
        end_run(&far, RECEIVER, test, length, count / 10 + 1);
        end_run(&far, RECEIVER, test, length, count);
        _exit(0);
    }
    sched_getaffinity(0, sizeof(before), &before);
    core_bind(SENDER);
    end_run(&near, SENDER, test, length, count / 10 + 1);
    seconds = end_run(&near, SENDER, test, length, count);
    if (child != waitpid(child, &status, 0) || status != 0)
        exit(1);
    sched_setaffinity(0, sizeof(before), &before);
    munmap(forth.feedback, sizeof(*forth.feedback));
    munmap(back.feedback, sizeof(*back.feedback));
    munmap(forth.lines, ring_bytes(RING_LINES));
    munmap(back.lines, ring_bytes(RING_LINES));
    munmap(slots, 2 * sizeof(*slots));
    return seconds;
}

static long count_of(size_t length)
{
    return (long) (20000000 / (100 + length / 8)) + 10;
}

static double median_of_runs(enum way way, enum test test, size_t length)
{
    double times[RUNS];

    for (int run = 0; run < RUNS; run++)
        times[run] = once(way, test, length, count_of(length));
    return median(times, RUNS);
}

/* What test/bench/run reads, of one run. */
static int figures_print(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *end;
        unsigned long bytes = strtoul(argv[i], &end, 10);

        if (*end != '\0' || bytes == 0 || bytes > 1048576) {
            fprintf(stderr, "usage: ring_bench [BYTES...], each from 1 to 1048576\n");
            return 1;
        }
        printf("figure ring_us %lu %.6f\n", bytes,
               once(WAY_RING, TEST_PINGPONG, bytes, count_of(bytes)) * 1e6);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8,    32,   56,   64,    128,   256,    512,
                                   1024, 2048, 4096, 16384, 65536, 262144, 1048576};

    if (argc > 1)
        return figures_print(argc, argv);
    printf("medians of %d runs; a ring of %u lines, slots of %u bytes\n", RUNS, RING_LINES,
           PIECE_BYTES);
    printf("%8s  %28s  %28s  %17s\n", "", "one way, ns", "stream, ns a message",
           "local/single gain");
    printf("%8s  %8s %9s %9s  %8s %9s %9s  %8s %8s\n", "bytes", "ring", "local", "single", "ring",
           "local", "single", "one way", "stream");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double ns[2][3];

        for (int test = TEST_PINGPONG; test <= TEST_STREAM; test++)
            for (int way = WAY_RING; way <= WAY_SINGLE; way++)
                ns[test][way] = median_of_runs((enum way) way, (enum test) test, sizes[i]) * 1e9;
        printf("%8zu  %8.1f %9.1f %9.1f  %8.1f %9.1f %9.1f  %7.1f%% %7.1f%%\n", sizes[i], ns[0][0],
               ns[0][1], ns[0][2], ns[1][0], ns[1][1], ns[1][2], (ns[0][2] / ns[0][1] - 1) * 100,
               (ns[1][2] / ns[1][1] - 1) * 100);
        fflush(stdout);
    }
    return 0;
}
