/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers and BTL modules that are none, for tests of lanes and plans without a job. */
#ifndef TEST_UNIT_LANES_STANDIN_H
#define TEST_UNIT_LANES_STANDIN_H

#include "peer/peer.h"

/* A BTL module that sends nothing, known to Open MPI as `name`; bandwidth in Mbit/s. */
mca_btl_base_module_t *standin_btl(const char *name, uint32_t bandwidth);

/* A peer that is met for the first time, with no lane in the BML; standin_reach gives it one. */
struct peer *standin_peer(void);
void standin_reach(struct peer *peer, mca_btl_base_module_t *btl);

/* What the code under test has last said by WIRE_SEEN on a lane. */
uint64_t standin_reported(const struct lane *lane);

/* The number that the peer was told of the lane by WIRE_LANE, plus 1; 0: it was told nothing. */
uint32_t standin_introduced(const struct lane *lane);

/* The time, which passes only here. */
extern uint64_t standin_now_ns;

/* The state that the code under test expects. */
void standin_begin(void);

#endif
