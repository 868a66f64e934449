/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of a sender that offers the rest of its messages while its lane is full,
 * and of a receiver that takes it, with the memory order that pml/multilane/base/offer_word.h
 * states and no more: each piece is moved once, the receiver reads what the sender wrote, the
 * sender's user writes only after that, and neither end waits for ever. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "test/unit/walk.h"

#ifdef __clang__ /* as in check.h; the model's own words, not those of the source */
#pragma clang diagnostic ignored "-Watomic-implicit-seq-cst"
#endif

/* The source is compiled here, with each atomic access a point where the other end may go on. */
static uint64_t model_load(const void *address, memory_order order);
static void model_store(void *address, uint64_t value, memory_order order);
static bool model_compare(void *address, uint64_t *expected, uint64_t value, memory_order order,
                          memory_order otherwise);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(address, order) model_load((const void *) (address), (order))
#define atomic_store_explicit(address, value, order)                                               \
    model_store((void *) (address), (value), (order))
#define atomic_compare_exchange_strong_explicit(address, expected, value, order, otherwise)        \
    model_compare((void *) (address), (expected), (value), (order), (otherwise))

#include "pml/multilane/base/offer_word.h"

#define MESSAGES    2
#define PIECES_MAX  3
#define WORDS_MAX   4
#define VISITED_MAX (1u << 22)

/* What is wrong on purpose. */
enum fault {
    NO_FAULT,
    OPEN_RELAXED,   /* offer_open does not release the bytes */
    FINISH_RELAXED, /* offer_finish does not release the reads */
    NO_WITHDRAWAL,  /* a sender that is back sends without a look at the word */
    ANY_TAG,        /* the receiver takes what it finds, for whatever message */
    FAULTS
};

static const char *const faults[] = {"nothing", "an opening without release",
                                     "an end without release", "a sender that takes nothing back",
                                     "a receiver that looks at no tag"};

struct clock {
    uint32_t of[ENDS];
};

struct word {
    const void *address;
    struct clock released;
};

static struct {
    /* the case */
    uint32_t pieces, room;
    bool refuses; /* the receiver's first copy fails */
    enum fault fault;
    /* what both share */
    _Atomic uint64_t offer, sent, received; /* the last two: pieces that went by the lane */
    uint8_t lane[MESSAGES * PIECES_MAX];
    /* the ends */
    struct clock clocks[ENDS];
    struct word words[WORDS_MAX];
    uint32_t word_count;
    uint64_t seen_hash[ENDS];
    uint32_t at[ENDS];             /* pieces that it has sent or received by the lane */
    uint32_t written_at[MESSAGES]; /* the sender's store that its bytes come with, */
    uint32_t read_at[MESSAGES];    /* and the receiver's that comes after its last read of them */
    uint32_t moved;                /* one bit a piece */
    bool refused;
} model;

static void pause_here(void)
{
    model.seen_hash[walk.running] = walk_hash(model.seen_hash[walk.running], "p", 1);
    walk_pause();
}

static void seen(uint64_t value)
{
    model.seen_hash[walk.running] = walk_hash(model.seen_hash[walk.running], &value, sizeof(value));
}

static struct word *word_find(const void *address)
{
    for (uint32_t i = 0; i < model.word_count; i++)
        if (model.words[i].address == address)
            return &model.words[i];
    model.words[model.word_count].address = address;
    return &model.words[model.word_count++];
}

static void acquire(const struct word *word)
{
    struct clock *mine = &model.clocks[walk.running];

    for (int i = 0; i < ENDS; i++)
        if (word->released.of[i] > mine->of[i])
            mine->of[i] = word->released.of[i];
}

static uint64_t model_load(const void *address, memory_order order)
{
    pause_here();
    if (order == memory_order_acquire)
        acquire(word_find(address));
    seen(*(const uint64_t *) address);
    return *(const uint64_t *) address;
}

