/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes that bring wrong bytes, as sums show (pml_multilane_verify). */
#ifndef MULTILANE_WRONG_H
#define MULTILANE_WRONG_H

#include "lane/lane.h"

/* Fills its part of lane_events, after errors_begin. */
void wrong_begin(void);

/* WIRE_WRONG: the other end leaves the lane out. */
void wrong_told(struct lane *lane);

/* A message by a lane that cannot bring it again: its sender is lost. Null: it is not known. */
void wrong_is_lost(struct peer *peer, mca_btl_base_module_t *btl, size_t bytes);

#endif
