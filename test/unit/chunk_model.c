/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of the two kernels of the ring in device memory, with the memory order
 * that they state and no more, and with kernels that give up at every point where they may: no byte
 * is lost, changed or overwritten before it was read, and neither end waits for ever. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* The kernels' own source is compiled here, with each access to a counter a point where the other
 * end may go on. */
static void *model_place(uint64_t address, size_t bytes);
static uint64_t model_acquire(uint64_t address);
static void model_release(uint64_t address, uint64_t value);

#define KERNEL_PLACE(type, address) ((type *) model_place(address, sizeof(type)))
#define KERNEL_FUNCTION             static inline
#define KERNEL_BARRIER()
#define KERNEL_SHARED                  /* one of each run: a block is one thread */
#define KERNEL_ACQUIRE(address)        model_acquire(address)
#define KERNEL_RELEASE(address, value) model_release(address, value)

#include "common/memory/chunk.h"

enum { SENDER, RECEIVER, ENDS };

#define CHUNK_BYTES  8
#define RING_MAX     4
#define MESSAGES_MAX 6
#define BYTES_MAX    64
#define STEPS_MAX    600
#define STACK_BYTES  (64 * 1024)
#define VISITED_MAX  (1u << 21)

/* What an end knows of the other's past: the stores of the other up to that count came before. */
struct end {
    ucontext_t context;
    unsigned char *stack;
    bool done;
    bool waiting;          /* its kernel gave up; it is started again when the other end has */
    uint32_t waiting_from; /* stored something, counted from here */
    uint32_t stores;
    uint32_t knows;          /* stores of the other end */
    uint64_t counter;        /* in this end's memory; the other end stores it */
    uint32_t counter_stores; /* of the other end, when it did */
    uint64_t moved;
    uint32_t message;
    uint64_t next; /* number of the next chunk */
    uint64_t seen; /* hash of what it read since its kernel was started */
};

static struct {
    /* the case */
    uint32_t ring_chunks, count;
    uint32_t length[MESSAGES_MAX];
    /* the run */
    unsigned char chunks[RING_MAX * CHUNK_BYTES];
    uint32_t written_at[RING_MAX]; /* by the sender: one more than its stores before */
    uint32_t read_at[RING_MAX];
    unsigned char out[BYTES_MAX], in[BYTES_MAX];
    struct end ends[ENDS];
    int running;
    ucontext_t scheduler;
    /* the search */
    uint8_t choice[STEPS_MAX], alternatives[STEPS_MAX];
    uint32_t depth, prefix;
    const char *failure;
} model;

static uint64_t *visited;
static uint32_t visited_count;
static uint64_t states;

static uint64_t address_of(const void *place)
{
    return (uint64_t) (uintptr_t) place;
}

static void failure_note(const char *what)
{
    if (!model.failure)
        model.failure = what;
}

/* --- what the kernels do ------------------------------------------------------------------------
 */

static void chunk_touch(uint32_t chunk)
{
    struct end *end = &model.ends[model.running];
    if (model.running == SENDER) {
        if (model.read_at[chunk] > end->knows)
            failure_note("a chunk is written while it may still be read");
        model.written_at[chunk] = end->stores + 1;
    } else {
        if (model.written_at[chunk] > end->knows)
            failure_note("a chunk is read while it may still be written");
        model.read_at[chunk] = end->stores + 1;
    }
}

static void *model_place(uint64_t address, size_t bytes)
{
    uint64_t start = address_of(model.chunks);
    if (address >= start && address < start + sizeof(model.chunks)) {
        if (address + bytes > start + model.ring_chunks * CHUNK_BYTES)
            failure_note("a byte outside of the ring is touched");
        else
            chunk_touch((uint32_t) ((address - start) / CHUNK_BYTES));
    }
    return (void *) (uintptr_t) address;
}

static void pause_here(void)
{
    /* That it got here is part of where it is. */
    model.ends[model.running].seen = model.ends[model.running].seen * 31 + 3;
    swapcontext(&model.ends[model.running].context, &model.scheduler);
}

static uint64_t model_acquire(uint64_t address)
{
    struct end *end = &model.ends[model.running];
    if (address != address_of(&end->counter))
        failure_note("an end waits for a counter that is not in its memory");
    pause_here();
    end->knows = end->counter_stores;
    end->seen = end->seen * 31 + end->counter + 1;
    return end->counter;
}

