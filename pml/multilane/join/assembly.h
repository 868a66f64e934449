/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins the parts of eager messages. */
#ifndef MULTILANE_ASSEMBLY_H
#define MULTILANE_ASSEMBLY_H

#include "match/inbound.h"

/* Handles an arrived part, in any order. The caller owns the arrival. No lock is held. */
void part_arrived(struct arrival *part);

/* Is this a part of a message that has its receive? */
bool part_is_awaited(struct peer *peer, uint32_t sequence);

/* The peer is lost: ends the receives of messages with missing parts. No lock is held. */
void assemblies_lost(struct peer *peer);

/* Frees what waits for parts that never came, when MPI ends. */
void assemblies_fini(void);

#endif
