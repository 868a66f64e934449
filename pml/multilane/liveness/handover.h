/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands losses that the progress thread finds to the program's own threads, because Open MPI's
 * error handling may call the user's functions. */
#ifndef MULTILANE_HANDOVER_H
#define MULTILANE_HANDOVER_H

#include "common/compat/pml.h"

/* `proc` may be null. */
typedef void (*loss_function)(ompi_proc_t *proc, const char *sentence);

/* In the progress thread: keeps the loss; a thread of the program calls the function at its next
 * progress. False in other threads, or without memory: the caller calls it. */
bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence);

/* Tells that the calling thread is the progress thread. */
void handover_is_progress_thread(void);
bool handover_in_progress_thread(void);

/* Call before the progress thread starts, and after it has ended. */
void handover_begin(void);
void handover_end(void);

#endif
