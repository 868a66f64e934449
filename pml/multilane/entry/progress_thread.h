/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress while the program computes: a thread that polls our lanes while work is under way
 * (below), and else sleeps. Only with pml_multilane_progress_thread; then Open MPI's locks work
 * at every thread level. */
#ifndef MULTILANE_PROGRESS_THREAD_H
#define MULTILANE_PROGRESS_THREAD_H

#include "common/compat/pml.h"

/* Call before any endpoint exists: until then Open MPI's locks do nothing. */
void progress_thread_prepare(void);
/* Starts the thread, once lanes exist; prints where it cannot. */
void progress_thread_begin(void);
void progress_thread_end(void);

/* In between the thread polls no lane: endpoints are removed. */
void progress_thread_pause(void);
void progress_thread_resume(void);

#endif
