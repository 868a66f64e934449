/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that a receive or probe waits for, by name, and that this process has never met:
 * without lanes to them it would not notice that they are lost. */
#ifndef MULTILANE_UNMET_SENDERS_H
#define MULTILANE_UNMET_SENDERS_H

/* Meets them, on communicators whose errors do not end the job: from then on watch.c asks them.
 * Where errors end it who sends notices, and ends it. No lock is held. */
void unmet_senders_meet(void);

#endif
