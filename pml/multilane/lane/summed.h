/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with sums. A lane that makes them has other functions in the place of its BTL's, so that
 * other lanes pay nothing. */
#ifndef MULTILANE_SUMMED_H
#define MULTILANE_SUMMED_H

#include "lane/lane.h"

/* What is sent on this lane has a sum from now on. Under multilane.lock, before others see the
 * lane. */
void lane_sum(struct lane *lane);

/* Is the sum at its beginning right? */
bool sum_is_right(const mca_btl_base_segment_t *segments, size_t count);

#endif
