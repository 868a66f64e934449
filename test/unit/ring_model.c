/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of a sender and a receiver on small rings, with the memory order that the
 * ring states and no more: no message is lost, changed or invented, neither end waits for ever. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

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

enum { SENDER, RECEIVER, ENDS };

#define LINES_MAX    16
#define MESSAGES_MAX 16
#define STEPS_MAX    400
#define STACK_BYTES  (64 * 1024)
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
    ucontext_t context;
    unsigned char *stack;
    bool done;
    bool waiting;          /* until the other end stores something */
    uint32_t waiting_from; /* the other's stores when it began to */
    uint32_t stores;
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
    int running;
    ucontext_t scheduler;
    bool pruned;
    /* the search */
    uint8_t choice[STEPS_MAX];
    uint8_t alternatives[STEPS_MAX];
    uint32_t depth;
    uint32_t prefix;
    const char *failure;
    uint64_t runs;
} model;

static uint64_t *visited;
static uint32_t visited_count;
static uint64_t states;

static uint64_t hash_add(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* False: it was there. */
static bool visited_add(uint64_t hash)
{
    uint32_t at = (uint32_t) (hash >> 20) & (VISITED_MAX - 1);

    hash |= 1;
    for (; 0 != visited[at]; at = (at + 1) & (VISITED_MAX - 1))
        if (visited[at] == hash)
            return false;
    visited[at] = hash;
    if (++visited_count > VISITED_MAX / 2) {
        fprintf(stderr, "the model is too large\n");
        exit(1);
    }
    return true;
}

static void failure_note(const char *what)
{
    if (NULL == model.failure)
        model.failure = what;
}

static void pause_here(void)
{
    /* That it got here is part of where it is. */
    model.ends[model.running].seen_hash = hash_add(model.ends[model.running].seen_hash, "p", 1);
    swapcontext(&model.ends[model.running].context, &model.scheduler);
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
    int me = model.running;
    struct word *word;
    uint64_t value = 0;

    pause_here();
    word = word_find(address);
    /* A store without release that did not happen before this load may be seen or not: the ring
     * must never depend on it. */
    if (word->stored_by == !me && word->order == memory_order_relaxed &&
        word->stored_at > model.clocks[me].of[!me])
        failure_note("a word is read that may still hold what it held before");
    if (order == memory_order_acquire && word->stored_by == !me &&
        word->released.of[!me] > model.clocks[me].of[!me])
        model.clocks[me].of[!me] = word->released.of[!me];
    memcpy(&value, address, bytes);
    model.ends[me].seen_hash = hash_add(model.ends[me].seen_hash, &value, sizeof(value));
    return value;
}

static void model_store(void *address, size_t bytes, uint64_t value, memory_order order)
{
    int me = model.running;
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
    model.ends[me].stores++;
    model.ends[me].seen_hash = hash_add(model.ends[me].seen_hash, &order, sizeof(order));
}

static void payload_touch(const unsigned char *payload, uint32_t length, bool write)
{
    size_t from = (size_t) (payload - (unsigned char *) model.memory);
    size_t last = from + (length ? length - 1 : 0);

    for (size_t line = from / 64; line <= last / 64 && 0 != length; line++) {
        struct touch *touch = &model.touches[line];

        if (write && touch->read_at > model.clocks[SENDER].of[RECEIVER])
            failure_note("a payload is written while it may still be read");
        if (!write && touch->written_at > model.clocks[RECEIVER].of[SENDER])
            failure_note("a payload is read while it may still be written");
        if (write)
            touch->written_at = model.clocks[SENDER].of[SENDER] + 1;
        else
            touch->read_at = model.clocks[RECEIVER].of[RECEIVER] + 1;
    }
}

static void wait_here(void)
{
    struct end *end = &model.ends[model.running];

    end->waiting = true;
    pause_here();
    /* The next attempt begins like the first. */
    end->seen_hash = 0;
}

/* Before an attempt: what the other end stored up to here was seen if the attempt fails. */
static void wait_prepare(void)
{
    model.ends[model.running].waiting_from = model.ends[!model.running].stores;
}

/* All headers within a payload look like the next message's: nobody may believe them. */
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
    model.ends[model.running].item++;
    model.ends[model.running].seen_hash = 0;
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
    model.ends[SENDER].done = true;
    pause_here();
}

static void receiver_run(void)
{
    for (uint32_t number = 0; number < model.count; number++, item_next()) {
        struct ring_message message;
        enum ring_result result;

        while (wait_prepare(), RING_EMPTY == (result = ring_peek(&model.receiver, &message)))
            wait_here();
        if (RING_BROKEN == result)
            failure_note("a header is broken");
        else if (message.tag != (uint8_t) number || message.length != model.length[number])
            failure_note("another message came");
        else {
            payload_touch(message.payload, message.length, false);
            /* The first byte that no trap covers. */
            if (message.length > 0 && 0 != (uintptr_t) message.payload % 64 &&
                *(unsigned char *) message.payload != number + 1)
                failure_note("the payload is another's");
        }
        if (NULL != model.failure)
            break;
        ring_release(&model.receiver, &message);
    }
    model.ends[RECEIVER].done = true;
    pause_here();
}

