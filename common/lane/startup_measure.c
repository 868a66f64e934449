/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures copies between two cores: a thread on another core plays the peer. */
#include "common/lane/startup_measure.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/lane/crowd.h"
#include "common/lane/kernel_text.h"
#include "common/lane/last_cache.h"
#include "common/lane/processor_list.h"
#include "common/lock/clock.h"
#include "common/lock/quiet_thread.h"

#define FRAGMENT_BYTES ((size_t) 16 << 10)
#define MOST_BYTES     STARTUP_BYTES(STARTUP_1M)
#define LINE_BYTES     64

/* The shortest of some times counts, of fewer where one takes long: what disturbs only ever adds.
 * They are steady where the second shortest is near. */
#define ROUNDS       8
#define LARGE_ROUNDS 4
#define EMPTY_ROUNDS 64
#define LARGE_BYTES  STARTUP_BYTES(STARTUP_256K)
#define STEADY       1.5

/* Processors that are tried for the other end: a container may use a few of many. */
#define OTHERS_TRIED 1024

/* Where they are not, or an end had no processor for so long, the rest is tried again a little
 * later, each time after a longer pause: the other processes of a job begin at the same time, and
 * sleep when they have. */
#define TRY_S    5e-3
#define PAUSE_NS 1000000

/* Empty messages alone take 30 us, once both ends run. */
#define EMPTY_TRIES 3
#define EMPTY_TRY_S 2e-3

enum step { STEP_EMPTY, STEP_RING, STEP_KERNEL, STEP_BOTH };

/* One of the two ends. It alone writes its words and memory; the other one reads them. */
struct end {
    _Alignas(LINE_BYTES) _Atomic uint32_t turn;       /* release: what it wrote before; */
    _Alignas(LINE_BYTES) _Atomic uint32_t fragments;  /* so is this; acquire: await */
    _Alignas(LINE_BYTES) uint32_t turns, sent, taken; /* its own counts */
    unsigned char *user;                              /* MOST_BYTES */
    unsigned char *ring;                              /* as large as a lane's, or MOST_BYTES; */
    size_t ring_bytes, sent_at, taken_at; /* where it writes there, and reads in the other's */
};

struct pair {
    struct end here, there;
    _Atomic bool has_failed; /* relaxed: the other end sees it soon, and it orders nothing */
    double until_s;
    unsigned first, end; /* the tasks of this try, */
    unsigned task;       /* and where it is; this end's alone */
};

static bool give_up(struct pair *pair)
{
    atomic_store_explicit(&pair->has_failed, true, memory_order_relaxed);
    return false;
}

/* False: the other end gave up, or there is no time left. */
static bool await(struct pair *pair, _Atomic uint32_t *word, uint32_t value)
{
    for (unsigned looks = 1; atomic_load_explicit(word, memory_order_acquire) < value; looks++) {
        if (atomic_load_explicit(&pair->has_failed, memory_order_relaxed))
            return false;
        if (looks % 256 == 0 && clock_exact_s() >= pair->until_s)
            return give_up(pair);
    }
    return true;
}

static void turn_end(struct end *me)
{
    atomic_store_explicit(&me->turn, ++me->turns, memory_order_release); /* await */
}

static size_t fragment_at(size_t at, size_t bytes)
{
    return bytes - at < FRAGMENT_BYTES ? bytes - at : FRAGMENT_BYTES;
}

/* The next place in a ring of the end for so many bytes. */
static unsigned char *ring_place(struct end *end, size_t *at, size_t bytes)
{
    size_t place = *at + bytes <= end->ring_bytes ? *at : 0;
    *at = place + bytes;
    return end->ring + place;
}

static void message_send(struct end *me, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += FRAGMENT_BYTES) {
        size_t length = fragment_at(at, bytes);
        memcpy(ring_place(me, &me->sent_at, length), me->user + at, length);
        atomic_store_explicit(&me->fragments, ++me->sent, memory_order_release); /* await */
    }
}

