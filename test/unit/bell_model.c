/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all interleavings of a sender and of a receiver that stops to attend to its ring and then
 * sleeps, where each processor keeps its stores back as long as it likes (x86 does; a later load
 * passes them): no message is left lying while the receiver sleeps. Left out one at a time, each of
 * the orders that common/ring/bell.h and btl/shm/attended.c state is missed. Likewise a thread that
 * completes a request, and another one that begins to wait (pml/multilane/lane/waited.h), and a
 * lock that is biased to one thread when another one takes it (common/lock/bias.h). */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>

#include "test/unit/walk.h"

/* The source itself is compiled here, with each atomic access a point where others go on. */
static uint64_t model_load(const void *address);
static void model_store(void *address, uint64_t value, memory_order order);
static uint64_t model_change(void *address, uint64_t value, bool is_or);
static bool model_compare(void *address, const void *expected, uint64_t value);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(address, order) model_load((const void *) (address))
#define atomic_store_explicit(address, value, order)                                               \
    model_store((void *) (address), (uint64_t) (value), (order))
#define atomic_exchange_explicit(address, value, order)                                            \
    model_change((void *) (address), (uint64_t) (value), false)
#define atomic_fetch_or_explicit(address, value, order)                                            \
    model_change((void *) (address), (uint64_t) (value), true)
#define atomic_compare_exchange_strong_explicit(address, expected, value, order, otherwise)        \
    model_compare((void *) (address), (expected), (uint64_t) (value))

#include "common/ring/bell.h"
#include "pml/multilane/lane/waited.h"

static long model_barrier(long call, int command, int flags, int processor);
static void model_yield(void);

#define syscall       model_barrier
#define sched_yield() model_yield()
#include "common/lock/bias.c"

#define MESSAGES_MAX 3
#define KEPT_MAX     16
#define VISITED_MAX  (1u << 21)

/* What is left out. */
enum without {
    WITHOUT_NOTHING,
    WITHOUT_LINGER,         /* the ring is dropped as soon as its sender is told */
    WITHOUT_COMPILER_FENCE, /* the sender reads whether it is attended before it publishes */
    WITHOUT_SLEEPER_FENCE,  /* the owner's "I sleep" is a plain store */
    WITHOUT_RINGER_FENCE,   /* the bit is set by a plain store */
    WITHOUT_SECOND_LOOK     /* the owner sleeps without a look at the bits */
};

static const char *const left_out[] = {
    "nothing",           "the linger",         "the compiler's fence",
    "the owner's fence", "the ringer's fence", "the second look"};

/* A word of memory; each is found by its address. */
struct words {
    _Atomic uint64_t published; /* messages in the ring */
    _Atomic uint64_t attended;
    _Atomic uint64_t bits;
    _Atomic uint32_t asleep;
    struct waited waited;
    _Atomic uint64_t complete;    /* the request of the second thread */
    _Atomic uint64_t completions; /* struct waiting's */
    struct bias bias;
    _Atomic uint64_t mutex;   /* 1: taken */
    _Atomic uint64_t guarded; /* by the bias, then by the mutex: how often it was held */
};

struct kept {
    void *address;
    uint64_t value;
};

static struct {
    enum without without;
    uint32_t count;
    struct words memory;
    struct kept kept[ENDS][KEPT_MAX]; /* the stores of each end, oldest first */
    uint32_t kept_count[ENDS];
    uint32_t stored[ENDS], arrived[ENDS]; /* how many stores it made, and reached memory */
    bool sleeps, lingers;
    bool yields[ENDS];           /* until no lock is held by the bias */
    bool blocks[ENDS];           /* at the mutex */
    bool inside[ENDS];           /* what is guarded */
    uint32_t linger_until[ENDS]; /* as `arrived` */
    uint64_t taken;
    uint64_t seen_hash[ENDS]; /* what an end has read and done */
} model;

/* --- memory that keeps stores back ------------------------------------------------------------ */

