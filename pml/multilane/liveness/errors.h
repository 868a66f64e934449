/* SPDX-License-Identifier: BSD-3-Clause */
/* When a lane fails: one sentence, and MPI's error handling. */
#ifndef MULTILANE_ERRORS_H
#define MULTILANE_ERRORS_H

#include "common/compat/pml.h"

struct lane;
struct peer;

/* Is everybody leaving, so that lost connections are no errors any more? */
bool errors_are_over(void);

/* Sets what is done when a lane fails (lane_events.h): another carries on (watch.h), or the peer
 * counts as failed. */
void errors_begin(void);

/* A lane that another one stands in for was left out, or taken back: one sentence. `last`: more of
 * them will only be counted. */
void lane_say_changed(const struct lane *lane, bool is_up, const char *why, bool last);

/* Nothing reaches this peer any more. */
void peer_lost(struct peer *peer, const char *why);

/* The peer says that it has given up this process: for each the other one is lost. */
void errors_peer_gave_up(struct peer *peer);

/* What BTLs call. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#endif