static bool message_receive(struct pair *pair, struct end *me, struct end *other, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += FRAGMENT_BYTES) {
        size_t length = fragment_at(at, bytes);
        if (!await(pair, &other->fragments, ++me->taken))
            return false;
        memcpy(me->user + at, ring_place(other, &me->taken_at, length), length);
    }
    return true;
}

/* Reading one's own memory takes the way that reading another process's takes. */
static bool kernel_copy(struct pair *pair, unsigned char *to, unsigned char *from, size_t bytes)
{
    struct iovec here = {.iov_base = to, .iov_len = bytes};
    struct iovec there = {.iov_base = from, .iov_len = bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t) bytes || give_up(pair);
}

/* The same bytes twice, and half of the time counts: a program that has just written them pays what
 * the first copy takes, one that sends them again what the second does, which may be a third of it.
 * The ring takes the same for both. */
static bool kernel_copies(struct pair *pair, unsigned char *to, unsigned char *from, size_t bytes)
{
    return kernel_copy(pair, to, from, bytes) && kernel_copy(pair, to, from, bytes);
}

/* --- turns ------------------------------------------------------------------------------------ */

/* The other end's part in a turn. */
static bool turn_answer(struct pair *pair, enum step step, size_t bytes)
{
    struct end *me = &pair->there, *other = &pair->here;
    bool is_good = step == STEP_RING ? message_receive(pair, me, other, bytes)
                                     : await(pair, &other->turn, me->turns + 1);
    if (is_good && step == STEP_RING)
        message_send(me, bytes);
    if (is_good && (step == STEP_KERNEL || step == STEP_BOTH))
        memset(me->user, (int) me->turns, bytes); /* now its lines are with this core */
    turn_end(me);
    if (is_good && step == STEP_BOTH) {
        is_good = await(pair, &other->turn, me->turns + 1) &&
                  kernel_copies(pair, other->user + bytes / 2, me->user + bytes / 2, bytes / 2);
        turn_end(me);
    }
    return is_good;
}

/* The time of a turn; below 0: it failed. */
static double turn_time(struct pair *pair, enum step step, size_t bytes)
{
    struct end *me = &pair->here, *other = &pair->there;
    bool is_good = true;
    double start_s = clock_exact_s();
    if (step == STEP_RING) {
        message_send(me, bytes);
        is_good = message_receive(pair, me, other, bytes);
    }
    turn_end(me);
    is_good = is_good && await(pair, &other->turn, me->turns);
    if (step == STEP_KERNEL || step == STEP_BOTH)
        start_s = clock_exact_s();
    if (step == STEP_KERNEL)
        is_good = is_good && kernel_copies(pair, me->user, other->user, bytes);
    if (step == STEP_BOTH) {
        turn_end(me);
        is_good = is_good && kernel_copies(pair, me->user, other->user, bytes / 2) &&
                  await(pair, &other->turn, me->turns);
    }
    return is_good ? (clock_exact_s() - start_s) / 2 : -1;
}

/* What is measured, in this order, by both ends. */
#define TASK_EMPTY (2 * STARTUP_SIZES)
#define TASKS      (TASK_EMPTY + 2) /* the last of them: both ends */

static double *task_of(struct startup_costs *costs, unsigned task, enum step *step, size_t *bytes)
{
    unsigned size = task / 2;
    if (task > TASK_EMPTY) {
        *step = STEP_BOTH;
        *bytes = MOST_BYTES;
        return &costs->both_s;
    }
    *bytes = size < STARTUP_SIZES ? STARTUP_BYTES(size) : 0;
    *step = size == STARTUP_SIZES ? STEP_EMPTY : task % 2 ? STEP_KERNEL : STEP_RING;
    if (*step == STEP_EMPTY)
        return &costs->empty_s;
    return *step == STEP_KERNEL ? &costs->kernel_s[size] : &costs->ring_s[size];
}

/* Messages of MOST_BYTES that go first, two rings full each way: from then on a line is where it
 * is whenever the ring has gone round. */
static size_t first_rounds(const struct pair *pair)
{
    return 2 * pair->here.ring_bytes / MOST_BYTES;
}

