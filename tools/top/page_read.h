/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the page of a process through /proc. Nothing is stopped, and no right to trace is needed.
 */
#ifndef TOOLS_TOP_PAGE_READ_H
#define TOOLS_TOP_PAGE_READ_H

#include <stdbool.h>

#include "common/report/page_check.h"
#include "tools/top/rank.h"

enum page_found {
    PAGE_IS_READ,
    PAGE_NONE,      /* the process has no page: no rank of Multilane */
    PAGE_FORBIDDEN, /* another user's process */
    PAGE_GONE,      /* there is no such process */
    PAGE_REFUSED    /* there is a page, and `why` says why it cannot be used */
};

/* Reads the page and what the system says of the process. */
enum page_found sample_read(int pid, struct sample *sample, char why[PAGE_COMPLAINT]);

/* Changes what the process is asked by DRAIN_FILE_NAME: sets or clears the bits of `lanes`. False:
 * it cannot be written, and errno says why. */
bool drain_change(int pid, uint64_t lanes, bool is_drain);

/* Asks the process to bring the pages of its job together in the folder. False: as above. */
bool pages_ask(int pid, const char *folder);

/* The parent of a process; 0: unknown. */
int process_parent(int pid);

#endif
