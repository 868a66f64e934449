/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers and BTL modules that are none, for tests of the PML without a job. The clock, the BTLs and
 * what Open MPI would say are the test's; all else is the product's. */
#ifndef TEST_UNIT_LANES_STANDIN_H
#define TEST_UNIT_LANES_STANDIN_H

#include "peer/peer.h"

/* A BTL module, known to Open MPI as `name`; bandwidth in Mbit/s. What it is given has left at
 * once. */
mca_btl_base_module_t *standin_btl(const char *name, uint32_t bandwidth);

/* What a BTL does with a message. Null, as at first: it takes each; false: it has no room. */
extern bool (*standin_takes)(const mca_btl_base_module_t *btl,
                             const struct mca_btl_base_endpoint_t *endpoint,
                             const unsigned char *bytes, size_t length);

/* The tag of the last message. */
extern mca_btl_base_tag_t standin_tag;

/* A peer that is met for the first time, with no lane in the BML; standin_reach gives it one. */
struct peer *standin_peer(void);
void standin_reach(struct peer *peer, mca_btl_base_module_t *btl);

/* What the code under test has last said by WIRE_RECEIVED on a lane. */
uint64_t standin_reported(const struct lane *lane);

/* The number that the peer was told of the lane by WIRE_LANE, plus 1; 0: it was told nothing. */
uint32_t standin_introduced(const struct lane *lane);

/* The time, which passes only here. */
extern uint64_t standin_now_ns;

/* How many sentences were said to the user, and the last one. */
extern unsigned standin_said;
extern char standin_sentence[512];

/* Failures of lanes and BTLs that the code under test has told of; a test that expects none ends
 * with the first one. */
extern bool standin_expects_failures;
extern unsigned standin_failures;

/* What lies around; standin_begin opens as well what of the PML lanes need. */
void standin_surround(void);
void standin_begin(void);

/* From now on failures are counted as above. */
void standin_count_failures(void);

#endif
