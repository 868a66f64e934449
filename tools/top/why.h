/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom, and why nothing goes on: pure logic over two looks at each rank.
 *
 * A rank can go on if it is not in a wait, or if what it waits for can come: from a rank that can
 * go on, or because bytes moved between the two looks. What is left over is a hang, and its cause
 * is looked for in the pages. Where ranks only wait for one that computes, that is no hang. */
#ifndef TOOLS_TOP_WHY_H
#define TOOLS_TOP_WHY_H

#include "tools/top/edges.h"

enum cause_kind { /* in the order in which they are told */
                  CAUSE_STOPPED,
                  CAUSE_GONE,
                  CAUSE_LOST_MESSAGE,
                  CAUSE_WRONG_TAG,
                  CAUSE_WRONG_COMM,
                  CAUSE_NO_CREDIT,
                  CAUSE_NO_RECEIVE,
                  CAUSE_COLLECTIVES,
                  CAUSE_LEFT,
                  CAUSE_CYCLE,
                  CAUSE_NO_SENDER,
                  /* From here on no hang by itself: */
                  CAUSE_STUCK,
                  CAUSE_COMPUTES,
                  CAUSE_SLEEPS,
                  CAUSE_SWAPPED,
                  CAUSE_LANE_DOWN,
                  CAUSES
};

#define WHY_CAUSES 24
#define WHY_RANKS  64 /* that one cause names */

struct cause {
    enum cause_kind kind;
    uint32_t rank_count;
    int ranks[WHY_RANKS]; /* indices; the first is the culprit, where there is one */
    struct words words;
};

struct why {
    bool is_hang;
    uint32_t waiting, blocked;
    uint32_t cause_count;
    struct cause causes[WHY_CAUSES];
    struct standing standing;
};

/* False: no memory. */
bool why_find(const struct ranks *ranks, struct why *why);
void why_free(struct why *why);

const char *cause_name(enum cause_kind kind);

#endif
