/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wait and its like reach Open MPI by a table of functions that a component may change. */
#ifndef MULTILANE_WAITS_H
#define MULTILANE_WAITS_H

/* From now on each such wait has a story (request/wait_story.h). */
void waits_hook(void);
void waits_unhook(void);

#endif
