/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of this process's TCP connections: it acknowledges data also for a process
 * that computes, so it tells one from a cut wire. */
#ifndef MULTILANE_SOCKETS_H
#define MULTILANE_SOCKETS_H

#include <stdbool.h>

/* Does any connection of this process wait for an acknowledgement that does not come? */
bool sockets_in_trouble(void);

/* Before a BTL closes its connections: tcp of Open MPI 5.0 and later says goodbye on each, and
 * tries for as long as the kernel does where a wire is cut. Shuts down those that are as good as
 * dead, and keeps the signal away that a goodbye on them would raise; sockets_end lets it come
 * again. */
void sockets_give_up(void);
void sockets_end(void);

#endif
