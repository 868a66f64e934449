/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call waits where processors are short: it yields for a while, then sleeps until something
 * arrives. */
#ifndef MULTILANE_WAITING_H
#define MULTILANE_WAITING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compat/pml.h"
#include "base/counter.h"

/* What the calling thread waits for. */
enum waiting_for {
    WAITING_NOT,     /* or it waits where we do not know of it: then it does not sleep */
    WAITING_OTHERS,  /* for requests that other parts of Open MPI complete */
    WAITING_MESSAGES /* only for requests of ours */
};

struct waiting {
    /* Processors are short: no spinning. Written once, in MPI_Init or by the first thread that
     * learns it later. Relaxed: a thread that reads the old value spins once more. */
    _Atomic bool shares;
    /* Requests completed by any thread while others have waited (lane/waited.h). Sequentially
     * consistent: raised after a request is complete, and before sleepers are woken; read by a
     * thread before it looks at its request, and again when others know that it sleeps. */
    _Atomic uint32_t completions;
    /* Threads that wait in a call now. Relaxed: our lanes read it, as a hint. */
    _Atomic uint32_t waits;
    /* Called in each round of a wait that leaves the processor to others; null: none. Written while
     * no other thread waits. */
    void (*look)(void);
};

extern __attribute__((visibility("hidden"))) struct waiting waiting;

static inline bool waiting_shares(void)
{
    return OPAL_UNLIKELY(atomic_load_explicit(&waiting.shares, memory_order_relaxed));
}

/* Decides by pml_multilane_wait and the crowd on this node, when processes are added. */
void waiting_begin(void);
void waiting_end(void);
/* Open MPI's flag to yield is set at the end of MPI_Init only, and says that processors are short
 * as well. */
void waiting_reconsider(void);

/* Around what a call does until it has what it waits for; the calls may lie in each other. */
static inline void waits_begin(void)
{
    counter_add32(&waiting.waits, 1);
}

static inline void waits_end(void)
{
    counter_add32(&waiting.waits, UINT32_MAX);
}

static inline void progress_of_wait(void)
{
    waits_begin();
    opal_progress();
    waits_end();
}

/* Does this process only look, and not wait? */
static inline bool waiting_for_nothing(void)
{
    return atomic_load_explicit(&waiting.waits, memory_order_relaxed) == 0;
}

enum waiting_for waiting_change(enum waiting_for what);
enum waiting_for waiting_kind(size_t count, ompi_request_t *const *requests);

static inline bool waiting_shares_now(void)
{
    if (OPAL_UNLIKELY(opal_progress_yield_when_idle))
        waiting_reconsider();
    return waiting_shares();
}

/* The thread waits from here on. Returns what it waited for before, for waiting_leave. */
static inline enum waiting_for waiting_enter(enum waiting_for what)
{
    return waiting_shares_now() ? waiting_change(what) : WAITING_NOT;
}

static inline enum waiting_for waiting_enter_requests(size_t count, ompi_request_t *const *requests)
{
    return waiting_shares_now() ? waiting_change(waiting_kind(count, requests)) : WAITING_NOT;
}

static inline void waiting_leave(enum waiting_for before)
{
    if (waiting_shares())
        (void) waiting_change(before);
}

/* The thread waits until the word is not `seen`, and the process that changes it wakes this one.
 * NULL: no more. It sleeps through what other threads complete. */
void waiting_by_word(const _Atomic uint32_t *word, uint32_t seen);

void waiting_wake(void);

/* A request is complete; another thread may sleep that waits for it. */
static inline void waiting_completed(void)
{
    if (waiting_shares() && opal_using_threads()) /* which may begin after MPI_Init */
        waiting_wake();
}

/* For the progress thread: sleeps until something arrives or the time is over, and does not listen
 * while a thread of the program does. True: something may have arrived. */
bool waiting_nap(uint32_t microseconds);

/* --- looks that found nothing ----------------------------------------------------------------- */

/* Looks at the lanes that found nothing, counted. A receive keeps the count when it is posted: a
 * message that is found before two more looks may have lain there while the receiver did something
 * else, and its time says nothing of its way. */

extern __attribute__((visibility("hidden"))) _Atomic uint32_t looks;

/* Relaxed, all: a number of its own. Where two threads look at once one look may be lost, which
 * only makes them fewer. */
static inline void looks_add(void)
{
    atomic_store_explicit(&looks, atomic_load_explicit(&looks, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static inline uint32_t looks_now(void)
{
    return atomic_load_explicit(&looks, memory_order_relaxed);
}

/* Two, not one: a round may count before it calls the lanes. */
static inline bool looks_are_few(uint32_t since)
{
    return looks_now() - since < 2;
}

#endif
