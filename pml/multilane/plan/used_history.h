/* SPDX-License-Identifier: BSD-3-Clause */
/* The history of this machine in this job: read at the start, written by the first process when it
 * ends. */
#ifndef MULTILANE_USED_HISTORY_H
#define MULTILANE_USED_HISTORY_H

#include "common/lane/history.h"

/* Reads it, where plans learn and measurements are wanted. */
void used_history_load(void);

const struct history *used_history(void);

/* What this job adds; kept until used_history_write. */
void used_history_add_start(bool is_crowded, const struct startup_costs *costs);
struct history *used_history_added(void);

/* One line for reports. */
const char *used_history_story(void);

/* Writes what was added, beside what other jobs have written meanwhile; and forgets all. */
void used_history_end(void);

#endif
