/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of one communicator on a node, and the order in which its processes use it.
 *
 * Each collective operation is a turn; turns have numbers, alike in all processes. A turn has a
 * slot of each process for what it gives, used again two turns later, and one for the result, used
 * again eight turns later, or 64 where the result is short: until then the root of a broadcast
 * waits for no one. Who writes and reads what:
 *
 *   arrived[turn % 128] counts processes that have begun the turn; it only grows. Added to by each
 *                       process; the one that completes the count is the last.
 *   a process's slot    written by it before it arrives; read by the last one, by the root, or
 *                       by all, once all have arrived. Where processes look (`looks`) nothing is
 *                       counted: each sets its slot's number to that of the turn, and the others
 *                       look at it. None is the last: what the last one does each does for itself.
 *   the result          written by the last one, or by a root; then its number is set to that of
 *                       the turn, and those that wait for it read it. In a long reduction each
 *                       process writes a range of the next turn's result, once all have arrived at
 *                       this one; all read it once all have arrived at the next. It has no number.
 *
 * What a turn has used is written again when all have arrived at the turn behind it, as then all
 * have left it; only a slot's number and arrival may be further, where a root need not wait. So no
 * process is more than 64 turns ahead of another. */
#ifndef COLL_NODE_TURN_H
#define COLL_NODE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AREA_ALIGN  128u /* processors fetch two lines at once */
#define SHORT_BYTES 112u /* a short result */
#ifndef TURN_COUNTS      /* test/unit/node_model.c has fewer */
#define TURN_COUNTS  128u
#define TURN_SLOTS   2u /* of a process */
#define TURN_RESULTS 8u
#define TURN_SHORTS  64u
#endif

/* Number and call are on the line of the first bytes, so that a reader has all at once. */
struct slot {
    /* Of a result that is there: the turn's, plus 1; not of one in ranges. Of a process's slot,
     * where processes look: the last turn that it has arrived at, plus 1. */
    _Alignas(64) _Atomic uint32_t number;
    /* Of a process's slot: the last turn that it has come to, plus 1, and below that what it calls
     * in it. Relaxed: it may be further by the time that it is read. Of a result: its root's call.
     */
    _Atomic uint64_t arrival;
    unsigned char bytes[];
};

#define SLOT_HEAD_BYTES offsetof(struct slot, bytes)

struct area {
    _Alignas(AREA_ALIGN) _Atomic uint32_t arrived[TURN_COUNTS];
    /* Processes that may sleep until a turn goes on. Raised before the last look at what is waited
     * for, read after that was changed; both sequentially consistent. */
    _Alignas(AREA_ALIGN) _Atomic uint32_t sleepers;
    /* What the operations of all end with from now on: 0, or the error that came first. Written
     * once, by the process that has it, which arrives at no turn any more; read in waits, and
     * before an operation. So those that have not read it yet have the same turns, and what they
     * read of each other is right. Relaxed: who reads it late waits for the others, and reads it
     * there. */
    _Atomic uint32_t failed;
    _Atomic uint32_t left; /* processes that use the area no more */
    _Alignas(AREA_ALIGN) unsigned char shorts[TURN_SHORTS * AREA_ALIGN];
    unsigned char slots[];
};

/* What a process knows of an area. */
struct turns {
    struct area *area; /* null: there is none */
    uint32_t ranks;
    uint32_t slot_bytes; /* of data */
    size_t slot_stride;
    uint32_t turn;
    uint32_t call;             /* in it: what, with which root and length; the same for all */
    bool is_short;             /* the result */
    bool looks;                /* each at the slots of the others, in place of counting */
    uint32_t all_at;           /* where they look: a number that all have reached */
    uint32_t due[TURN_COUNTS]; /* what each count is when all have arrived */
};

