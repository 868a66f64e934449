/* SPDX-License-Identifier: BSD-3-Clause */
/* The word by which a sender lets its receiver take the rest of a message. Both ends have mapped
 * it.
 *
 *   sender                                      receiver
 *   has no room, and may leave MPI:
 *     offer_open(from)           MINE -> OPEN
 *   is back: offer_withdraw      OPEN -> MINE   wants the rest: offer_take   OPEN -> TAKEN
 *   or finds that it came late,                 copies the bytes from `from` on, then
 *   and waits:                                    offer_finish               TAKEN -> DONE
 *                                                 or, where it could not, offer_open -> OPEN
 *   sees DONE: the memory is the user's again
 *
 * The sender sends no byte from `from` on while the word is not its own, so each byte is moved by
 * one end only. What the sender sent before it opened lies in lanes already.
 *
 * Who writes: the sender in MINE, the receiver in TAKEN, either in OPEN, by a compare and exchange
 * that one of them wins. In DONE the receiver has written for the last time.
 * Memory order: the exchange to TAKEN acquires what the sender stored with release as it opened:
 * the message's bytes. The store of DONE releases, and the sender's load of it acquires: the reads
 * of these bytes come before what the user writes next. test/unit/offer_model.c walks all orders.
 *
 * A word may serve the next message while the receiver still looks for this one, all of whose bytes
 * are on their way: the tag distinguishes them. */
#ifndef MULTILANE_OFFER_WORD_H
#define MULTILANE_OFFER_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum offer_state { OFFER_MINE, OFFER_OPEN, OFFER_TAKEN, OFFER_DONE };

/* Which word of the line that both ends have mapped. */
#define OFFER_WORD_INDEX 0

#define OFFER_TAG_BITS  22
#define OFFER_BYTES_MAX (UINT64_C(1) << (64 - OFFER_TAG_BITS - 2))

static inline uint64_t offer_word(uint32_t tag, uint64_t from, enum offer_state state)
{
    return (uint64_t) tag << (64 - OFFER_TAG_BITS) | from << 2 | (uint64_t) state;
}

static inline enum offer_state offer_state_of(uint64_t word)
{
    return (enum offer_state)(word & 3);
}

static inline uint64_t offer_from_of(uint64_t word)
{
    return (word & ((UINT64_C(1) << (64 - OFFER_TAG_BITS)) - 1)) >> 2;
}

static inline uint32_t offer_tag_of(uint64_t word)
{
    return (uint32_t) (word >> (64 - OFFER_TAG_BITS));
}

/* --- the sender ------------------------------------------------------------------------------- */

static inline void offer_begin(_Atomic uint64_t *word, uint32_t tag)
{
    /* Relaxed: the message that tells of the word makes it visible. */
    atomic_store_explicit(word, offer_word(tag, 0, OFFER_MINE), memory_order_relaxed);
}

static inline void offer_open(_Atomic uint64_t *word, uint32_t tag, uint64_t from)
{
    /* Release, against offer_take: the message's bytes. By the receiver, which could not copy them:
     * against offer_withdraw, as offer_finish. */
    atomic_store_explicit(word, offer_word(tag, from, OFFER_OPEN), memory_order_release);
}

/* OFFER_MINE: the sender goes on from `from`. OFFER_TAKEN: it waits, and asks again. OFFER_DONE:
 * all is moved. OFFER_OPEN: another word than can be. */
static inline enum offer_state offer_withdraw(_Atomic uint64_t *word, uint32_t tag, uint64_t from)
{
    uint64_t found = offer_word(tag, from, OFFER_OPEN);

    /* Acquire, against offer_finish: the receiver has read the bytes. */
    if (atomic_compare_exchange_strong_explicit(word, &found, offer_word(tag, from, OFFER_MINE),
                                                memory_order_acquire, memory_order_acquire))
        return OFFER_MINE;
    if (found == offer_word(tag, from, OFFER_TAKEN) || found == offer_word(tag, from, OFFER_DONE))
        return offer_state_of(found);
    return OFFER_OPEN;
}

/* --- the receiver ----------------------------------------------------------------------------- */

/* The word as it is, for a receiver that decides whether to take. Relaxed: a hint. */
static inline uint64_t offer_look(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* True: the bytes from `from` on are the receiver's to copy. */
static inline bool offer_take(_Atomic uint64_t *word, uint32_t tag, uint64_t from)
{
    uint64_t found = offer_word(tag, from, OFFER_OPEN);

    /* Acquire, against offer_open. */
    return atomic_compare_exchange_strong_explicit(word, &found, offer_word(tag, from, OFFER_TAKEN),
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void offer_finish(_Atomic uint64_t *word, uint32_t tag, uint64_t from)
{
    /* Release, against offer_withdraw: the bytes are read. */
    atomic_store_explicit(word, offer_word(tag, from, OFFER_DONE), memory_order_release);
}

#endif
