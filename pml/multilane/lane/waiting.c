/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping. A wait is told from a test by its story (request/request.h), and sleeps from
 * opal_progress, so that what Open MPI does in its waits, with threads and with failed processes,
 * stays as it is. */
#include "lane/waiting.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parameters.h"
#include "base/pending.h"
#include "common/lane/crowd.h"
#include "lane/lane.h"
#include "lane/waited.h"

/* For so long a wait yields the processor: a sleep and the wake-up cost some times as much as a
 * yield, so messages that are on their way are waited for awake. Times the processes for each
 * processor, up to a number: they all have their turn before this one has its next. Where a quota
 * leaves a part of a processor, a single process that yields would use it up. */
#define YIELD_NS        500000u
#define YIELD_DEPTH_MAX 32.0
/* The same while something waits for room at a lane, which does not wake. */
#define YIELD_ROOM_NS 20000000u
/* A process that waits for a word is woken by the one that changes it. By the time that it has
 * yielded so often all others had their turn, and where so much time has passed as well, one of
 * them computes: more turns are in vain. In programs a process is often late by less than that;
 * then a turn costs less than a sleep and the wake-up. */
#define YIELDS_BY_WORD   4u
#define YIELD_BY_WORD_NS 50000u
/* The clock is read once in so many turns that yield: most waits end before. */
#define CLOCK_TURNS 8u

/* A sleep is a part of the time waited so far, so what comes without waking the sleeper is late by
 * that part at most; it has these bounds. */
#define SLEEP_PART      16u
#define SLEEP_MIN_US    50u
#define SLEEP_MAX_US    1000u
#define SLEEP_RINGED_US 10000u /* where all that can come wakes */

struct waiting waiting;
_Atomic uint32_t looks;

static struct {
    _Atomic bool installed;                    /* relaxed: one thread installs */
    bool all_wake;                             /* all that may come by a lane wakes */
    uint64_t yield_ns;                         /* YIELD_NS for these processes */
    const struct multilane_extension *sleeper; /* of the BTL that sleeps; NULL: none */
    const struct multilane_extension *rouser;  /* of one that wakes by a thread; NULL: none */
    /* Threads of the program that wait, where there is a progress thread. Relaxed: it only sleeps
     * longer or shorter by it. */
    _Atomic int waiters;
} state;

struct waiter {
    enum waiting_for what;
    const _Atomic uint32_t *word; /* of shared memory, that it waits for; NULL: for a request */
    uint32_t word_seen;
    uint32_t word_turns; /* since it waits for that */
    uint32_t seen;       /* of completions, before the thread last looked at its request */
    bool has_completed;  /* a request, since then */
    uint32_t turns;      /* that still yield before the clock is read */
    uint64_t since_ns;   /* 0: the clock was not read yet */
};

/* One thread at a time calls MPI where none are in use, and the way to its own memory is long. */
static struct waiter only_waiter;
static _Thread_local struct waiter own_waiter;

static inline struct waiter *waiter_me(void)
{
    return OPAL_UNLIKELY(opal_using_threads()) ? &own_waiter : &only_waiter;
}

static struct waited waited;

/* A thread that has ended waits no more, so a later one may have its number. */
static uintptr_t my_number(void)
{
    return (uintptr_t) &own_waiter;
}

enum waiting_for waiting_change(enum waiting_for what)
{
    struct waiter *me = waiter_me();
    enum waiting_for before = me->what;

    if (OPAL_UNLIKELY(opal_using_threads())) {
        waited_mark(&waited, my_number());
        if (parameters.progress_thread)
            atomic_fetch_add_explicit(&state.waiters, (what > 0) - (before > 0),
                                      memory_order_relaxed);
    }
    me->what = what;
    me->turns = CLOCK_TURNS;
    me->since_ns = 0;
    return before;
}

void waiting_by_word(const _Atomic uint32_t *word, uint32_t seen)
{
    waiter_me()->word = word;
    waiter_me()->word_seen = seen;
    waiter_me()->word_turns = 0;
}

enum waiting_for waiting_kind(size_t count, ompi_request_t *const *requests)
{
    for (size_t i = 0; i < count; i++)
        if (requests[i]->req_type != OMPI_REQUEST_PML && requests[i]->req_type != OMPI_REQUEST_NULL)
            return WAITING_OTHERS;
    return WAITING_MESSAGES;
}

static void sleep_deaf(uint32_t microseconds)
{
    const struct timespec time = {.tv_nsec = (long) microseconds * 1000};

    nanosleep(&time, NULL);
}

