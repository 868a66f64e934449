/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of a sender and a receiver on small rings, with the memory order that the
 * ring states and no more: no message is lost, changed or invented, neither end waits for ever. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "test/unit/walk.h"

/* The ring's own source is compiled here, with each atomic access a point where the other end may
 * go on. */
static uint64_t model_load(const void *address, size_t bytes, memory_order order);
static void model_store(void *address, size_t bytes, uint64_t value, memory_order order);

#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit(address, order)                                                       \
    model_load((const void *) (address), sizeof(*(address)), (order))
#define atomic_store_explicit(address, value, order)                                               \
    model_store((void *) (address), sizeof(*(address)), (uint64_t) (value), (order))

#include "common/ring/ring.c"

#define LINES_MAX    16
#define MESSAGES_MAX 16
#define VISITED_MAX  (1u << 22)

/* What an end knows of the other's past: the accesses of the other up to that count happened
 * before. */
struct clock {
    uint32_t of[ENDS];
};

/* An atomic word, found by its address. */
struct word {
    const void *address;
    struct clock released; /* what the last store lets a load with acquire know */
    uint32_t stored_at;    /* the storing end's count, */
    int stored_by;         /* and the end; -1: never */
    memory_order order;
};

/* Who touched the payload of a line last, and when. */
struct touch {
    uint32_t written_at; /* by the sender */
    uint32_t read_at;    /* by the receiver */
};

struct end {
    uint32_t item;      /* of the script */
    uint64_t seen_hash; /* of the values read since the item began */
};

static struct {
    /* the case */
    uint32_t lines;
    uint32_t count;
    uint32_t length[MESSAGES_MAX];
    unsigned start[MESSAGES_MAX];
    /* the ring */
    _Alignas(64) struct ring_line memory[LINES_MAX];
    _Alignas(64) struct ring_feedback feedback;
    uint64_t stale[1];
    struct ring_sender sender;
    struct ring_receiver receiver;
    /* the run */
    struct end ends[ENDS];
    struct clock clocks[ENDS];
    struct word words[LINES_MAX + 2];
    uint32_t word_count;
    struct touch touches[LINES_MAX];
} model;

static void pause_here(void)
{
    /* That it got here is part of where it is. */
    model.ends[walk.running].seen_hash = walk_hash(model.ends[walk.running].seen_hash, "p", 1);
    walk_pause();
}

static struct word *word_find(const void *address)
{
    for (uint32_t i = 0; i < model.word_count; i++)
        if (model.words[i].address == address)
            return &model.words[i];
    model.words[model.word_count].address = address;
    model.words[model.word_count].stored_by = -1;
    return &model.words[model.word_count++];
}

static uint64_t model_load(const void *address, size_t bytes, memory_order order)
{
    int me = walk.running;
    struct word *word;
    uint64_t value = 0;

    pause_here();
    word = word_find(address);
    /* A store without release that did not happen before this load may be seen or not: the ring
     * must never depend on it. */
    if (word->stored_by == !me && word->order == memory_order_relaxed &&
        word->stored_at > model.clocks[me].of[!me])
        walk_fail("a word is read that may still hold what it held before");
    if (order == memory_order_acquire && word->stored_by == !me &&
        word->released.of[!me] > model.clocks[me].of[!me])
        model.clocks[me].of[!me] = word->released.of[!me];
    memcpy(&value, address, bytes);
    model.ends[me].seen_hash = walk_hash(model.ends[me].seen_hash, &value, sizeof(value));
    return value;
}

static void model_store(void *address, size_t bytes, uint64_t value, memory_order order)
{
    int me = walk.running;
    struct word *word;

    pause_here();
    word = word_find(address);
    word->stored_at = ++model.clocks[me].of[me];
    word->stored_by = me;
    word->order = order;
    memset(&word->released, 0, sizeof(word->released));
    if (order == memory_order_release)
        word->released = model.clocks[me];
    memcpy(address, &value, bytes);
    walk.ends[me].stores++;
    model.ends[me].seen_hash = walk_hash(model.ends[me].seen_hash, &order, sizeof(order));
}

static void payload_touch(const unsigned char *payload, uint32_t length, bool write)
{
    size_t from = (size_t) (payload - (unsigned char *) model.memory);
    size_t last = from + (length ? length - 1 : 0);

    for (size_t line = from / 64; line <= last / 64 && 0 != length; line++) {
        struct touch *touch = &model.touches[line];

        if (write && touch->read_at > model.clocks[SENDER].of[RECEIVER])
            walk_fail("a payload is written while it may still be read");
        if (!write && touch->written_at > model.clocks[RECEIVER].of[SENDER])
            walk_fail("a payload is read while it may still be written");
        if (write)
            touch->written_at = model.clocks[SENDER].of[SENDER] + 1;
        else
            touch->read_at = model.clocks[RECEIVER].of[RECEIVER] + 1;
    }
}

static void wait_here(void)
{
    walk.ends[walk.running].waiting = true;
    pause_here();
    /* The next attempt begins like the first. */
    model.ends[walk.running].seen_hash = 0;
}

/* Before an attempt: what the other end stored up to here was seen if the attempt fails. */
static void wait_prepare(void)
{
    walk.ends[walk.running].waiting_from = walk.ends[!walk.running].stores;
}

