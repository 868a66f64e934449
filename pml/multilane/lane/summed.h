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

/* The payload of a message whose headers are right. */
struct payload {
    const unsigned char *bytes;
    size_t length;
    uint32_t sum;
    bool is_checked, is_wrong;
};

/* Reads what stands before a message of WIRE_TAG_APART: its headers, and its payload, not checked.
 * False: the headers are wrong. */
bool apart_read(const mca_btl_base_segment_t *segment, size_t *headers, struct payload *payload);

/* The one that this thread hands up unchecked, or null. */
extern __attribute__((visibility("hidden"))) _Thread_local struct payload *payload_handed_up;

/* Is it right? True for bytes that are no such payload. */
bool payload_is_right(const void *bytes);

/* The same, of what it copies. */
bool payload_copy(void *to, const void *bytes, size_t length);

#endif