static void model_store(void *address, uint64_t value, memory_order order)
{
    pause_here();
    struct word *word = word_find(address);
    enum offer_state state = offer_state_of(value);
    bool is_offer = address == &model.offer;

    if (is_offer && ((model.fault == OPEN_RELAXED && state == OFFER_OPEN) ||
                     (model.fault == FINISH_RELAXED && state == OFFER_DONE)))
        order = memory_order_relaxed;
    model.clocks[walk.running].of[walk.running]++;
    memset(&word->released, 0, sizeof(word->released));
    if (order == memory_order_release)
        word->released = model.clocks[walk.running];
    *(uint64_t *) address = value;
    walk.ends[walk.running].stores++;
    seen(value);
}

/* What a change keeps of the word is released on: it continues the release of the store before. */
static bool model_compare(void *address, uint64_t *expected, uint64_t value, memory_order order,
                          memory_order otherwise)
{
    pause_here();
    uint64_t found = *(uint64_t *) address;
    bool equal = found == *expected;

    if ((equal ? order : otherwise) == memory_order_acquire)
        acquire(word_find(address));
    seen(found);
    *expected = found;
    if (equal) {
        *(uint64_t *) address = value;
        walk.ends[walk.running].stores++;
    }
    return equal;
}

static void wait_prepare(void)
{
    walk.ends[walk.running].waiting_from = walk.ends[!walk.running].stores;
}

static void wait_here(void)
{
    walk.ends[walk.running].waiting = true;
    pause_here();
    model.seen_hash[walk.running] = 0;
}

static void piece_move(uint32_t piece)
{
    if (model.moved >> piece & 1)
        walk_fail("a piece is moved twice");
    model.moved |= UINT32_C(1) << piece;
}

/* --- the sender ------------------------------------------------------------------------------- */

static bool lane_has_room(void)
{
    return model.at[SENDER] -
               (uint32_t) atomic_load_explicit(&model.received, memory_order_acquire) <
           model.room;
}

/* False: the receiver has the rest. */
static bool sender_comes_back(uint32_t tag, uint32_t piece)
{
    if (model.fault == NO_WITHDRAWAL)
        return true;
    for (;;) {
        wait_prepare();
        enum offer_state state = offer_withdraw(&model.offer, tag, piece);
        if (state == OFFER_OPEN)
            walk_fail("a word that cannot be");
        if (walk.failure || state == OFFER_MINE)
            return true;
        if (state == OFFER_DONE)
            return false;
        wait_here();
    }
}

static void message_send(uint32_t message)
{
    uint32_t tag = message + 1;

    model.clocks[SENDER].of[SENDER]++; /* the user has written the bytes */
    model.written_at[message] = model.clocks[SENDER].of[SENDER];
    offer_begin(&model.offer, tag);
    for (uint32_t piece = 0; piece < model.pieces && !walk.failure; piece++) {
        while (wait_prepare(), !lane_has_room()) {
            offer_open(&model.offer, tag, piece);
            wait_here();
            if (!sender_comes_back(tag, piece) || walk.failure)
                return;
        }
        model.lane[model.at[SENDER]++] = (uint8_t) (message * model.pieces + piece);
        atomic_store_explicit(&model.sent, model.at[SENDER], memory_order_release);
        model.seen_hash[SENDER] = 0;
    }
}

static void sender_run(void)
{
    for (uint32_t message = 0; message < MESSAGES && !walk.failure; message++) {
        message_send(message);
        /* Here the user writes over the bytes. */
        if (model.read_at[message] > model.clocks[SENDER].of[RECEIVER])
            walk_fail("the user writes what the receiver may still read");
        model.seen_hash[SENDER] = 0;
    }
    walk_done();
}

/* --- the receiver ----------------------------------------------------------------------------- */

static void bytes_read(uint32_t message)
{
    if (model.written_at[message] > model.clocks[RECEIVER].of[SENDER])
        walk_fail("the receiver reads bytes that may not be written yet");
    model.read_at[message] = model.clocks[RECEIVER].of[RECEIVER] + 1;
}

static bool rest_take(uint32_t message)
{
    uint64_t word = offer_look(&model.offer);
    uint32_t tag = model.fault == ANY_TAG ? offer_tag_of(word) : message + 1;
    uint32_t from = (uint32_t) offer_from_of(word);

    if (offer_state_of(word) != OFFER_OPEN || offer_tag_of(word) != tag ||
        !offer_take(&model.offer, tag, from))
        return false;
    bytes_read(message);
    if (model.refuses && !model.refused) {
        model.refused = true;
        offer_open(&model.offer, tag, from);
        return false;
    }
    for (uint32_t piece = from; piece < model.pieces; piece++)
        piece_move(message * model.pieces + piece);
    offer_finish(&model.offer, tag, from);
    return true;
}

