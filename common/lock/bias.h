/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that are biased to the first thread that takes one: while no other thread takes any of
 * them, it pays no locked instruction. Most programs that allow threads in MPI have one that calls
 * it. The first lock that another thread takes ends the bias for good; from then on all are
 * mutexes.
 *
 *     if (!bias_enter(&bias, thread_number()))
 *         mutex_lock(m);
 *     ... what m guards ...
 *     if (!bias_leave(&bias, thread_number()))
 *         mutex_unlock(m);
 *
 * All locks of one bias count as one: the other thread waits until the first is in none of them. So
 * a lock that is taken inside of these, and that others hold while they take one of these, must
 * never be taken before bias_claim: else each waits for the other. */
#ifndef COMMON_LOCK_BIAS_H
#define COMMON_LOCK_BIAS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum bias_state {
    BIAS_ON,
    BIAS_ENDING, /* a second thread has come; the first may still be inside */
    BIAS_ENDED   /* all take the mutex */
};

/* The first thread enters: (1) stores depth, (2) loads state. Another one ends the bias: (a) stores
 * state, (b) has every processor pass a barrier, (c) loads depth until it is 0.
 *
 * The first has no fence between (1) and (2), only one for the compiler. The barrier (b) is passed
 * on the first's processor, too. If that is after (2), then (1) is in memory before (c), and the
 * other waits. If it is before (2), then (2) finds what (a) stored, and the first takes the mutex.
 * test/unit/bell_model.c walks all of it, with stores kept back. */
struct bias {
    /* The first one's number; 0: none yet. Set once. All of this has a line of its own: every
     * thread reads it, and only the first writes it, while it has the bias. */
    _Alignas(64) _Atomic uintptr_t thread;
    /* Stored by other threads than the first, in this order. Acquire, where BIAS_ENDED is found:
     * what the first did inside is before all that others do with the mutex. */
    _Atomic uint32_t state;
    /* How many of the locks the first thread holds by the bias. Stored by that thread only: release
     * on the way out, against (c). Once the state is not BIAS_ON it does not leave 0 again. */
    _Atomic uint32_t depth;
};

/* A number of the calling thread's own. A thread that ended leaves it to a later one, whose start
 * comes after that end. */
static inline uintptr_t thread_number(void)
{
#if defined(__x86_64__) && defined(__LP64__)
    uintptr_t number;
    __asm__("mov %%fs:0, %0" : "=r"(number));
    return number;
#elif defined(__aarch64__) && defined(__LP64__)
    uintptr_t number;
    __asm__("mrs %0, tpidr_el0" : "=r"(number));
    return number;
#else
    return (uintptr_t) pthread_self();
#endif
}

/* Ends the bias: returns when no thread is inside by it. */
void bias_end(struct bias *bias);

/* Whether the calling thread has the bias now. It gets it where none had it; else the bias has
 * ended. */
static inline bool bias_claim(struct bias *bias, uintptr_t me)
{
    uintptr_t thread = atomic_load_explicit(&bias->thread, memory_order_relaxed);
    if (thread == me)
        return true;
    if (atomic_load_explicit(&bias->state, memory_order_acquire) == BIAS_ENDED)
        return false;
    if (thread == 0 && atomic_compare_exchange_strong_explicit(
                           &bias->thread, &thread, me, memory_order_relaxed, memory_order_relaxed))
        return true;
    bias_end(bias);
    return false;
}

/* True: the thread is inside, and needs no mutex. */
static inline bool bias_enter(struct bias *bias, uintptr_t me)
{
    if (!bias_claim(bias, me))
        return false;
    uint32_t depth = atomic_load_explicit(&bias->depth, memory_order_relaxed);
    /* In one already: who ends the bias waits for that. Else this saves a store to a line that all
     * read, once the bias has ended. */
    if (depth == 0 && atomic_load_explicit(&bias->state, memory_order_relaxed) != BIAS_ON)
        return false;
    atomic_store_explicit(&bias->depth, depth + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (depth > 0 || atomic_load_explicit(&bias->state, memory_order_relaxed) == BIAS_ON)
        return true;
    atomic_store_explicit(&bias->depth, 0, memory_order_release);
    return false;
}

/* Whether the calling thread need not wait for another one's bias. */
static inline bool bias_is_free(struct bias *bias, uintptr_t me)
{
    return atomic_load_explicit(&bias->thread, memory_order_relaxed) == me ||
           atomic_load_explicit(&bias->state, memory_order_acquire) == BIAS_ENDED;
}

/* True: the thread was inside by the bias. No thread holds a mutex of these while it is. */
static inline bool bias_leave(struct bias *bias, uintptr_t me)
{
    if (atomic_load_explicit(&bias->thread, memory_order_relaxed) != me)
        return false;
    uint32_t depth = atomic_load_explicit(&bias->depth, memory_order_relaxed);
    if (depth == 0)
        return false;
    atomic_store_explicit(&bias->depth, depth - 1, memory_order_release);
    return true;
}

#endif