static void step(uint64_t what)
{
    int me = walk.running;

    model.seen_hash[me] = walk_hash(model.seen_hash[me], &what, sizeof(what));
}

/* That it got here is part of where it is. */
static void pause_here(void)
{
    step('p');
    walk_pause();
}

static size_t size_of(const void *address)
{
    return address == &model.memory.waited.several ? sizeof(bool)
           : address == &model.memory.asleep || address == &model.memory.bias.state ||
                   address == &model.memory.bias.depth
               ? sizeof(uint32_t)
               : sizeof(uint64_t);
}

static void oldest_arrives(int end)
{
    struct kept *kept = model.kept[end];

    memcpy(kept[0].address, &kept[0].value, size_of(kept[0].address));
    memmove(kept, kept + 1, --model.kept_count[end] * sizeof(*kept));
    memset(kept + model.kept_count[end], 0, sizeof(*kept));
    model.arrived[end]++;
}

static void all_arrive(int end)
{
    while (model.kept_count[end] > 0)
        oldest_arrives(end);
}

static uint64_t value_of(const void *address)
{
    int me = walk.running;
    uint64_t value = 0;

    memcpy(&value, address, size_of(address));
    for (uint32_t i = 0; i < model.kept_count[me]; i++)
        if (model.kept[me][i].address == address)
            value = model.kept[me][i].value;
    return value;
}

static uint64_t model_load(const void *address)
{
    pause_here();
    uint64_t value = value_of(address);
    step(value);
    return value;
}

static void store_keep(void *address, uint64_t value)
{
    int me = walk.running;

    if (model.kept_count[me] == KEPT_MAX) {
        walk_fail("the model keeps too many stores back");
        return;
    }
    model.kept[me][model.kept_count[me]++] = (struct kept){address, value};
    model.stored[me]++;
}

static void model_store(void *address, uint64_t value, memory_order order)
{
    pause_here();
    store_keep(address, value);
    if (order == memory_order_seq_cst && model.without != WITHOUT_SLEEPER_FENCE)
        all_arrive(walk.running);
    step(value);
}

static uint64_t model_change(void *address, uint64_t value, bool is_or)
{
    bool weak = is_or && model.without == WITHOUT_RINGER_FENCE;

    pause_here();
    if (!weak)
        all_arrive(walk.running);
    uint64_t before = value_of(address);
    store_keep(address, is_or ? before | value : value);
    if (!weak)
        all_arrive(walk.running);
    step(before);
    return before;
}

static bool model_compare(void *address, const void *expected, uint64_t value)
{
    uint64_t before;

    pause_here();
    all_arrive(walk.running);
    before = value_of(address);
    step(before);
    if (memcmp(&before, expected, size_of(address)) != 0)
        return false;
    memcpy(address, &value, size_of(address));
    return true;
}

/* --- the two ends ----------------------------------------------------------------------------- */

/* As ring_publish and doorbell_ring_if_unattended (btl/shm/send.c). */
static void sender_run(void)
{
    for (uint32_t number = 1; number <= model.count; number++) {
        bool early = model.without == WITHOUT_COMPILER_FENCE;
        uint64_t attended = early ? model_load(&model.memory.attended) : 0;

        model_store(&model.memory.published, number, memory_order_release);
        if (!early)
            attended = model_load(&model.memory.attended);
        if (!attended && bell_ring(&model.memory.bits, 1, &model.memory.asleep)) {
            pause_here();
            model.sleeps = false; /* the kernel wakes the owner */
            step(1);
        }
    }
    walk_done();
}

static void ring_read(void)
{
    model.taken = model_load(&model.memory.published);
}

/* Longer than any store of now waits in its processor. */
static void linger(void)
{
    for (int end = 0; end < ENDS; end++)
        model.linger_until[end] = model.stored[end];
    model.lingers = true;
    pause_here();
    model.lingers = false;
}

