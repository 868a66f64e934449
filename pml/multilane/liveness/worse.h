/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that work and have become worse than they were. */
#ifndef MULTILANE_WORSE_H
#define MULTILANE_WORSE_H

#include "peer/peer.h"

/* Looks at the peer's lanes, about once a second; `now` in active time. By one thread at a time; no
 * lock is held. */
void worse_look(struct peer *peer, uint64_t now);

#endif
