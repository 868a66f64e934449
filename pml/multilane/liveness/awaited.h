/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that somebody waits for, by name, and that this process has never met: without lanes to
 * them nobody would notice that they are lost. */
#ifndef MULTILANE_AWAITED_H
#define MULTILANE_AWAITED_H

/* Meets them, on communicators whose errors do not end the job: from then on watch.c asks them.
 * Where errors end it who sends notices, and ends it. No lock is held. */
void awaited_meet(void);

#endif