/* As bells_begin and linger_end (btl/shm/sleep.c), or shm_attended_add of another ring. */
static void attending_end(void)
{
    model_store(&model.memory.attended, 0, memory_order_relaxed);
    if (model.without != WITHOUT_LINGER) {
        linger();
        linger(); /* for what the sender stored while ours was on its way */
    }
    ring_read();
}

/* As shm_sleep: the kernel compares and sleeps in one step. */
static void sleep_unless_rung(void)
{
    if (!bell_arm(&model.memory.bits, 1, &model.memory.asleep) &&
        model.without != WITHOUT_SECOND_LOOK)
        return;
    pause_here();
    model.sleeps = value_of(&model.memory.asleep) != 0;
    step(model.sleeps);
    pause_here();
}

static void receiver_run(void)
{
    ring_read();
    attending_end();
    while (model.taken < model.count) {
        if (model_change(&model.memory.bits, 0, false) != 0)
            ring_read();
        else
            sleep_unless_rung();
    }
    walk_done();
}

enum { FIRST_THREAD = 1, SECOND_THREAD };

/* As request_complete and waiting_wake. */
static void completer_run(void)
{
    bool early = model.without == WITHOUT_COMPILER_FENCE;
    bool others = early && waited_others(&model.memory.waited, FIRST_THREAD);

    model_store(&model.memory.complete, 1, memory_order_release);
    if (early ? others : waited_others(&model.memory.waited, FIRST_THREAD)) {
        (void) model_change(&model.memory.completions, 1, true);
        pause_here();
        model.sleeps = false;
        step(1);
    }
    walk_done();
}

/* As waiting_change, and waiting_progress while the request is looked at in between. */
static void waiter_run(void)
{
    waited_mark(&model.memory.waited, SECOND_THREAD);
    if (model.without != WITHOUT_LINGER)
        linger(); /* YIELD_NS */
    for (;;) {
        uint64_t seen = model_load(&model.memory.completions);
        if (model_load(&model.memory.complete))
            break;
        pause_here();
        model.sleeps = value_of(&model.memory.completions) == seen;
        step(model.sleeps);
        pause_here();
    }
    walk_done();
}

/* --- a biased lock ---------------------------------------------------------------------------- */

static long model_barrier(long call, int command, int flags, int processor)
{
    (void) call;
    (void) command;
    (void) flags;
    (void) processor;
    pause_here();
    if (model.without != WITHOUT_LINGER)
        for (int end = 0; end < ENDS; end++)
            all_arrive(end);
    return 0;
}

static void model_yield(void)
{
    model.yields[walk.running] = true;
    pause_here();
    model.yields[walk.running] = false;
}

static void mutex_lock(void)
{
    static const uint64_t is_free = 0;

    do {
        model.blocks[walk.running] = true;
        pause_here();
        model.blocks[walk.running] = false;
    } while (!model_compare(&model.memory.mutex, &is_free, 1));
}

static void guarded_change(void)
{
    int me = walk.running;

    if (model.inside[!me])
        walk_fail("both are inside");
    model.inside[me] = true;
    uint64_t held = model_load(&model.memory.guarded);
    model_store(&model.memory.guarded, held + 1, memory_order_relaxed);
    model.inside[me] = false;
}

/* As biased_lock and biased_unlock (common/compat/threads.h). */
static void lock_take(uintptr_t me)
{
    if (!bias_enter(&model.memory.bias, me))
        mutex_lock();
}

static void lock_give(uintptr_t me)
{
    if (!bias_leave(&model.memory.bias, me))
        model_store(&model.memory.mutex, 0, memory_order_release);
}

/* A lock inside of another one is the same mutex here: it is only taken by the bias. */
static void first_run(void)
{
    for (uint32_t number = 0; number < model.count; number++) {
        lock_take(FIRST_THREAD);
        guarded_change();
        if (bias_enter(&model.memory.bias, FIRST_THREAD)) {
            guarded_change();
            (void) bias_leave(&model.memory.bias, FIRST_THREAD);
        } else {
            guarded_change();
        }
        lock_give(FIRST_THREAD);
    }
    walk_done();
}

