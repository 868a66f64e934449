/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a running job are asked: to empty a lane (--drain) or use it again
 * (--restore), and for the pages of the whole job (--job), which come over its own lanes. */
#ifndef TOOLS_TOP_ASK_H
#define TOOLS_TOP_ASK_H

#include "tools/top/left.h"
#include "tools/top/rank.h"

/* Changes what the process is asked by DRAIN_FILE_NAME: sets or clears the bits of `lanes`. False:
 * it cannot be written, and errno says why. */
bool drain_change(int pid, uint64_t lanes, bool is_drain);

/* Asks the process to bring the pages of its job together in the folder: a descriptor that keeps
 * others from asking until it is closed; or -1, as above. */
int pages_ask(int pid, const char *folder);

/* Why a process cannot be asked. */
const char *ask_error(int error);

/* Asks, waits for a moment until it is done, and prints what is not. 0: all ranks did it; 1: not
 * all; below 0: *error says what is wrong. */
int drain_ask(struct ranks *ranks, const char *lane, bool is_drain, struct error_text *error);

/* Puts the ranks of the job in place of those of this node, and names on standard error those that
 * have not answered. `number`: what the user has named, maybe the process to ask; or null. False:
 * *error says why there are none. */
bool whole_job_load(const char *number, struct ranks *ranks, struct left *left,
                    struct error_text *error);

#endif
