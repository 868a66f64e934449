/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that plays the peer while memory is measured: only where the system lets it run, on
 * another core, and it takes none of the program's signals. */
#define _GNU_SOURCE
#include "check.h"
#include "common/lane/processor_list.h"
#include "common/lane/startup_measure.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

static unsigned threads, with_signals;

/* Set: a new thread gets no processor for so long, which is more than a try takes. */
static useconds_t late_us;
static struct {
    void *(*run)(void *);
    void *argument;
} thread_of_try;

static void *begin_late(void *unused)
{
    (void) unused;
    usleep(late_us);
    return thread_of_try.run(thread_of_try.argument);
}

/* Stands before the system's own. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attribute, void *(*run)(void *),
                   void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *);
    sigset_t blocked;
    *(void **) &create = dlsym(RTLD_NEXT, "pthread_create");
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    threads++;
    with_signals += !sigismember(&blocked, SIGALRM) || !sigismember(&blocked, SIGTERM);
    thread_of_try.run = run;
    thread_of_try.argument = argument;
    return create(thread, attribute, late_us ? begin_late : run, argument);
}

static void measure(void)
{
    struct startup_costs costs;
    sigset_t blocked;
    threads = with_signals = 0;
    (void) startup_measure(2, &costs);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    CHECK(!sigismember(&blocked, SIGALRM), "the program itself takes no signals any more");
}

static void it_takes_no_signals(void)
{
    measure();
    CHECK(with_signals == 0, "%u of %u threads do", with_signals, threads);
}

/* What the system would say of a group of processes that may use this processor alone; below 0:
 * all.
 */
static int only = -1;

int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t *set)
{
    int (*affinity)(pid_t, size_t, const cpu_set_t *);
    cpu_set_t one;
    *(void **) &affinity = dlsym(RTLD_NEXT, "sched_setaffinity");
    if (only < 0)
        return affinity(process, bytes, set);
    CPU_ZERO(&one);
    CPU_SET((unsigned) only, &one);
    CPU_AND(&one, &one, set);
    return affinity(process, sizeof(one), &one);
}

static void none_is_made_for_a_processor_that_is_forbidden(void)
{
    cpu_set_t before;
    CHECK(sched_getaffinity(0, sizeof(before), &before) == 0, "what is allowed");
    only = sched_getcpu();
    measure();
    CHECK(threads == 0, "%u of %ld processors were tried", threads, sysconf(_SC_NPROCESSORS_CONF));
    only = -1;
    (void) sched_setaffinity(0, sizeof(before), &before);
}

/* A launcher binds each process of a job to a core of its own: the others' are its neighbours'. */
static void a_bound_process_measures_with_its_neighbours(void)
{
    cpu_set_t before, one, after;
    CPU_ZERO(&one);
    CPU_SET((unsigned) sched_getcpu(), &one);
    CHECK(sched_getaffinity(0, sizeof(before), &before) == 0 &&
              sched_setaffinity(0, sizeof(one), &one) == 0,
          "it stays on one");
    measure();
    CHECK(threads > 0 || CPU_COUNT(&before) < 2, "it found none of %d", CPU_COUNT(&before));
    CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&after, &one),
          "it is bound elsewhere now");
    (void) sched_setaffinity(0, sizeof(before), &before);
}

/* Tries of 6 ms, and pauses of 1, 2, 4 and 8 ms between them, in 50 ms. */
static void a_busy_machine_is_left_alone(void)
{
    late_us = 6000;
    measure();
    late_us = 0;
    CHECK(threads <= 5, "%u tries", threads);
}

/* As of a core with 1, 2, 4 and 8 threads. */
static void threads_of_a_core_are_known(void)
{
    static const struct {
        const char *list;
        unsigned threads; /* bits */
    } cores[] = {{"3\n", 1 << 3},
                 {"3,7\n", 1 << 3 | 1 << 7},
                 {"0-1\n", 3},
                 {"0,4,8,12\n", 1 | 1 << 4 | 1 << 8 | 1 << 12},
                 {"0-3\n", 15},
                 {"8-15\n", 0xff00},
                 {"0-1,8-9\n", 3 | 3 << 8},
                 {"\n", 0},
                 {"none", 0}};
    for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++)
        for (unsigned processor = 0; processor < 32; processor++)
            CHECK(processor_list_has(cores[i].list, processor) ==
                      (cores[i].threads >> processor & 1),
                  "%u in %s", processor, cores[i].list);
}

int main(void)
{
    it_takes_no_signals();
    none_is_made_for_a_processor_that_is_forbidden();
    a_bound_process_measures_with_its_neighbours();
    a_busy_machine_is_left_alone();
    threads_of_a_core_are_known();
    return check_end();
}
