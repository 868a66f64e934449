/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread. */
#include "entry/calls.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/parameters.h"
#include "common/lock/quiet_thread.h"
#include "memory/device.h"
#include "lane/waiting.h"
#include "liveness/liveness.h"
#include "base/pending.h"
#include "lane/lane.h"

/* Most BTLs to poll; ours are four. */
#define BTLS_MAX 16
/* After so many rounds without result the thread yields, and after so many it sleeps: where it has
 * a processor, for a while; else soon, and until something arrives. */
#define YIELD_ROUNDS       10u
#define NAP_ROUNDS         1000u
#define NAP_ROUNDS_SHARING 20u
#define NAP_NS             50000
#define NAP_SHARING_US     1000u

static struct {
    pthread_t thread;
    bool runs;                   /* only for the program's threads */
    int (*btls[BTLS_MAX])(void); /* written before the thread runs */
    int btl_count;

    /* Held by the thread during a round, and by others to stop it. No other lock is held while
     * waiting for it. */
    pthread_mutex_t round_lock;
} state = {.round_lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the thread ------------------------------------------------------------------------------- */

static int look(void)
{
    int events = 0;
    pthread_mutex_lock(&state.round_lock);
    for (int i = 0; i < state.btl_count; i++)
        events += state.btls[i]();
    events += staging_progress();
    events += pending_progress();
    events += watch_progress();
    pthread_mutex_unlock(&state.round_lock);
    return events;
}

static void nap(void)
{
    const struct timespec blind = {.tv_nsec = NAP_NS};

    /* Room at a lane for what waits does not wake the thread. */
    if (waiting_shares() && !pending_any())
        (void) waiting_nap(NAP_SHARING_US);
    else
        nanosleep(&blind, NULL);
}

static void *run(void *unused)
{
    uint32_t idle = 0;
    is_progress_thread = true;
    while (work_wait()) {
        idle = look() > 0 ? 0 : idle + 1;
        if (idle >= (waiting_shares() ? NAP_ROUNDS_SHARING : NAP_ROUNDS))
            nap();
        else if (idle % YIELD_ROUNDS == YIELD_ROUNDS - 1)
            sched_yield();
    }
    return NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

void progress_thread_prepare(void)
{
    work_is_counted = parameters.progress_thread != 0;
    if (work_is_counted)
        opal_set_using_threads(true);
}

static void btl_add(const mca_btl_base_module_t *btl)
{
    int (*progress)(void) = btl->btl_component->btl_progress;
    if (!progress || !lane_extension_of(btl) || state.btl_count == BTLS_MAX)
        return;
    for (int i = 0; i < state.btl_count; i++)
        if (state.btls[i] == progress)
            return;
    state.btls[state.btl_count++] = progress;
}

void progress_thread_begin(void)
{
    if (!work_is_counted || state.runs)
        return;
    state.btl_count = 0;
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl))
        btl_add(btl);
    work_reset();
    int error = quiet_thread_create(&state.thread, NULL, run, NULL);
    state.runs = error == 0;
    if (!state.runs)
        opal_output(0,
                    "multilane: pml_multilane_progress_thread: no thread can be made: %s. "
                    "Messages move on while the program is in MPI.",
                    strerror(error));
}

void progress_thread_end(void)
{
    if (!state.runs)
        return;
    work_end();
    pthread_join(state.thread, NULL);
    state.runs = false;
}

void progress_thread_pause(void)
{
    if (state.runs && !is_progress_thread)
        pthread_mutex_lock(&state.round_lock);
}

void progress_thread_resume(void)
{
    if (state.runs && !is_progress_thread)
        pthread_mutex_unlock(&state.round_lock);
}
