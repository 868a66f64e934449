/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of this process's TCP connections: it acknowledges data also for a process
 * that computes, so it tells one from a cut wire. */
#ifndef MULTILANE_SOCKETS_H
#define MULTILANE_SOCKETS_H

#include <stdbool.h>

/* Does any connection of this process wait for an acknowledgement that does not come? */
bool sockets_in_trouble(void);

#endif
