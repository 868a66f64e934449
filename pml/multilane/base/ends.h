/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other end of a lane has to know of this one. */
#ifndef MULTILANE_ENDS_H
#define MULTILANE_ENDS_H

#include <stdint.h>

#define RECORD_LANES_MAX 8

/* Of all lanes of one BTL, at this end: the slowest processor, and the fastest link. */
struct record_lane {
    char name[16]; /* of the BTL; ends in 0 */
    double overhead_s;
    double reg_cost_s;
    double reg_growth_s_byte;
    double bandwidth_bytes_s; /* 0: not known */
};

struct record_ends {
    uint32_t local_ranks; /* processes of the job on the node */
    uint32_t lane_count;
    struct record_lane lanes[RECORD_LANES_MAX];
};

#endif
