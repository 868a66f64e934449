/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of a sender that goes on in other rings, larger and smaller, and of the
 * receiver that follows, with the memory order that they state and no more: every message comes
 * once and in order, no ring is written or cleared while the other end may still read it, and
 * neither end waits for ever. The receiver may refuse rings: then what was in them comes again. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "test/unit/walk.h"

/* The sources are compiled here, with each atomic access a point where the other end may go on. */
static uint64_t model_load(const void *address, size_t bytes, memory_order order);
static void model_store(void *address, size_t bytes, uint64_t value, memory_order order);

#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit(address, order)                                                       \
    model_load((const void *) (address), sizeof(*(address)), (order))
#define atomic_store_explicit(address, value, order)                                               \
    model_store((void *) (address), sizeof(*(address)), (uint64_t) (value), (order))

#include "common/ring/move.h"
#include "common/ring/ring.c"

#define RINGS       2 /* places: a ring is begun in one while the other is read to its end */
#define LINES       4
#define VISITED_MAX (1u << 22)
#define WORDS_MAX   (RINGS * (LINES + 2) + 2)

/* What an end knows of the other's past: its stores up to that count happened before. */
struct clock {
    uint32_t of[ENDS];
};

struct word {
    const void *address;
    struct clock released;
    uint32_t stored_at;
    int stored_by;
    memory_order order;
};

struct end {
    uint32_t item;
    uint64_t seen_hash;
};

static struct {
    /* the case */
    uint32_t count;       /* messages */
    uint32_t moves;       /* bit i: the sender would like to go on elsewhere before message i */
    uint32_t refusals;    /* bit i: the receiver cannot follow to ring i + 1 */
    bool too_early;       /* a sender that does not wait for the receiver, which must be found */
    bool uncleared;       /* a receiver that refuses and leaves the ring as it was, likewise */
    bool taken_too_early; /* a receiver that does not empty the ring, which must be found */
    /* what both share */
    _Alignas(64) struct ring_line memory[RINGS][LINES];
    _Alignas(64) struct ring_feedback feedback[RINGS];
    struct ring_move move;
    /* the ends */
    uint64_t stale[1];
    struct ring_sender sender;
    struct ring_receiver receiver;
    uint32_t announced; /* by the sender */
    uint32_t place;     /* that it writes in */
    uint32_t number;    /* of its next message */
    uint32_t first;     /* message in the ring announced last */
    uint32_t moved;     /* bit i: before message i, which may come again */
    uint32_t read;      /* by the receiver */
    uint32_t read_at;   /* the place */
    struct end ends[ENDS];
    struct clock clocks[ENDS];
    struct word words[WORDS_MAX];
    uint32_t word_count;
    uint32_t last_read[RINGS]; /* the receiver's store that comes after its last look at a ring */
} model;