/* Where no BTL sleeps, threads sleep by the count itself. */
static void count_wake(void)
{
    syscall(SYS_futex, &waiting.completions, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static bool count_sleep(uint32_t microseconds, uint32_t seen)
{
    const struct timespec time = {.tv_nsec = (long) microseconds * 1000};

    if (syscall(SYS_futex, &waiting.completions, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0) != 0 &&
        errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)
        sleep_deaf(microseconds); /* the system refuses it */
    return atomic_load_explicit(&waiting.completions, memory_order_relaxed) != seen;
}

/* Who sleeps is to look again. */
static void rouse(void)
{
    atomic_fetch_add_explicit(&waiting.completions, 1, memory_order_seq_cst); /* waiting_progress */
    if (state.sleeper)
        state.sleeper->wake();
    else
        count_wake();
}

void waiting_wake(void)
{
    waiter_me()->has_completed = true;
    if (OPAL_LIKELY(!waited_others(&waited, my_number())))
        return; /* none of them sleeps */
    rouse();
}

/* --- the sleep -------------------------------------------------------------------------------- */

static bool sleep_for(const struct waiter *me, uint32_t microseconds)
{
    /* The first also where a word is awaited: it shows a rouse from before the sleep. */
    const struct multilane_seen words[] = {{&waiting.completions, me->seen},
                                           {me->word, me->word_seen}};

    if (state.rouser)
        state.rouser->will_sleep();
    if (state.sleeper)
        return state.sleeper->sleep(microseconds, words, me->word ? 2 : 1);
    return count_sleep(microseconds, me->seen);
}

static uint32_t sleep_length_us(enum waiting_for what, uint64_t waited_ns)
{
    /* What another thread leaves to progress does not wake. */
    bool all_wake = what == WAITING_MESSAGES && state.all_wake && !opal_using_threads();
    uint64_t most = all_wake ? SLEEP_RINGED_US : SLEEP_MAX_US;
    uint64_t length = waited_ns / 1000 / SLEEP_PART;

    if (length < SLEEP_MIN_US || pending_any())
        return SLEEP_MIN_US;
    return (uint32_t) (length < most ? length : most);
}

static uint64_t waited_ns_now(struct waiter *me)
{
    uint64_t now = clock_now_ns();
    if (me->since_ns == 0)
        me->since_ns = now;
    return now - me->since_ns;
}

/* Yields go on for a while; then *waited_ns says for how long. */
static bool yields_still(struct waiter *me, uint64_t *waited_ns)
{
    if (me->word && me->word_turns++ >= YIELDS_BY_WORD && waited_ns_now(me) >= YIELD_BY_WORD_NS) {
        *waited_ns = UINT64_MAX;
        return false;
    }
    if (me->turns > 0) {
        me->turns--;
        return true;
    }
    *waited_ns = waited_ns_now(me);
    if (*waited_ns >= (pending_any() ? YIELD_ROOM_NS : state.yield_ns))
        return false;
    me->turns = CLOCK_TURNS - 1;
    return true;
}

/* The last function that opal_progress calls: the others have looked. The result, above 0, keeps it
 * from yielding. */
static int waiting_progress(void)
{
    struct waiter *me = waiter_me();
    uint64_t waited_ns = 0;
    if (me->what == WAITING_NOT)
        return 0;
    if (waiting.look)
        waiting.look();
    bool yields = yields_still(me, &waited_ns);
    if (!yields && !me->has_completed && sleep_for(me, sleep_length_us(me->what, waited_ns)))
        me->since_ns = 0; /* more may follow */
    if (yields && !opal_progress_yield_when_idle)
        sched_yield();
    me->has_completed = false;
    me->seen = atomic_load_explicit(&waiting.completions, memory_order_seq_cst); /* waiting_wake */
    return !yields;
}

bool waiting_nap(uint32_t microseconds)
{
    struct waiter *me = waiter_me();
    me->seen = atomic_load_explicit(&waiting.completions, memory_order_relaxed); /* not awaited */
    if (atomic_load_explicit(&state.waiters, memory_order_relaxed) == 0)
        return sleep_for(me, microseconds);
    sleep_deaf(microseconds < SLEEP_MAX_US ? microseconds : SLEEP_MAX_US);
    return false;
}

/* --- beginning and end ------------------------------------------------------------------------ */

/* Which of the job's BTLs sleeps, and whether what comes over any other wakes it. */
static void sleeper_find(void)
{

    state.sleeper = state.rouser = NULL;
    state.all_wake = true;
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        const struct multilane_extension *extension = lane_extension_of(btl);
        if (extension && extension->sleep)
            state.sleeper = extension;
        else if (extension && extension->rouse_by && extension->rouse_by(rouse))
            state.rouser = extension;
        else if (strcmp(lane_name_of(btl), "self") != 0)
            state.all_wake = false;
    }
}

static void install(void)
{
    if (atomic_exchange_explicit(&state.installed, true, memory_order_relaxed))
        return;
    sleeper_find();
    opal_progress_register(waiting_progress);
    atomic_store_explicit(&waiting.shares, true, memory_order_relaxed);
}

/* Tells our lanes where they see whether a call waits. */
static void lanes_follow(const _Atomic uint32_t *waits)
{

    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        const struct multilane_extension *extension = lane_extension_of(btl);
        if (extension && extension->waits_at)
            extension->waits_at(waits);
    }
}

void waiting_begin(void)
{
    lanes_follow(&waiting.waits);
    uint32_t threads = parameters.progress_thread ? 2 : 1;
    uint32_t processes = (uint32_t) ompi_process_info.num_local_peers + 1;
    double for_each = processes * threads / crowd_processors(processes);

    state.yield_ns = (uint64_t) (YIELD_NS * fmin(fmax(for_each, 1), YIELD_DEPTH_MAX));
    if (parameters.wait.number == WAIT_SLEEP ||
        (parameters.wait.number == WAIT_AUTO && for_each > 1))
        install();
}

void waiting_reconsider(void)
{
    if (opal_progress_yield_when_idle && parameters.wait.number == WAIT_AUTO)
        install();
}

void waiting_end(void)
{
    lanes_follow(NULL);
    if (!atomic_exchange_explicit(&state.installed, false, memory_order_relaxed))
        return;
    opal_progress_unregister(waiting_progress);
    if (state.rouser)
        (void) state.rouser->rouse_by(NULL);
    atomic_store_explicit(&waiting.shares, false, memory_order_relaxed);
}
