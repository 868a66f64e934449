/* SPDX-License-Identifier: BSD-3-Clause */
/* Each lane between two processes, alone: does it lead there, and how fast is it? */
#ifndef TOOLS_CALIBRATE_LANE_TEST_H
#define TOOLS_CALIBRATE_LANE_TEST_H

#include "traffic.h"

#define LANE_TEST_BYTES (UINT64_C(1) << 20) /* of a long message */
#define LANE_TEST_ROWS  (2 * MODEL_LANES_MAX)
#define LANE_TEST_NOTE  224

/* The two processes; each of them has one of these. */
struct lane_pair {
    const struct traffic *traffic;
    int peer;
    bool is_first;            /* of the two: it has the rows */
    const char *here, *there; /* hosts */
};

struct lane_row {
    int from, to; /* ranks */
    char lane[2 * sizeof(((struct model_lane *) 0)->name)];
    double one_way_s;  /* of 8 bytes; 0: not measured */
    double bytes_s[2]; /* of long messages, there and back */
    bool is_wrong;     /* both ends have it, and it leads nowhere or is far slower than others */
    char note[LANE_TEST_NOTE];
};

/* Of the same BTL? */
bool lane_names_are_like(const char *one, const char *other);

/* Both processes call it at the same time. How many rows there are now. */
int lane_pair_test(const struct lane_pair *pair, struct lane_row rows[LANE_TEST_ROWS]);

#endif
