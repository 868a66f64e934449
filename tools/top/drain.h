/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks all ranks to empty a lane, or to use it again: --drain and --restore. */
#ifndef TOOLS_TOP_DRAIN_H
#define TOOLS_TOP_DRAIN_H

#include "tools/top/rank.h"

/* Asks, waits for a moment until it is done, and prints what is not. 0: all ranks did it; 1: not
 * all; below 0: `why` says what is wrong. */
int drain_ask(struct ranks *ranks, const char *lane, bool is_drain, char *why, size_t size);

#endif
