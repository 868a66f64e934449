/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of the two kernels of the ring in device memory, with the memory order
 * that they state and no more, and with kernels that give up at every point where they may: no byte
 * is lost, changed or overwritten before it was read, and neither end waits for ever. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "test/unit/walk.h"

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

#define CHUNK_BYTES  8
#define RING_MAX     4
#define MESSAGES_MAX 6
#define BYTES_MAX    64
#define VISITED_MAX  (1u << 21)

/* What an end knows of the other's past: the stores of the other up to that count came before. */
struct end {
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
} model;

static uint64_t address_of(const void *place)
{
    return (uint64_t) (uintptr_t) place;
}

/* --- what the kernels do ------------------------------------------------------------------------
 */

static void chunk_touch(uint32_t chunk)
{
    struct end *end = &model.ends[walk.running];
    if (walk.running == SENDER) {
        if (model.read_at[chunk] > end->knows)
            walk_fail("a chunk is written while it may still be read");
        model.written_at[chunk] = walk.ends[SENDER].stores + 1;
    } else {
        if (model.written_at[chunk] > end->knows)
            walk_fail("a chunk is read while it may still be written");
        model.read_at[chunk] = walk.ends[RECEIVER].stores + 1;
    }
}

static void *model_place(uint64_t address, size_t bytes)
{
    uint64_t start = address_of(model.chunks);
    if (address >= start && address < start + sizeof(model.chunks)) {
        if (address + bytes > start + model.ring_chunks * CHUNK_BYTES)
            walk_fail("a byte outside of the ring is touched");
        else
            chunk_touch((uint32_t) ((address - start) / CHUNK_BYTES));
    }
    return (void *) (uintptr_t) address;
}

static void pause_here(void)
{
    /* That it got here is part of where it is. */
    model.ends[walk.running].seen = model.ends[walk.running].seen * 31 + 3;
    walk_pause();
}

static uint64_t model_acquire(uint64_t address)
{
    struct end *end = &model.ends[walk.running];
    if (address != address_of(&end->counter))
        walk_fail("an end waits for a counter that is not in its memory");
    pause_here();
    end->knows = end->counter_stores;
    end->seen = end->seen * 31 + end->counter + 1;
    return end->counter;
}

static void model_release(uint64_t address, uint64_t value)
{
    struct end *end = &model.ends[walk.running], *other = &model.ends[!walk.running];
    if (address == address_of(&end->moved)) { /* for its own host */
        end->moved = value;
        return;
    }
    if (address != address_of(&other->counter))
        walk_fail("an end stores to a counter that is not the other's");
    pause_here();
    if (value <= other->counter)
        walk_fail("a counter does not grow");
    other->counter = value;
    other->counter_stores = ++walk.ends[walk.running].stores;
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
    while (!walk.failure) {
        uint64_t chunks = chunk_count(&job);
        walk.ends[me].waiting_from = walk.ends[!me].stores;
        end->seen = 0;
        chunk_run(&job, 0, 1);
        end->next = job.first += end->moved;
        if (end->moved == chunks)
            return;
        job.user += end->moved * CHUNK_BYTES;
        job.bytes -= end->moved * CHUNK_BYTES;
        if (end->moved == 0) { /* it would be started again in vain */
            walk.ends[me].waiting = true;
            pause_here();
        }
    }
}

static void sender_run(void)
{
    struct end *end = &model.ends[SENDER];
    for (; end->message < model.count && !walk.failure; end->message++) {
        for (uint32_t i = 0; i < model.length[end->message]; i++)
            model.out[i] = byte_of(end->message, i);
        message_move(SENDER, model.out);
    }
    walk_done();
}

static void receiver_run(void)
{
    struct end *end = &model.ends[RECEIVER];
    for (; end->message < model.count && !walk.failure; end->message++) {
        memset(model.in, 0, sizeof(model.in));
        message_move(RECEIVER, model.in);
        for (uint32_t i = 0; i < BYTES_MAX && !walk.failure; i++)
            if (model.in[i] != (i < model.length[end->message] ? byte_of(end->message, i) : 0))
                walk_fail("other bytes came");
    }
    walk_done();
}

/* --- the search ---------------------------------------------------------------------------------
 */

static void run_begin(void)
{
    memset(model.chunks, 0, sizeof(model.chunks));
    memset(model.written_at, 0, sizeof(model.written_at));
    memset(model.read_at, 0, sizeof(model.read_at));
    memset(model.out, 0, sizeof(model.out));
    memset(model.in, 0, sizeof(model.in));
    memset(model.ends, 0, sizeof(model.ends));
}

static uint64_t state_hash(void)
{
    uint64_t hash = WALK_HASH;
    hash = walk_hash(hash, model.chunks, sizeof(model.chunks));
    hash = walk_hash(hash, model.written_at, sizeof(model.written_at));
    hash = walk_hash(hash, model.read_at, sizeof(model.read_at));
    hash = walk_hash(hash, model.in, sizeof(model.in));
    for (int i = 0; i < ENDS; i++) {
        const struct end *end = &model.ends[i];
        const uint64_t all[] = {end->knows,   end->counter, end->counter_stores,
                                end->message, end->next,    end->seen};
        hash = walk_hash(hash, all, sizeof(all));
    }
    return hash;
}

static int case_report(void)
{
    fprintf(stderr, "%s: a ring of %u chunks, messages of", walk.failure, model.ring_chunks);
    for (uint32_t i = 0; i < model.count; i++)
        fprintf(stderr, " %u", model.length[i]);
    fprintf(stderr, " bytes");
    walk_report();
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
    return walk_all() ? 0 : case_report();
}

int main(void)
{
    static const struct walk_model walked = {
        {sender_run, receiver_run}, run_begin, state_hash, VISITED_MAX, NULL};
    int failed = 0;
    uint64_t scripts = 0;
    if (!walk_can_run())
        return 77;
    if (!walk_begin(&walked))
        return 1;
    for (uint32_t ring = 1; ring <= RING_MAX; ring++)
        for (uint32_t digits = 0; digits < 81 && !failed; digits++, scripts++)
            failed = script_check(ring, 4, digits);
    printf("%llu scripts, %llu states: %s\n", (unsigned long long) scripts,
           (unsigned long long) walk.states, failed ? "failed" : "all hold");
    walk_end();
    return failed;
}
