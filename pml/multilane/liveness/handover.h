/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses that the progress thread finds are handed over to the program's own threads: Open MPI's
 * error handling may end in the user's functions. */
#ifndef MULTILANE_HANDOVER_H
#define MULTILANE_HANDOVER_H

#include "common/compat/pml.h"

/* `proc` may be null. */
typedef void (*loss_function)(ompi_proc_t *proc, const char *sentence);

/* In the progress thread: the function is called in one of the program's own threads, when that
 * next makes progress. False elsewhere, or without memory: the caller calls it. */
bool handover_take(loss_function lost, ompi_proc_t *proc, const char *sentence);

/* This thread is the progress thread. */
void handover_is_progress_thread(void);
bool handover_in_progress_thread(void);

/* Before the progress thread runs, and after it has ended. */
void handover_begin(void);
void handover_end(void);

#endif
