/* SPDX-License-Identifier: BSD-3-Clause */
/* What multilane-top reads of a process, and asks of it. */
#ifndef TOOLS_TOP_PAGE_READ_H
#define TOOLS_TOP_PAGE_READ_H

#include <stdbool.h>

#include "common/report/page_check.h"
#include "common/report/page_take.h"
#include "tools/top/rank.h"

/* Reads the page and what the system says of the process. */
enum page_found sample_read(int pid, struct sample *sample, char why[PAGE_COMPLAINT]);

/* Changes what the process is asked by DRAIN_FILE_NAME: sets or clears the bits of `lanes`. False:
 * it cannot be written, and errno says why. */
bool drain_change(int pid, uint64_t lanes, bool is_drain);

/* Asks the process to bring the pages of its job together in the folder: a descriptor that keeps
 * others from asking until it is closed; or -1, as above. */
int pages_ask(int pid, const char *folder);

/* Why a process cannot be asked. */
const char *ask_error(int error);

/* The parent of a process; 0: unknown. */
int process_parent(int pid);

#endif