static inline size_t slot_stride(uint32_t slot_bytes)
{
    return (SLOT_HEAD_BYTES + slot_bytes + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN;
}

static inline size_t area_slots(uint32_t ranks)
{
    return TURN_RESULTS + (size_t) ranks * TURN_SLOTS;
}

static inline size_t area_bytes(uint32_t ranks, uint32_t slot_bytes)
{
    return sizeof(struct area) + area_slots(ranks) * slot_stride(slot_bytes);
}

static inline struct slot *turn_slot_at(const struct turns *turns, size_t index)
{
    return (struct slot *) (void *) (turns->area->slots + index * turns->slot_stride);
}

/* Of the turn under way. */
static inline struct slot *turn_result(const struct turns *turns)
{
    return turns->is_short
               ? (struct slot *) (void *) (turns->area->shorts +
                                           turns->turn % TURN_SHORTS * (size_t) AREA_ALIGN)
               : turn_slot_at(turns, turns->turn % TURN_RESULTS);
}

/* Of the turn behind it, which is not short. */
static inline struct slot *turn_result_next(const struct turns *turns)
{
    return turn_slot_at(turns, (turns->turn + 1) % TURN_RESULTS);
}

static inline struct slot *turn_slot_of(const struct turns *turns, uint32_t rank, uint32_t turn)
{
    return turn_slot_at(turns, TURN_RESULTS + rank * TURN_SLOTS + turn % TURN_SLOTS);
}

static inline struct slot *turn_slot(const struct turns *turns, uint32_t rank)
{
    return turn_slot_of(turns, rank, turns->turn);
}

static inline uint64_t turn_arrival(const struct turns *turns)
{
    return (uint64_t) (turns->turn + 1) << 32 | turns->call;
}

/* Numbers go round. */
static inline bool turn_is_before(uint32_t number, uint32_t other)
{
    return (int32_t) (number - other) < 0;
}

static inline void turn_set_number(struct turns *turns, struct slot *slot)
{
    /* No process is more than 64 turns ahead of another, so all have reached this; and `all_at`
     * does not seem to lie ahead after 2^31 turns in which this process has not looked. */
    if (turn_is_before(turns->all_at, turns->turn - TURN_COUNTS))
        turns->all_at = turns->turn - TURN_COUNTS;
    atomic_store_explicit(&slot->number, turns->turn + 1, memory_order_seq_cst);
}

/* The process arrives at the turn under way. True: it is the last. Release and acquire: what all
 * wrote before they arrived is there for the last one, or for those that look. Sequentially
 * consistent: see `sleepers`. */
static inline bool turn_arrive(struct turns *turns, uint32_t me)
{
    uint32_t at = turns->turn % TURN_COUNTS;
    struct slot *slot = turn_slot(turns, me);
    atomic_store_explicit(&slot->arrival, turn_arrival(turns), memory_order_relaxed);
    if (turns->looks) {
        turn_set_number(turns, slot);
        return false;
    }
    turns->due[at] += turns->ranks;
    return atomic_fetch_add_explicit(&turns->area->arrived[at], 1, memory_order_seq_cst) + 1 ==
           turns->due[at];
}

static inline bool turn_is_there(const struct turns *turns, uint32_t rank)
{
    uint64_t arrival = atomic_load_explicit(&turn_slot(turns, rank)->arrival, memory_order_relaxed);
    return arrival >> 32 == turns->turn + 1;
}

/* Has the rank come to that turn, which is at most TURN_COUNTS from the one under way? */
static inline bool turn_has_come(const struct turns *turns, uint32_t rank, uint32_t turn)
{
    for (uint32_t i = 0; i < TURN_SLOTS; i++) {
        uint64_t arrival =
            atomic_load_explicit(&turn_slot_of(turns, rank, i)->arrival, memory_order_relaxed);
        if (arrival && !turn_is_before((uint32_t) (arrival >> 32), turn + 1))
            return true;
    }
    return false;
}

/* The first that has come to the turn with another call, and *call; the number of ranks: none that
 * is still there. */
static inline uint32_t turn_stranger(const struct turns *turns, uint32_t *call)
{
    for (uint32_t rank = 0; rank < turns->ranks; rank++) {
        uint64_t arrival =
            atomic_load_explicit(&turn_slot(turns, rank)->arrival, memory_order_relaxed);
        *call = (uint32_t) arrival;
        if (arrival >> 32 == turns->turn + 1 && *call != turns->call)
            return rank;
    }
    return turns->ranks;
}

/* The same for all that follow: else *word is what to wait for, and *seen its value. */

/* By looking at each, unless an earlier look has seen them further. */
static inline bool turn_look_at_all(struct turns *turns, uint32_t turn,
                                    const _Atomic uint32_t **word, uint32_t *seen)
{
    uint32_t least = turn + 1 + INT32_MAX;
    if (!turn_is_before(turns->all_at, turn + 1))
        return true;
    for (uint32_t rank = 0; rank < turns->ranks; rank++) {
        *word = &turn_slot_of(turns, rank, turn)->number;
        *seen = atomic_load_explicit(*word, memory_order_acquire);
        if (turn_is_before(*seen, turn + 1))
            return false;
        if (turn_is_before(*seen, least))
            least = *seen;
    }
    turns->all_at = least;
    return true;
}

/* Have all arrived at the turn? Acquire: what they give in it is there, and they have left those
 * before. */
static inline bool turn_all_arrived(struct turns *turns, uint32_t turn,
                                    const _Atomic uint32_t **word, uint32_t *seen)
{
    if (turns->looks)
        return turn_look_at_all(turns, turn, word, seen);
    *word = &turns->area->arrived[turn % TURN_COUNTS];
    *seen = atomic_load_explicit(*word, memory_order_acquire);
    return *seen == turns->due[turn % TURN_COUNTS];
}

/* The turn at which a process has left the one that used the slot of the turn under way: all have
 * arrived there before this one writes its slot. */
static inline uint32_t turn_to_give(const struct turns *turns)
{
    return turns->turn - TURN_SLOTS + 1;
}

/* The same of the result. */
static inline uint32_t turn_to_tell(const struct turns *turns)
{
    return turns->turn - (turns->is_short ? TURN_SHORTS : TURN_RESULTS) + 1;
}

/* Is the result of the turn under way there? Acquire, against turn_publish. */
static inline bool turn_has_result(struct turns *turns, const _Atomic uint32_t **word,
                                   uint32_t *seen)
{
    *word = &turn_result(turns)->number;
    *seen = atomic_load_explicit(*word, memory_order_acquire);
    return *seen == turns->turn + 1;
}

/* The result is written. Sequentially consistent: see `sleepers`. */
static inline void turn_publish(const struct turns *turns)
{
    atomic_store_explicit(&turn_result(turns)->arrival, turn_arrival(turns), memory_order_relaxed);
    atomic_store_explicit(&turn_result(turns)->number, turns->turn + 1, memory_order_seq_cst);
}

/* After turn_publish, or after the last one has arrived: may anyone sleep? */
static inline bool turn_has_sleepers(const struct turns *turns)
{
    return atomic_load_explicit(&turns->area->sleepers, memory_order_seq_cst) != 0;
}

_Static_assert(SLOT_HEAD_BYTES + SHORT_BYTES == AREA_ALIGN, "a short result has its lines");
_Static_assert(TURN_COUNTS > TURN_SHORTS + 1, "a count is used again when all have passed it");

#endif
