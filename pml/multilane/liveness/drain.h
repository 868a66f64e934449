/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that multilane-top --drain asks this process to empty. */
#ifndef MULTILANE_DRAIN_H
#define MULTILANE_DRAIN_H

#include <stdint.h>

/* Does what was asked since, from progress. No lock is held. */
void drain_look(void);

/* What was asked (own_page_drain) when it was last done, toward each peer. */
uint64_t drain_done(void);

#endif