/* All headers within a payload look like the next message's: the reader must not believe them. */
static void payload_write(unsigned char *room, uint32_t number, uint32_t length)
{
    size_t from = (size_t) (room - (unsigned char *) model.memory);

    memset(room, (int) number + 1, length);
    for (size_t at = (from + 63) / 64 * 64; at + 8 <= from + length; at += 64) {
        uint64_t trap =
            ring_header((uint16_t) (ring_lap(model.sender.head, model.sender.shift) + 1), 77,
                        RING_KIND_FIRST, 8, 1);

        memcpy((unsigned char *) model.memory + at, &trap, sizeof(trap));
    }
}

static void item_next(void)
{
    model.ends[walk.running].item++;
    model.ends[walk.running].seen_hash = 0;
}

static void sender_run(void)
{
    for (uint32_t number = 0; number < model.count; number++, item_next()) {
        uint32_t length = model.length[number];
        unsigned start = model.start[number];
        unsigned char *room;

        while (wait_prepare(), NULL == (room = ring_reserve(&model.sender, start, length)))
            wait_here();
        payload_touch(room, length, true);
        payload_write(room, number, length);
        ring_publish(&model.sender, (uint8_t) number, RING_KIND_FIRST, start, length);
    }
    walk_done();
}

static void receiver_run(void)
{
    for (uint32_t number = 0; number < model.count; number++, item_next()) {
        struct ring_message message;
        enum ring_result result;

        while (wait_prepare(), RING_EMPTY == (result = ring_peek(&model.receiver, &message)))
            wait_here();
        if (RING_BROKEN == result)
            walk_fail("a header is broken");
        else if (message.tag != (uint8_t) number || message.length != model.length[number])
            walk_fail("another message came");
        else {
            payload_touch(message.payload, message.length, false);
            /* The first byte that no trap covers. */
            if (message.length > 0 && 0 != (uintptr_t) message.payload % 64 &&
                *(unsigned char *) message.payload != number + 1)
                walk_fail("the payload is another's");
        }
        if (NULL != walk.failure)
            break;
        ring_release(&model.receiver, &message);
    }
    walk_done();
}

static void run_begin(void)
{
    memset(model.memory, 0, sizeof(model.memory));
    memset(&model.feedback, 0, sizeof(model.feedback));
    memset(model.stale, 0, sizeof(model.stale));
    memset(model.clocks, 0, sizeof(model.clocks));
    memset(model.words, 0, sizeof(model.words));
    memset(model.touches, 0, sizeof(model.touches));
    model.word_count = 0;
    ring_sender_init(&model.sender, model.memory, model.lines, &model.feedback, model.stale);
    ring_receiver_init(&model.receiver, model.memory, model.lines, &model.feedback);
    memset(model.ends, 0, sizeof(model.ends));
}

static uint64_t state_hash(void)
{
    uint64_t hash = WALK_HASH;

    hash = walk_hash(hash, model.memory, sizeof(model.memory[0]) * model.lines);
    hash = walk_hash(hash, &model.feedback, sizeof(model.feedback));
    hash = walk_hash(hash, model.stale, sizeof(model.stale));
    hash = walk_hash(hash, &model.sender, sizeof(model.sender));
    hash = walk_hash(hash, &model.receiver, sizeof(model.receiver));
    hash = walk_hash(hash, model.clocks, sizeof(model.clocks));
    hash = walk_hash(hash, model.touches, sizeof(model.touches));
    for (uint32_t i = 0; i < model.word_count; i++) {
        hash = walk_hash(hash, &model.words[i].address, sizeof(model.words[i].address));
        hash = walk_hash(hash, &model.words[i].released, sizeof(model.words[i].released));
        hash = walk_hash(hash, &model.words[i].stored_at, sizeof(model.words[i].stored_at));
    }
    for (int i = 0; i < ENDS; i++) {
        hash = walk_hash(hash, &model.ends[i].item, sizeof(model.ends[i].item));
        hash = walk_hash(hash, &model.ends[i].seen_hash, sizeof(model.ends[i].seen_hash));
    }
    return hash;
}

static int case_report(void)
{
    fprintf(stderr, "%s: a ring of %u lines, messages of", walk.failure, model.lines);
    for (uint32_t i = 0; i < model.count; i++)
        fprintf(stderr, " %u", model.length[i]);
    fprintf(stderr, " bytes");
    walk_report();
    return 1;
}

/* Message i has the length that bit i of `bits` chooses. */
static int script_check(uint32_t lines, uint32_t count, uint32_t bits, uint32_t shorter,
                        uint32_t longer)
{
    model.lines = lines;
    model.count = count;
    for (uint32_t i = 0; i < count; i++) {
        model.length[i] = bits >> i & 1 ? longer : shorter;
        model.start[i] = model.length[i] > 56 && i % 2 ? 64 : 8;
    }
    return walk_all() ? 0 : case_report();
}

static int walks(void)
{
    int failed = 0;
    /* Up to two laps of a ring of 8 lines, messages of 1 and 2 lines in every order. */
    for (uint32_t bits = 0; bits < 1u << 8 && !failed; bits++)
        failed = script_check(8, 8, bits, 8, 64);
    /* More laps, in a few orders. */
    for (uint32_t bits = 0; bits < 1u << 14 && !failed; bits += 2731)
        failed = script_check(8, 14, bits, 8, 64);
    /* A ring of 16 lines, messages of 1 and 4 lines. */
    for (uint32_t bits = 0; bits < 1u << 8 && !failed; bits += 5)
        failed = script_check(16, 8, bits, 8, 190);
    return failed;
}

int main(void)
{
    static const struct walk_model walked = {
        {sender_run, receiver_run}, run_begin, state_hash, VISITED_MAX, NULL};
    return walk_main(&walked, walks, "the ring holds");
}