static bool message_is_whole(uint32_t message)
{
    uint32_t all = (UINT32_C(1) << model.pieces) - 1;

    return (model.moved >> message * model.pieces & all) == all;
}

static void message_receive(uint32_t message)
{
    while (!message_is_whole(message) && !walk.failure) {
        wait_prepare();
        if (atomic_load_explicit(&model.sent, memory_order_acquire) > model.at[RECEIVER]) {
            piece_move(model.lane[model.at[RECEIVER]++]);
            atomic_store_explicit(&model.received, model.at[RECEIVER], memory_order_release);
            model.seen_hash[RECEIVER] = 0;
        } else if (!rest_take(message)) {
            wait_here();
        }
    }
}

static void receiver_run(void)
{
    for (uint32_t message = 0; message < MESSAGES && !walk.failure; message++) {
        message_receive(message);
        model.seen_hash[RECEIVER] = 0;
    }
    walk_done();
}

/* --- the walk --------------------------------------------------------------------------------- */

static void run_begin(void)
{
    model.offer = model.sent = model.received = 0;
    memset(model.clocks, 0, sizeof(model.clocks));
    memset(model.words, 0, sizeof(model.words));
    memset(model.seen_hash, 0, sizeof(model.seen_hash));
    memset(model.at, 0, sizeof(model.at));
    memset(model.lane, 0, sizeof(model.lane));
    memset(model.written_at, 0, sizeof(model.written_at));
    memset(model.read_at, 0, sizeof(model.read_at));
    model.word_count = model.moved = 0;
    model.refused = false;
}

static uint64_t state_hash(void)
{
    uint64_t hash = WALK_HASH;
    const uint64_t words[] = {*(uint64_t *) &model.offer, *(uint64_t *) &model.sent,
                              *(uint64_t *) &model.received, model.moved, model.refused};

    hash = walk_hash(hash, words, sizeof(words));
    hash = walk_hash(hash, model.clocks, sizeof(model.clocks));
    hash = walk_hash(hash, model.seen_hash, sizeof(model.seen_hash));
    hash = walk_hash(hash, model.at, sizeof(model.at));
    hash = walk_hash(hash, model.lane, sizeof(model.lane));
    hash = walk_hash(hash, model.written_at, sizeof(model.written_at));
    hash = walk_hash(hash, model.read_at, sizeof(model.read_at));
    for (uint32_t i = 0; i < model.word_count; i++) {
        hash = walk_hash(hash, &model.words[i].address, sizeof(model.words[i].address));
        hash = walk_hash(hash, &model.words[i].released, sizeof(model.words[i].released));
    }
    return hash;
}

static bool case_holds(uint32_t pieces, uint32_t room, bool refuses, enum fault fault)
{
    model.pieces = pieces;
    model.room = room;
    model.refuses = refuses;
    model.fault = fault;
    return walk_all();
}

/* The walk must find what is wrong where something is. */
static int faults_found(void)
{
    for (int fault = NO_FAULT + 1; fault < FAULTS; fault++)
        if (case_holds(2, 1, false, (enum fault) fault))
            return fprintf(stderr, "%s is not found\n", faults[fault]), 1;
    return 0;
}

static int walks(void)
{
    for (uint32_t pieces = 1; pieces <= PIECES_MAX; pieces++)
        for (uint32_t room = 1; room <= pieces; room++)
            for (int refuses = 0; refuses < 2; refuses++)
                if (!case_holds(pieces, room, refuses, NO_FAULT)) {
                    fprintf(stderr, "%s: %u pieces, room for %u\n", walk.failure, pieces, room);
                    walk_report();
                    return 1;
                }
    return faults_found();
}

int main(void)
{
    static const struct walk_model walked = {
        {sender_run, receiver_run}, run_begin, state_hash, VISITED_MAX, NULL};
    return walk_main(&walked, walks, "each piece is moved once");
}
