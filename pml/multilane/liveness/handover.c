/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of losses for the program's threads. */
#include "liveness/handover.h"

#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One loss to report. */
struct report {
    struct report *next;
    loss_function lost;
    ompi_proc_t *proc; /* retained, or null */
    char sentence[];
};

static struct {
    pthread_mutex_t lock; /* guards first and last; a leaf */
    struct report *first, **last;
    _Atomic bool has_reports; /* a hint, the lock orders the rest */
    bool listens;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool is_progress_thread;

void handover_is_progress_thread(void)
{
    is_progress_thread = true;
}

bool handover_in_progress_thread(void)
{
    return is_progress_thread;
}

bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence)
{
    if (OPAL_LIKELY(!is_progress_thread))
        return false;
    struct report *report = malloc(sizeof(*report) + strlen(sentence) + 1);
    if (!report)
        return false;
    *report = (struct report){.lost = lost, .proc = proc};
    strcpy(report->sentence, sentence);
    if (proc)
        OBJ_RETAIN(proc);
    pthread_mutex_lock(&state.lock);
    *state.last = report;
    state.last = &report->next;
    atomic_store_explicit(&state.has_reports, true, memory_order_relaxed); /* reports_progress */
    pthread_mutex_unlock(&state.lock);
    return true;
}

static struct report *reports_take(void)
{
    pthread_mutex_lock(&state.lock);
    struct report *reports = state.first;
    state.first = NULL;
    state.last = &state.first;
    atomic_store_explicit(&state.has_reports, false, memory_order_relaxed); /* reports_progress */
    pthread_mutex_unlock(&state.lock);
    return reports;
}

static void report_free(struct report *report)
{
    if (report->proc)
        OBJ_RELEASE(report->proc);
    free(report);
}

/* Called by opal_progress, so in a thread of the program; not where the progress thread calls
 * something that waits in there. */
static int reports_progress(void)
{
    if (OPAL_LIKELY(!atomic_load_explicit(&state.has_reports, memory_order_relaxed)) ||
        is_progress_thread)
        return 0;
    struct report *report = reports_take();
    while (report) {
        struct report *heard = report;
        report = heard->next;
        heard->lost(heard->proc, heard->sentence);
        report_free(heard);
    }
    return 1;
}

void handover_begin(void)
{
    state.last = &state.first;
    state.listens = opal_progress_register(reports_progress) == OPAL_SUCCESS;
}

void handover_end(void)
{
    if (state.listens)
        opal_progress_unregister(reports_progress);
    state.listens = false;
    struct report *report = reports_take();
    while (report) { /* the job ends: nothing to report */
        struct report *unheard = report;
        report = unheard->next;
        report_free(unheard);
    }
}
