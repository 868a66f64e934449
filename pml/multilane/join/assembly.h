/* SPDX-License-Identifier: BSD-3-Clause */
/* Eager messages that come in parts. */
#ifndef MULTILANE_ASSEMBLY_H
#define MULTILANE_ASSEMBLY_H

#include "match/inbound.h"

/* A part of a message, in whatever order it comes. The arrival is of the caller. No lock is held.
 */
void part_arrived(struct arrival *part);

/* The peer is lost: ends receives of messages of which parts are missing. No lock is held. */
void assemblies_lost(struct peer *peer);

#endif