static void pause_here(void)
{
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

static int ring_of(const void *address)
{
    const unsigned char *at = address;

    for (int i = 0; i < RINGS; i++)
        if (at >= (unsigned char *) model.memory[i] &&
            at < (unsigned char *) model.memory[i] + sizeof(model.memory[i]))
            return i;
    return -1;
}

static uint64_t model_load(const void *address, size_t bytes, memory_order order)
{
    int me = walk.running, ring = ring_of(address);
    struct word *word;
    uint64_t value = 0;

    pause_here();
    word = word_find(address);
    if (word->stored_by == !me && word->order == memory_order_relaxed &&
        word->stored_at > model.clocks[me].of[!me])
        walk_fail("a word is read that may still hold what it held before");
    if (order == memory_order_acquire && word->stored_by == !me &&
        word->released.of[!me] > model.clocks[me].of[!me])
        model.clocks[me].of[!me] = word->released.of[!me];
    if (me == RECEIVER && ring >= 0)
        model.last_read[ring] = model.clocks[me].of[me] + 1;
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

static void wait_here(void)
{
    walk.ends[walk.running].waiting = true;
    pause_here();
    model.ends[walk.running].seen_hash = 0;
}

static void wait_prepare(void)
{
    walk.ends[walk.running].waiting_from = walk.ends[!walk.running].stores;
}

static void item_next(void)
{
    model.ends[walk.running].item++;
    model.ends[walk.running].seen_hash = 0;
}

static void ring_clear(uint32_t place)
{
    memset(model.memory[place], 0, sizeof(model.memory[place]));
    memset(&model.feedback[place], 0, sizeof(model.feedback[place]));
    for (uint32_t i = 0; i < model.word_count; i++)
        if (ring_of(model.words[i].address) == (int) place ||
            model.words[i].address == &model.feedback[place].freed)
            model.words[i].stored_by = -1;
}

/* As shm_outbound_grow and shm_outbound_shrink do: goes on in the other place, cleared. */
static void sender_move(void)
{
    uint32_t next = model.announced + 1, place = (model.place + 1) % RINGS;

    if (!model.too_early && !ring_move_done(&model.move, model.announced))
        return; /* another time */
    /* The receiver's looks at that place, when it was last in use, happened before. */
    if (model.last_read[place] > model.clocks[SENDER].of[RECEIVER])
        walk_fail("a ring is cleared that the receiver may still read");
    ring_clear(place);
    model.stale[0] = 0;
    ring_sender_init(&model.sender, model.memory[place], LINES, &model.feedback[place],
                     model.stale);
    ring_move_announce(&model.move, next, LINES, place);
    model.announced = next;
    model.place = place;
    model.first = model.number;
}

/* As shm_send_refused does: back to the ring that the receiver has cleared. */
static bool sender_returns(void)
{
    if (!ring_move_refused(&model.move, model.announced))
        return false;
    model.place = (model.place + 1) % RINGS;
    model.stale[0] = 0;
    ring_sender_init(&model.sender, model.memory[model.place], LINES, &model.feedback[model.place],
                     model.stale);
    ring_move_return(&model.move, model.announced);
    return true;
}

/* False: there is no room yet. */
static bool sender_send(void)
{
    unsigned char *room = ring_reserve_line(&model.sender);

    if (!room)
        return false;
    room[0] = (unsigned char) (model.number + 1);
    ring_publish_line(&model.sender, (uint8_t) model.number, RING_KIND_FIRST, 1);
    return true;
}

/* Ends when the receiver is at the last ring, as the end of the module does. */
static bool sender_goes_on(void)
{
    uint32_t bit = 1u << model.number;

    if (model.refusals != 0 && sender_returns()) {
        model.number = model.first;
        return true;
    }
    if (model.number == model.count)
        return false;
    if ((model.moves & bit & ~model.moved) != 0) {
        model.moved |= bit;
        sender_move();
    }
    if (!sender_send())
        return false;
    model.number++;
    return true;
}

/* Ends when the receiver is at the last ring, as the end of the module does. */
static void sender_run(void)
{
    while (wait_prepare(),
           model.number < model.count ||
               (model.refusals != 0 && !ring_move_done(&model.move, model.announced))) {
        if (sender_goes_on())
            item_next();
        else
            wait_here();
    }
    walk_done();
}

/* As receive_rung and shm_accept_next do. */
static void receiver_follow(void)
{
    uint32_t announced = ring_move_seen(&model.move);

    if (announced == model.read || (!model.taken_too_early && ring_has_message(&model.receiver)))
        return;
    bool refuses = model.refusals >> (announced - 1) & 1;

    if (refuses && !model.uncleared)
        ring_clear(model.read_at);
    else if (!refuses)
        model.read_at = (uint32_t) model.move.place;
    ring_receiver_init(&model.receiver, model.memory[model.read_at], LINES,
                       &model.feedback[model.read_at]);
    model.read = announced;
    if (refuses)
        ring_move_refuse(&model.move, announced);
    else
        ring_move_take(&model.move, announced);
}

static void receiver_run(void)
{
    for (uint32_t number = 0; number < model.count; number++, item_next()) {
        struct ring_message message;
        enum ring_result result;

        while (wait_prepare(), RING_EMPTY == (result = ring_peek(&model.receiver, &message))) {
            uint32_t before = model.read;

            receiver_follow();
            if (model.read == before)
                wait_here();
        }
        if (RING_BROKEN == result)
            walk_fail("a header is broken");
        else if (message.tag != (uint8_t) number ||
                 *(unsigned char *) message.payload != number + 1)
            walk_fail("another message came");
        if (NULL != walk.failure)
            break;
        ring_release(&model.receiver, &message);
    }
    walk_done();
}

static void run_begin(void)
{
    memset(model.memory, 0, sizeof(model.memory));
    memset(model.feedback, 0, sizeof(model.feedback));
    memset(&model.move, 0, sizeof(model.move));
    memset(model.stale, 0, sizeof(model.stale));
    memset(model.clocks, 0, sizeof(model.clocks));
    memset(model.words, 0, sizeof(model.words));
    memset(model.last_read, 0, sizeof(model.last_read));
    memset(model.ends, 0, sizeof(model.ends));
    model.word_count = model.announced = model.read = 0;
    model.place = model.read_at = model.number = model.first = model.moved = 0;
    ring_sender_init(&model.sender, model.memory[0], LINES, &model.feedback[0], model.stale);
    ring_receiver_init(&model.receiver, model.memory[0], LINES, &model.feedback[0]);
}

static uint64_t state_hash(void)
{
    uint64_t hash = WALK_HASH;

    hash = walk_hash(hash, model.memory, sizeof(model.memory));
    hash = walk_hash(hash, model.feedback, sizeof(model.feedback));
    hash = walk_hash(hash, &model.move, sizeof(model.move));
    hash = walk_hash(hash, model.stale, sizeof(model.stale));
    hash = walk_hash(hash, &model.sender, sizeof(model.sender));
    hash = walk_hash(hash, &model.receiver, sizeof(model.receiver));
    hash = walk_hash(hash, &model.announced, sizeof(model.announced));
    hash = walk_hash(hash, &model.place, sizeof(model.place));
    hash = walk_hash(hash, &model.number, sizeof(model.number));
    hash = walk_hash(hash, &model.first, sizeof(model.first));
    hash = walk_hash(hash, &model.moved, sizeof(model.moved));
    hash = walk_hash(hash, &model.read, sizeof(model.read));
    hash = walk_hash(hash, &model.read_at, sizeof(model.read_at));
    hash = walk_hash(hash, model.clocks, sizeof(model.clocks));
    hash = walk_hash(hash, model.last_read, sizeof(model.last_read));
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

static bool case_holds(uint32_t count, uint32_t moves, uint32_t refusals)
{
    model.count = count;
    model.moves = moves;
    model.refusals = refusals;
    return walk_all();
}

/* The walk must find what is wrong where something is. */
static int faults_found(void)
{
    bool found;

    model.too_early = true;
    found = !case_holds(5, 0x16, 0);
    model.too_early = false;
    if (!found)
        return fprintf(stderr, "a sender that does not wait is not found\n"), 1;
    model.taken_too_early = true;
    found = !case_holds(4, 0x4, 0);
    model.taken_too_early = false;
    if (!found)
        return fprintf(stderr, "a receiver that leaves messages behind is not found\n"), 1;
    model.uncleared = true;
    found = !case_holds(3, 0x2, 0x1);
    model.uncleared = false;
    if (!found)
        return fprintf(stderr, "a refusal that leaves old messages is not found\n"), 1;
    return 0;
}

static int walks(void)
{
    int failed = 0;
    /* Every choice of moments to go on elsewhere: there, and back, and there again. */
    for (uint32_t moves = 0; moves < 1u << 5 && !failed; moves++)
        failed = !case_holds(5, moves, 0);
    /* The first ring, or the second, or both are refused. */
    for (uint32_t moves = 1; moves < 1u << 3 && !failed; moves++)
        for (uint32_t refusals = 1; refusals < 1u << 2 && !failed; refusals++)
            failed = !case_holds(3, moves, refusals);
    if (failed) {
        fprintf(stderr, "%s: moves %x, refusals %x\n", walk.failure, model.moves, model.refusals);
        walk_report();
    }
    return failed || faults_found();
}

int main(void)
{
    static const struct walk_model walked = {
        {sender_run, receiver_run}, run_begin, state_hash, VISITED_MAX, NULL};
    return walk_main(&walked, walks, "no message is lost between rings");
}
