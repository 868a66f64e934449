/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of TCP connections: it acknowledges data also for a process that computes,
 * so it tells one from a cut wire. A connection is with one process, and says nothing of another.
 */
#ifndef MULTILANE_SOCKETS_H
#define MULTILANE_SOCKETS_H

#include "common/compat/pml.h"

/* Is this socket connected, and does the other end acknowledge what it is sent? For `silence_ms` it
 * was sent something again and again. False as well where there is no such socket. Opens no
 * descriptor. */
bool socket_is_healthy(int fd, uint32_t silence_ms);

/* Before a BTL closes its connections with these processes: tcp of Open MPI 5.0 and later says
 * goodbye on each, and tries for as long as the kernel does where a wire is cut. Shuts down those
 * that are as good as dead, and keeps the signal away that a goodbye on them would raise;
 * sockets_end lets it come again. */
void sockets_give_up(ompi_proc_t **procs, size_t count);
void sockets_end(void);

#endif