static void run_begin(void)
{
    static void (*const programs[ENDS])(void) = {sender_run, receiver_run};

    memset(model.memory, 0, sizeof(model.memory));
    memset(&model.feedback, 0, sizeof(model.feedback));
    memset(model.stale, 0, sizeof(model.stale));
    memset(model.clocks, 0, sizeof(model.clocks));
    memset(model.words, 0, sizeof(model.words));
    memset(model.touches, 0, sizeof(model.touches));
    model.word_count = 0;
    model.pruned = false;
    ring_sender_init(&model.sender, model.memory, model.lines, &model.feedback, model.stale);
    ring_receiver_init(&model.receiver, model.memory, model.lines, &model.feedback);
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

static uint64_t state_hash(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = hash_add(hash, model.memory, sizeof(model.memory[0]) * model.lines);
    hash = hash_add(hash, &model.feedback, sizeof(model.feedback));
    hash = hash_add(hash, model.stale, sizeof(model.stale));
    hash = hash_add(hash, &model.sender, sizeof(model.sender));
    hash = hash_add(hash, &model.receiver, sizeof(model.receiver));
    hash = hash_add(hash, model.clocks, sizeof(model.clocks));
    hash = hash_add(hash, model.touches, sizeof(model.touches));
    for (uint32_t i = 0; i < model.word_count; i++) {
        hash = hash_add(hash, &model.words[i].address, sizeof(model.words[i].address));
        hash = hash_add(hash, &model.words[i].released, sizeof(model.words[i].released));
        hash = hash_add(hash, &model.words[i].stored_at, sizeof(model.words[i].stored_at));
    }
    for (int i = 0; i < ENDS; i++) {
        hash = hash_add(hash, &model.ends[i].item, sizeof(model.ends[i].item));
        hash = hash_add(hash, &model.ends[i].seen_hash, sizeof(model.ends[i].seen_hash));
        hash = hash_add(hash, &model.ends[i].waiting, sizeof(model.ends[i].waiting));
        hash = hash_add(hash, &model.ends[i].done, sizeof(model.ends[i].done));
    }
    return hash;
}

static bool end_can_run(int i)
{
    struct end *end = &model.ends[i];

    if (end->done)
        return false;
    if (end->waiting && end->waiting_from == model.ends[!i].stores)
        return false;
    return true;
}

/* One run: the choices of the prefix, then the sender wherever it can go on. */
static void run_once(void)
{
    run_begin();
    for (model.depth = 0; NULL == model.failure && model.depth < STEPS_MAX; model.depth++) {
        bool can[ENDS] = {end_can_run(SENDER), end_can_run(RECEIVER)};
        uint32_t depth = model.depth;

        if (!can[SENDER] && !can[RECEIVER]) {
            if (!model.ends[SENDER].done || !model.ends[RECEIVER].done)
                failure_note("both ends wait for ever");
            return;
        }
        if (depth >= model.prefix) {
            if (!visited_add(state_hash())) {
                model.pruned = true;
                return;
            }
            states++;
            model.choice[depth] = can[SENDER] ? SENDER : RECEIVER;
            model.alternatives[depth] = can[SENDER] && can[RECEIVER];
        }
        model.running = model.choice[depth];
        model.ends[model.running].waiting = false;
        swapcontext(&model.scheduler, &model.ends[model.running].context);
    }
    if (NULL == model.failure)
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
        model.runs++;
        if (NULL != model.failure)
            return false;
        while (model.depth > 0 && !model.alternatives[model.depth - 1])
            model.depth--;
        if (0 == model.depth)
            return true;
        model.depth--;
        model.choice[model.depth] = RECEIVER;
        model.alternatives[model.depth] = 0;
        model.prefix = model.depth + 1;
    }
}

static int case_report(void)
{
    fprintf(stderr, "%s: a ring of %u lines, messages of", model.failure, model.lines);
    for (uint32_t i = 0; i < model.count; i++)
        fprintf(stderr, " %u", model.length[i]);
    fprintf(stderr, " bytes; who went on:");
    for (uint32_t i = 0; i <= model.depth && i < STEPS_MAX; i++)
        fprintf(stderr, " %c", model.choice[i] == SENDER ? 's' : 'r');
    fprintf(stderr, "\n");
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

#ifdef SKIPPED_BY_TSAN
    printf("ThreadSanitizer cannot follow coroutines, and the model has no threads\n");
    return 77;
#endif

    visited = malloc(VISITED_MAX * sizeof(*visited));
    for (int i = 0; i < ENDS; i++)
        model.ends[i].stack = malloc(STACK_BYTES);
    if (NULL == visited || NULL == model.ends[SENDER].stack || NULL == model.ends[RECEIVER].stack)
        return 1;
    /* Up to two laps of a ring of 8 lines, messages of 1 and 2 lines in every order. */
    for (uint32_t bits = 0; bits < 1u << 8 && !failed; bits++)
        failed = script_check(8, 8, bits, 8, 64);
    /* More laps, in a few orders. */
    for (uint32_t bits = 0; bits < 1u << 14 && !failed; bits += 2731)
        failed = script_check(8, 14, bits, 8, 64);
    /* A ring of 16 lines, messages of 1 and 4 lines. */
    for (uint32_t bits = 0; bits < 1u << 8 && !failed; bits += 5)
        failed = script_check(16, 8, bits, 8, 190);
    if (!failed)
        printf("%llu states, %llu runs: the ring holds\n", (unsigned long long) states,
               (unsigned long long) model.runs);
    return failed;
}
