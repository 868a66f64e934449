/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress while the program computes: a thread of ours that looks at our lanes as long as work is
 * under way (work.h), and sleeps else. There is none unless pml_multilane_progress_thread asks for
 * it; then Open MPI's locks lock, whatever thread level the program has. */
#ifndef MULTILANE_PROGRESS_THREAD_H
#define MULTILANE_PROGRESS_THREAD_H

#include "common/compat/pml.h"

/* Before any endpoint exists: Open MPI's locks do nothing until then. */
void progress_thread_prepare(void);
/* Once lanes exist. Where no thread can be made, it is said, and there is none. */
void progress_thread_begin(void);
void progress_thread_end(void);

/* Between the two the thread looks at no lane: endpoints go. */
void progress_thread_pause(void);
void progress_thread_resume(void);

#endif