static int rounds_of(size_t bytes)
{
    return bytes == 0 ? EMPTY_ROUNDS : bytes < LARGE_BYTES ? ROUNDS : LARGE_ROUNDS;
}

static void *other_end(void *argument)
{
    struct pair *pair = argument;
    struct startup_costs unused;
    enum step step;
    size_t bytes;
    bool is_good = true;
    for (size_t round = 0; round < first_rounds(pair) && is_good; round++)
        is_good = turn_answer(pair, STEP_RING, MOST_BYTES);
    for (unsigned task = pair->first; task < pair->end && is_good; task++) {
        task_of(&unused, task, &step, &bytes);
        for (int round = 0; round < rounds_of(bytes) && is_good; round++)
            is_good = turn_answer(pair, step, bytes);
    }
    return NULL;
}

/* The shortest of some turns; below 0: they failed, or are not steady. */
static double step_time(struct pair *pair, enum step step, size_t bytes)
{
    double shortest_s = INFINITY, second_s = INFINITY;
    for (int round = 0; round < rounds_of(bytes); round++) {
        double time_s = turn_time(pair, step, bytes);
        if (time_s < 0)
            return -1;
        second_s = fmin(second_s, fmax(shortest_s, time_s));
        shortest_s = fmin(shortest_s, time_s);
    }
    return second_s <= STEADY * shortest_s ? shortest_s : -1;
}

/* Goes on from pair->task, as far as it gets. */
static void costs_measure(struct pair *pair, struct startup_costs *costs)
{
    enum step step;
    size_t bytes;
    for (size_t round = 0; round < first_rounds(pair); round++)
        if (turn_time(pair, STEP_RING, MOST_BYTES) < 0)
            return;
    for (; pair->task < pair->end; pair->task++) {
        double *time_s = task_of(costs, pair->task, &step, &bytes);
        double taken_s = step_time(pair, step, bytes);
        if (taken_s < 0) {
            (void) give_up(pair);
            return;
        }
        *time_s = taken_s;
    }
}

/* --- the other core --------------------------------------------------------------------------- */

/* Does a thread of this core run on that processor? */
static bool is_sibling(int processor, int other)
{
    char list[256];
    return kernel_line(list, sizeof(list),
                       "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor) &&
           processor_list_has(list, (unsigned) other);
}

/* Where the kernel does not say it, any two do. */
static bool share_cache(int processor, int other)
{
    char list[1024];
    return !kernel_line(list, sizeof(list),
                        "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", processor) ||
           processor_list_has(list, (unsigned) other);
}

/* Starts the other end on that processor. */
static bool thread_start(pthread_t *thread, struct pair *pair, int processor)
{
    pthread_attr_t attribute;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned) processor, &set);
    if (pthread_attr_init(&attribute))
        return false;
    bool is_good = pthread_attr_setaffinity_np(&attribute, sizeof(set), &set) == 0 &&
                   quiet_thread_create(thread, &attribute, other_end, pair) == 0;
    pthread_attr_destroy(&attribute);
    return is_good;
}

/* Processors of other cores that this process may use: those that share the last cache, or do not.
 */
static bool measure_with(struct pair *pair, int processor, const cpu_set_t *allowed, bool share,
                         struct startup_costs *costs)
{
    long all = sysconf(_SC_NPROCESSORS_CONF);
    pthread_t thread;
    for (int i = 1; i < all && i < OTHERS_TRIED; i++) {
        int other = (int) ((processor + i) % all);
        if (!CPU_ISSET((unsigned) other, allowed) || is_sibling(processor, other) ||
            share_cache(processor, other) != share || !thread_start(&thread, pair, other))
            continue;
        costs_measure(pair, costs);
        pthread_join(thread, NULL);
        return true;
    }
    return false;
}

/* The processors that the system lets this thread have, also those that a launcher has bound it
 * away from, which are its neighbours' in the job. The caller restores what it is bound to. */
static bool processors_allowed(cpu_set_t *allowed)
{
    memset(allowed, 0xff, sizeof(*allowed));
    return sched_setaffinity(0, sizeof(*allowed), allowed) == 0 &&
           sched_getaffinity(0, sizeof(*allowed), allowed) == 0;
}

