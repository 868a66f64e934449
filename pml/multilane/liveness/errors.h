/* SPDX-License-Identifier: BSD-3-Clause */
/* When a lane fails: one sentence, and MPI's error handling. */
#ifndef MULTILANE_ERRORS_H
#define MULTILANE_ERRORS_H

#include "common/compat/pml.h"

struct lane;
struct peer;

/* Is everybody leaving, so that lost connections are no errors any more? */
bool errors_are_over(void);

/* A lane to a known peer failed while doing `what`, with Open MPI's error `rc`: another carries on
 * (watch.h), or the peer counts as failed. */
void lane_failed(struct lane *lane, const char *what, int rc);

/* A BTL failed toward somebody unknown. */
void btl_failed(mca_btl_base_module_t *btl, const char *what, int rc);

/* A lane that another one stands in for was left out, or taken back: one sentence. `last`: more of
 * them will only be counted. */
void lane_say_changed(const struct lane *lane, bool is_up, const char *why, bool last);

/* Nothing reaches this peer any more. */
void peer_lost(struct peer *peer, const char *why);

/* What BTLs call. */
void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#endif