static void second_run(void)
{
    for (uint32_t number = 0; number < model.count; number++) {
        lock_take(SECOND_THREAD);
        guarded_change();
        guarded_change();
        lock_give(SECOND_THREAD);
    }
    walk_done();
}

static void stores_run(int end)
{
    for (;;) {
        oldest_arrives(end); /* it only runs when there is one */
        walk_pause();
    }
}

static void sender_stores_run(void)
{
    stores_run(SENDER);
}

static void receiver_stores_run(void)
{
    stores_run(RECEIVER);
}

/* --- the walk --------------------------------------------------------------------------------- */

static bool linger_is_over(void)
{
    for (int end = 0; end < ENDS; end++)
        if (model.arrived[end] < model.linger_until[end])
            return false;
    return true;
}

static bool can_run(int who)
{
    if (who >= ENDS)
        return model.kept_count[who - ENDS] > 0;
    if (model.blocks[who] && model.memory.mutex != 0)
        return false;
    if (model.yields[who] && model.memory.bias.depth != 0)
        return false;
    if (who == SENDER)
        return true;
    return !model.sleeps && (!model.lingers || linger_is_over());
}

static void run_begin(void)
{
    static const struct words first = {.attended = 1, .waited = {.first = FIRST_THREAD}};
    enum without without = model.without;
    uint32_t count = model.count;

    memset(&model, 0, sizeof(model));
    model.without = without;
    model.count = count;
    memcpy(&model.memory, &first, sizeof(first));
}

static uint64_t state_hash(void)
{
    return walk_hash(WALK_HASH, &model, sizeof(model));
}

static bool holds(enum without without, uint32_t count)
{
    model.without = without;
    model.count = count;
    return walk_all();
}

static int bells_walk(void)
{
    for (uint32_t count = 1; count <= MESSAGES_MAX; count++)
        if (!holds(WITHOUT_NOTHING, count)) {
            fprintf(stderr, "%s: %u messages", walk.failure, count);
            walk_report();
            return 1;
        }
    for (int without = WITHOUT_LINGER; without <= WITHOUT_SECOND_LOOK; without++)
        if (holds((enum without) without, 2)) {
            fprintf(stderr, "the walk does not find that %s is left out\n", left_out[without]);
            return 1;
        }
    return 0;
}

static int waits_walk(void)
{
    if (!holds(WITHOUT_NOTHING, 0)) {
        fprintf(stderr, "%s: two threads", walk.failure);
        walk_report();
        return 1;
    }
    for (int without = WITHOUT_LINGER; without <= WITHOUT_COMPILER_FENCE; without++)
        if (holds((enum without) without, 0)) {
            fprintf(stderr, "two threads: the walk does not find that %s is left out\n",
                    left_out[without]);
            return 1;
        }
    return 0;
}

static int bias_walk(void)
{
    if (!holds(WITHOUT_NOTHING, 2)) {
        fprintf(stderr, "%s: a biased lock", walk.failure);
        walk_report();
        return 1;
    }
    if (holds(WITHOUT_LINGER, 2)) {
        fprintf(stderr, "a biased lock: the walk does not find that the barrier is left out\n");
        return 1;
    }
    return 0;
}

int main(void)
{
    static const struct walk_model bells = {
        {sender_run, receiver_run, sender_stores_run, receiver_stores_run},
        run_begin,
        state_hash,
        VISITED_MAX,
        can_run};
    static const struct walk_model waits = {
        {completer_run, waiter_run, sender_stores_run, receiver_stores_run},
        run_begin,
        state_hash,
        VISITED_MAX,
        can_run};

    static const struct walk_model bias = {
        {first_run, second_run, sender_stores_run, receiver_stores_run},
        run_begin,
        state_hash,
        VISITED_MAX,
        can_run};

    static const char shown[] = "nothing is lost";
    int failed = walk_main(&bells, bells_walk, shown);
    failed = failed ? failed : walk_main(&waits, waits_walk, shown);
    return failed ? failed : walk_main(&bias, bias_walk, shown);
}