/* This thread stays on its processor meanwhile. False: there is no other. */
static bool measure_bound(struct pair *pair, struct startup_costs *costs)
{
    cpu_set_t before, allowed, one;
    int processor = sched_getcpu();
    CPU_ZERO(&one);
    if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
        return false;
    CPU_SET((unsigned) processor, &one);
    bool is_good = processors_allowed(&allowed) && sched_setaffinity(0, sizeof(one), &one) == 0 &&
                   (measure_with(pair, processor, &allowed, true, costs) ||
                    measure_with(pair, processor, &allowed, false, costs));
    (void) sched_setaffinity(0, sizeof(before), &before);
    return is_good;
}

/* What each try begins with. */
struct setting {
    unsigned char *memory; /* MOST_BYTES of each end for messages, and then a ring of each */
    size_t ring_bytes;
    double until_s; /* no try ends later */
};

static struct end end_of(const struct setting *setting, size_t number)
{
    return (struct end){.user = setting->memory + number * MOST_BYTES,
                        .ring = setting->memory + 2 * MOST_BYTES + number * setting->ring_bytes,
                        .ring_bytes = setting->ring_bytes};
}

/* Tasks from `first` on; how many are done then. More than there are: it is of no use to try again.
 */
static unsigned try_measure(const struct setting *setting, unsigned first,
                            struct startup_costs *costs)
{
    struct pair pair = {.here = end_of(setting, 0),
                        .there = end_of(setting, 1),
                        .until_s = clock_exact_s() + TRY_S,
                        .first = first,
                        .end = TASKS,
                        .task = first};
    return measure_bound(&pair, costs) ? pair.task : TASKS + 1;
}

/* When a try that begins after such a pause has ended. */
static double try_ends(long pause_ns)
{
    return clock_exact_s() + 1e-9 * (double) pause_ns + TRY_S;
}

/* False, and zero: not all of it could be measured. */
static bool tasks_measure(const struct setting *setting, struct startup_costs *costs)
{
    struct timespec pause = {0, PAUSE_NS};
    unsigned done = try_measure(setting, 0, costs);
    for (; done < TASKS && try_ends(pause.tv_nsec) < setting->until_s; pause.tv_nsec *= 2) {
        nanosleep(&pause, NULL);
        done = try_measure(setting, done, costs);
    }
    if (done == TASKS && startup_check(costs))
        return true;
    *costs = (struct startup_costs){0};
    return false;
}

double startup_empty_s(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    struct startup_costs costs = {0};
    for (int i = 0; i < EMPTY_TRIES && !(costs.empty_s > 0); i++) {
        struct pair pair = {.until_s = clock_exact_s() + EMPTY_TRY_S,
                            .first = TASK_EMPTY,
                            .end = TASK_EMPTY + 1,
                            .task = TASK_EMPTY};
        if (i > 0)
            nanosleep(&pause, NULL);
        if (!measure_bound(&pair, &costs))
            break;
    }
    return costs.empty_s;
}

bool startup_measure(uint32_t processes, struct startup_costs *costs)
{
    const bool is_crowded = processes > crowd_processors(processes);
    bool is_measured = false;
    struct setting setting = {.ring_bytes = last_cache_ring_sizes_here(processes, is_crowded).most,
                              .until_s = clock_exact_s() + STARTUP_MOST_S};
    /* Messages gain no more by a larger ring, and going round it takes longer than a try where
     * processors are far from each other. */
    if (setting.ring_bytes > MOST_BYTES)
        setting.ring_bytes = MOST_BYTES;
    size_t bytes = 2 * (MOST_BYTES + setting.ring_bytes);
    setting.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    *costs = (struct startup_costs){0};
    if (setting.memory != MAP_FAILED) {
        /* Pages of their own, not all the one of zeros. */
        memset(setting.memory, 1, 2 * MOST_BYTES);
        is_measured = tasks_measure(&setting, costs);
        munmap(setting.memory, bytes);
    }
    if (is_crowded)
        costs->change_s = STARTUP_CHANGE_S;
    return is_measured;
}
