/* SPDX-License-Identifier: BSD-3-Clause */
/* A protocol over one set of lanes: what the walk of a plan chooses between. */
#ifndef COMMON_MODEL_CANDIDATE_H
#define COMMON_MODEL_CANDIDATE_H

#include "common/model/plan_input.h"

struct lane_set {
    uint32_t count;
    uint8_t lane[MODEL_LANES_MAX]; /* indices into the lanes of the input, the best first */
};

/* Singles, and the growing sets of the fastest. */
#define LANE_SETS_MAX (2 * MODEL_LANES_MAX)

/* The sets of lanes over which a protocol may be worth using. Returns how many; 0: no lane will do.
 */
uint32_t lane_sets_select(const struct plan_input *input, const struct model_protocol *protocol,
                          struct lane_set sets[LANE_SETS_MAX]);

struct candidate {
    const struct model_protocol *protocol;
    uint32_t protocol_index;
    uint32_t order; /* the last tie-break */
    bool copies;    /* its lanes that have the choice copy */
    struct lane_set set;
    const struct model_lane *lanes[MODEL_LANES_MAX];
    uint64_t first_bytes, largest_bytes; /* what it can carry */
    enum model_bound bound;              /* what keeps it from more */

    /* The cost where the walk is: one line, which holds from line_first to line_last. Both are 0
     * before the first candidate_evaluate. */
    struct cost cost;
    struct cost_line line;
    uint64_t line_first, line_last;
};

/* Has the protocol the choice, over these lanes, between copying and sending in place? Each is then
 * a candidate. */
bool lane_set_chooses(const struct plan_input *input, const struct model_protocol *protocol,
                      const struct lane_set *set);

/* False: these lanes carry nothing this way. */
bool candidate_init(struct candidate *candidate, const struct plan_input *input,
                    uint32_t protocol_index, const struct lane_set *set, bool copies);

/* Brings the line to `bytes`. */
void candidate_evaluate(struct candidate *candidate, const struct plan_input *input,
                        uint64_t bytes);

/* Both lines hold at `bytes`. Is `a` to be used there rather than `b`? The quicker one; a tie goes
 * to rendezvous, then to the order of the table, then to fewer lanes, then to what does not copy.
 */
bool candidate_preferred(const struct candidate *a, const struct candidate *b, uint64_t bytes);

/* `best` is preferred at `from`, and both lines hold to `to`. The first size after `from`, up to
 * `to`, at which `challenger` is preferred; 0: none. */
uint64_t candidate_overtakes(const struct candidate *best, const struct candidate *challenger,
                             uint64_t from, uint64_t to);

#endif
