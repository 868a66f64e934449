/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that a receive or probe names and that this process has not met. Without lanes to
 * them it would not notice their loss. */
#ifndef MULTILANE_UNMET_SENDERS_H
#define MULTILANE_UNMET_SENDERS_H

/* Meets them, on communicators whose errors are returned; watch.c then asks them. Where errors
 * end the job, a sender notices and ends it. No lock is held. */
void unmet_senders_meet(void);

#endif