static void model_release(uint64_t address, uint64_t value)
{
    struct end *end = &model.ends[model.running], *other = &model.ends[!model.running];
    if (address == address_of(&end->moved)) { /* for its own host */
        end->moved = value;
        return;
    }
    if (address != address_of(&other->counter))
        failure_note("an end stores to a counter that is not the other's");
    pause_here();
    if (value <= other->counter)
        failure_note("a counter does not grow");
    other->counter = value;
    other->counter_stores = ++end->stores;
    end->seen = end->seen * 31 + 7;
}

/* --- what the hosts do --------------------------------------------------------------------------
 */

static unsigned char byte_of(uint32_t message, uint32_t at)
{
    return (unsigned char) (message * 16 + at + 1);
}

/* A kernel after the other, until the message is through. */
static void message_move(int me, unsigned char *user)
{
    struct end *end = &model.ends[me];
    struct chunk_job job = {.user = address_of(user),
                            .bytes = model.length[end->message],
                            .chunks = address_of(model.chunks),
                            .waits = address_of(&end->counter),
                            .tells = address_of(&model.ends[!me].counter),
                            .first = end->next,
                            .moved = address_of(&end->moved),
                            .chunk_bytes = CHUNK_BYTES,
                            .ring_chunks = model.ring_chunks,
                            .looks = 1,
                            .is_sender = me == SENDER};
    while (!model.failure) {
        uint64_t chunks = chunk_count(&job);
        end->waiting_from = model.ends[!me].stores;
        end->seen = 0;
        chunk_run(&job, 0, 1);
        end->next = job.first += end->moved;
        if (end->moved == chunks)
            return;
        job.user += end->moved * CHUNK_BYTES;
        job.bytes -= end->moved * CHUNK_BYTES;
        if (end->moved == 0) { /* it would be started again in vain */
            end->waiting = true;
            pause_here();
        }
    }
}

static void sender_run(void)
{
    struct end *end = &model.ends[SENDER];
    for (; end->message < model.count && !model.failure; end->message++) {
        for (uint32_t i = 0; i < model.length[end->message]; i++)
            model.out[i] = byte_of(end->message, i);
        message_move(SENDER, model.out);
    }
    end->done = true;
    pause_here();
}

static void receiver_run(void)
{
    struct end *end = &model.ends[RECEIVER];
    for (; end->message < model.count && !model.failure; end->message++) {
        memset(model.in, 0, sizeof(model.in));
        message_move(RECEIVER, model.in);
        for (uint32_t i = 0; i < BYTES_MAX && !model.failure; i++)
            if (model.in[i] != (i < model.length[end->message] ? byte_of(end->message, i) : 0))
                failure_note("other bytes came");
    }
    end->done = true;
    pause_here();
}

/* --- the search ---------------------------------------------------------------------------------
 */

static void run_begin(void)
{
    static void (*const programs[ENDS])(void) = {sender_run, receiver_run};
    memset(model.chunks, 0, sizeof(model.chunks));
    memset(model.written_at, 0, sizeof(model.written_at));
    memset(model.read_at, 0, sizeof(model.read_at));
    memset(model.out, 0, sizeof(model.out));
    memset(model.in, 0, sizeof(model.in));
    for (int i = 0; i < ENDS; i++) {
        struct end *end = &model.ends[i];
        unsigned char *stack = end->stack;
        memset(end, 0, sizeof(*end));
        end->stack = stack;
        getcontext(&end->context);
        end->context.uc_stack.ss_sp = stack;
        end->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&end->context, programs[i], 0);
    }
}

