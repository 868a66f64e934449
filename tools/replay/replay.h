/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages of a recorded job take over other lanes: each rank computes as it did, and its
 * messages take what the plan and its lanes make of them. */
#ifndef TOOLS_REPLAY_REPLAY_H
#define TOOLS_REPLAY_REPLAY_H

#include <stdio.h>

#include "common/model/plan.h"
#include "tools/replay/recording.h"

/* Where two ranks are to each other. */
enum replay_place { REPLAY_IN_NODE, REPLAY_BETWEEN, REPLAY_PLACES };

struct replay_lanes {
    struct plan_input input[REPLAY_PLACES]; /* no lane: none leads there */
    struct plan *plan[REPLAY_PLACES][2];    /* by enum cost_view */
    bool is_profile;                        /* whose overheads hold the latency of a message */
    uint32_t ranks_a_node;                  /* 0: as recorded */
};

struct replay_rank {
    double computes_s;
    double waited_s; /* in messages, as recorded, */
    double waits_s;  /* and with the lanes */
};

struct replay_result {
    double took_s;  /* from the first event of all to the last, as recorded, */
    double takes_s; /* and with the lanes */
    struct replay_rank *ranks;
    uint32_t nodes;
    uint64_t messages;
    uint64_t unmatched; /* sends and receives whose other end is not recorded */
    double bytes;
};

/* False with a sentence: a pair of ranks has no lane, or they wait for good. */
bool replay_run(const struct recording *recording, const struct replay_lanes *lanes,
                struct replay_result *result, struct error_text *error);
void replay_free(struct replay_result *result);

void replay_text(FILE *out, const struct recording *recording, const struct replay_result *result);
void replay_json(FILE *out, const struct recording *recording, const struct replay_result *result);

#endif
