/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of one message over several lanes, such that all of them finish together. */
#ifndef COMMON_MODEL_SPLIT_H
#define COMMON_MODEL_SPLIT_H

#include <stdint.h>

#include "common/model/lane.h"

/* One lane as it stands when the message is sent. A share of b bytes on it finishes
 * overhead + queued + latency + b / bandwidth from now. */
struct split_lane {
    double bandwidth_bytes_s; /* above 0 and finite */
    double overhead_s;
    double latency_s;
    double queued_s;          /* the work before it: queued bytes / bandwidth */
    uint64_t piece_min_bytes; /* smaller shares go to the other lanes; 0: none is too small */
    uint64_t align_bytes; /* shares end on such a boundary, but for the last; 0 or 1: anywhere */
    uint32_t group;       /* 0: of its own */
};

struct split_result {
    double finish_s;     /* T: when the last lane is done, before rounding to bytes */
    uint32_t lanes_used; /* shares above 0 */
};

/* Divides `bytes`: shares[i] for lane i, adding up to `bytes`. At most `most` lanes take part (0:
 * as many as pay, that is every lane that would not be idle at T). Groups whose capacity is not
 * among `groups` carry what their fastest lane carries. Lanes that cannot be computed with
 * (bandwidth 0, NaN) get nothing; if all are such, the first gets everything. No allocation, no
 * lock: the data path may call it. `count` is 1 to MODEL_LANES_MAX. */
void split_shares(const struct split_lane *lanes, uint32_t count, const struct model_group *groups,
                  uint32_t group_count, uint32_t most, uint64_t bytes, uint64_t *shares,
                  struct split_result *result);

/* split_lane for a message of `bytes` on this lane, with `queued_bytes` before it. */
void split_lane_from(const struct model_lane *lane, enum model_way way, uint64_t bytes,
                     uint64_t queued_bytes, struct split_lane *out);

#endif