static uint64_t hash_add(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static uint64_t state_hash(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = hash_add(hash, model.chunks, sizeof(model.chunks));
    hash = hash_add(hash, model.written_at, sizeof(model.written_at));
    hash = hash_add(hash, model.read_at, sizeof(model.read_at));
    hash = hash_add(hash, model.in, sizeof(model.in));
    for (int i = 0; i < ENDS; i++) {
        const struct end *end = &model.ends[i];
        const uint64_t all[] = {end->done,  end->waiting, end->waiting_from,   end->stores,
                                end->knows, end->counter, end->counter_stores, end->message,
                                end->next,  end->seen};
        hash = hash_add(hash, all, sizeof(all));
    }
    return hash;
}

/* False: it was there. */
static bool visited_add(uint64_t hash)
{
    uint32_t at = (uint32_t) (hash >> 20) & (VISITED_MAX - 1);
    hash |= 1;
    for (; visited[at]; at = (at + 1) & (VISITED_MAX - 1))
        if (visited[at] == hash)
            return false;
    visited[at] = hash;
    if (++visited_count > VISITED_MAX / 2) {
        fprintf(stderr, "the model is too large\n");
        exit(1);
    }
    return true;
}

static bool end_can_run(int i)
{
    const struct end *end = &model.ends[i];
    return !end->done && !(end->waiting && end->waiting_from == model.ends[!i].stores);
}

/* One run: the choices of the prefix, then the sender wherever it can go on. */
static void run_once(void)
{
    run_begin();
    for (model.depth = 0; !model.failure && model.depth < STEPS_MAX; model.depth++) {
        bool can[ENDS] = {end_can_run(SENDER), end_can_run(RECEIVER)};
        uint32_t depth = model.depth;
        if (!can[SENDER] && !can[RECEIVER]) {
            if (!model.ends[SENDER].done || !model.ends[RECEIVER].done)
                failure_note("both ends wait for ever");
            return;
        }
        if (depth >= model.prefix) {
            if (!visited_add(state_hash()))
                return;
            states++;
            model.choice[depth] = can[SENDER] ? SENDER : RECEIVER;
            model.alternatives[depth] = can[SENDER] && can[RECEIVER];
        }
        model.running = model.choice[depth];
        model.ends[model.running].waiting = false;
        swapcontext(&model.scheduler, &model.ends[model.running].context);
    }
    if (!model.failure)
        failure_note("the model is too deep");
}

/* All interleavings of one script. */
static bool case_hold(void)
{
    memset(visited, 0, VISITED_MAX * sizeof(*visited));
    visited_count = 0;
    model.prefix = 0;
    model.failure = NULL;
    for (;;) {
        run_once();
        if (model.failure)
            return false;
        while (model.depth > 0 && !model.alternatives[model.depth - 1])
            model.depth--;
        if (model.depth == 0)
            return true;
        model.depth--;
        model.choice[model.depth] = RECEIVER;
        model.alternatives[model.depth] = 0;
        model.prefix = model.depth + 1;
    }
}

static int case_report(void)
{
    fprintf(stderr, "%s: a ring of %u chunks, messages of", model.failure, model.ring_chunks);
    for (uint32_t i = 0; i < model.count; i++)
        fprintf(stderr, " %u", model.length[i]);
    fprintf(stderr, " bytes; who went on:");
    for (uint32_t i = 0; i <= model.depth && i < STEPS_MAX; i++)
        fprintf(stderr, " %c", model.choice[i] == SENDER ? 's' : 'r');
    fprintf(stderr, "\n");
    return 1;
}

/* Message i has the length that digit i of `digits` chooses. */
static int script_check(uint32_t ring_chunks, uint32_t count, uint32_t digits)
{
    static const uint32_t lengths[] = {1, 8, 17};
    model.ring_chunks = ring_chunks;
    model.count = count;
    for (uint32_t i = 0; i < count; i++, digits /= 3)
        model.length[i] = lengths[digits % 3];
    return case_hold() ? 0 : case_report();
}

#if defined(__SANITIZE_THREAD__)
#define SKIPPED_BY_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SKIPPED_BY_TSAN 1
#endif
#endif

int main(void)
{
    int failed = 0;
    uint64_t scripts = 0;
#ifdef SKIPPED_BY_TSAN
    printf("the ends are coroutines, which ThreadSanitizer does not follow\n");
    return 77;
#endif
    visited = malloc(VISITED_MAX * sizeof(*visited));
    for (int i = 0; i < ENDS; i++)
        model.ends[i].stack = malloc(STACK_BYTES);
    for (uint32_t ring = 1; ring <= RING_MAX; ring++)
        for (uint32_t digits = 0; digits < 81 && !failed; digits++, scripts++)
            failed = script_check(ring, 4, digits);
    printf("%llu scripts, %llu states: %s\n", (unsigned long long) scripts,
           (unsigned long long) states, failed ? "failed" : "all hold");
    for (int i = 0; i < ENDS; i++)
        free(model.ends[i].stack);
    free(visited);
    return failed;
}
