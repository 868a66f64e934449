/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows about TCP connections. It acknowledges data also for a process that only
 * computes, so it tells such a process from a cut wire. A connection says something about one
 * process only. */
#ifndef MULTILANE_SOCKETS_H
#define MULTILANE_SOCKETS_H

#include "common/compat/pml.h"

/* Is this socket connected, and does the other end acknowledge? The caller has sent on it now
 * and then for `silence_ms`. False also for a bad descriptor. Opens no descriptor. */
bool socket_is_healthy(int fd, uint32_t silence_ms);

/* The shortest round trip that this kernel has seen on the connection, in seconds, without any
 * process's part; 0: there is no connection yet, or the kernel does not say. */
double socket_round_trip(int fd);

/* Segments with data that were sent on the connection, and how many of them were sent again,
 * less those that the other end had already: a busy processor answers late. False: there is no
 * connection, or the kernel does not say. */
bool socket_repeats(int fd, uint64_t *sent, uint64_t *repeated);

/* Call both before a BTL closes its connections to these processes. btl/tcp of Open MPI 5.0 and
 * later sends a goodbye on each connection. If the peer has closed its end before, the goodbye
 * raises SIGPIPE: it is ignored until sockets_end. If the wire is cut, the goodbye blocks for as
 * long as the kernel retries: sockets_give_up shuts down the connections that are dead. */
void sockets_ignore_sigpipe(void);
void sockets_give_up(ompi_proc_t **procs, size_t count);
void sockets_end(void);

/* Shuts down the connection of a lost peer that was offered memory: its puts, still in the network,
 * would be written there when the program has it for something else. Nothing, if the BTL is not
 * btl/tcp. Ignores SIGPIPE likewise. */
void socket_stop(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint);

#endif
