/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates: sets of lanes, their lines, and where one line falls below another. */
#include "common/model/candidate.h"

#include <math.h>
#include <string.h>

#include "common/model/group.h"

/* Times that differ by less than this part of them are a tie. The lines are sums of at most a few
 * hundred terms, none negative, so rounding puts them off by less than 2^-44; and no number in them
 * is known to more than some percent. */
#define TIE 0x1p-42

/* --- sets of lanes ---------------------------------------------------------------------------- */

/* What lanes are chosen by: how much they add to those already chosen. */
struct score {
    double added_bytes_s;
    bool is_second_port; /* a port of a card that is used already comes last */
    uint32_t distance;
    double latency_s;
};

static bool score_better(const struct score *a, const struct score *b)
{
    if (a->added_bytes_s != b->added_bytes_s)
        return a->added_bytes_s > b->added_bytes_s;
    if (a->is_second_port != b->is_second_port)
        return b->is_second_port;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->latency_s < b->latency_s;
}

/* Large messages are what several lanes are for, so the last range speaks for a lane. */
static const struct model_lane_range *last_range(const struct model_lane *lane, enum model_way way)
{
    const struct model_lane_cost *cost = &lane->cost[way];
    return &cost->ranges[cost->range_count - 1];
}

static double bandwidth_together(const struct plan_input *input, enum model_way way,
                                 const struct lane_set *set)
{
    struct group_member members[MODEL_LANES_MAX];
    double parts[MODEL_LANES_MAX], sum = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct model_lane *lane = &input->lanes[set->lane[i]];
        members[i].group = lane->group;
        members[i].bandwidth_bytes_s = last_range(lane, way)->bandwidth_bytes_s;
    }
    uint32_t count = group_bandwidths(members, set->count, &input->around.groups, parts);
    for (uint32_t i = 0; i < count; i++)
        sum += parts[i];
    return sum;
}

static bool card_is_chosen(const struct plan_input *input, const struct lane_set *chosen,
                           uint32_t card)
{
    for (uint32_t i = 0; card && i < chosen->count; i++)
        if (input->lanes[chosen->lane[i]].card == card)
            return true;
    return false;
}

static struct score score_of(const struct plan_input *input, enum model_way way,
                             const struct lane_set *chosen, uint8_t lane)
{
    const struct model_lane *added = &input->lanes[lane];
    struct score score = {.added_bytes_s = last_range(added, way)->bandwidth_bytes_s,
                          .is_second_port = card_is_chosen(input, chosen, added->card),
                          .distance = added->distance,
                          .latency_s = last_range(added, way)->latency_s};
    if (added->group && chosen->count) {
        struct lane_set with = *chosen;
        with.lane[with.count++] = lane;
        score.added_bytes_s =
            bandwidth_together(input, way, &with) - bandwidth_together(input, way, chosen);
    }
    return score;
}

/* The best of `left` after those already chosen. */
static uint32_t best_next(const struct plan_input *input, enum model_way way,
                          const struct lane_set *chosen, const struct lane_set *left)
{
    uint32_t best = 0;
    struct score best_score = score_of(input, way, chosen, left->lane[0]);
    for (uint32_t i = 1; i < left->count; i++) {
        struct score score = score_of(input, way, chosen, left->lane[i]);
        if (score_better(&score, &best_score)) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* All lanes that the protocol's selector allows, the best first. */
static void rank_lanes(const struct plan_input *input, const struct model_protocol *protocol,
                       struct lane_set *ranked)
{
    struct lane_set left = {0};
    for (uint32_t i = 0; i < input->lane_count; i++)
        if (model_protocol_allows(protocol, &input->lanes[i], &input->around, NULL))
            left.lane[left.count++] = (uint8_t) i;
    ranked->count = 0;
    while (left.count) {
        uint32_t next = best_next(input, protocol->needs.way, ranked, &left);
        ranked->lane[ranked->count++] = left.lane[next];
        left.count--;
        memmove(&left.lane[next], &left.lane[next + 1], left.count - next);
    }
}

static uint32_t most_lanes(const struct plan_input *input, const struct model_protocol *protocol)
{
    uint32_t most =
        protocol->kind == MODEL_EAGER ? input->most_eager_lanes : input->most_rndv_lanes;
    if (protocol->needs.one_fragment)
        return 1;
    return most && most < MODEL_LANES_MAX ? most : MODEL_LANES_MAX;
}

static struct lane_set first_of(const struct lane_set *ranked, uint32_t count)
{
    struct lane_set set = *ranked;
    set.count = count;
    return set;
}

uint32_t lane_sets_select(const struct plan_input *input, const struct model_protocol *protocol,
                          struct lane_set sets[LANE_SETS_MAX])
{
    struct lane_set ranked;
    uint32_t most = most_lanes(input, protocol), count = 0;
    rank_lanes(input, protocol, &ranked);
    if (most > ranked.count)
        most = ranked.count;
    if (input->every_lane && most > 1) {
        sets[0] = first_of(&ranked, most);
        return 1;
    }
    for (uint32_t i = 0; i < ranked.count; i++)
        sets[count++] = (struct lane_set){.count = 1, .lane = {ranked.lane[i]}};
    for (uint32_t together = 2; together <= most; together++)
        sets[count++] = first_of(&ranked, together);
    return count;
}

/* --- lines ------------------------------------------------------------------------------------ */

bool lane_set_chooses(const struct plan_input *input, const struct model_protocol *protocol,
                      const struct lane_set *set)
{
    for (uint32_t i = 0; protocol->needs.may_copy && i < set->count; i++)
        if (model_lane_chooses(&input->lanes[set->lane[i]], &input->around))
            return true;
    return false;
}

bool candidate_init(struct candidate *candidate, const struct plan_input *input,
                    uint32_t protocol_index, const struct lane_set *set, bool copies)
{
    const struct model_protocol *protocol = model_protocols[protocol_index];
    candidate->protocol = protocol;
    candidate->protocol_index = protocol_index;
    candidate->copies = copies;
    candidate->set = *set;
    candidate->line_first = 0;
    candidate->line_last = 0;
    for (uint32_t i = 0; i < set->count; i++)
        candidate->lanes[i] = &input->lanes[set->lane[i]];
    candidate->first_bytes = protocol->kind == MODEL_EAGER || input->is_announced ? 0 : 1;
    if (!model_protocol_fits(protocol, candidate->lanes[0], input->around.header_bytes,
                             &candidate->largest_bytes))
        return false;
    candidate->bound = MODEL_BOUND_LANE;
    if (protocol->kind == MODEL_EAGER && input->around.eager_max_bytes &&
        input->around.eager_max_bytes < candidate->largest_bytes) {
        candidate->largest_bytes = input->around.eager_max_bytes;
        candidate->bound = input->around.eager_max_is;
    }
    return candidate->largest_bytes >= candidate->first_bytes;
}

static enum cost_stage busiest_stage(const struct cost *cost, uint64_t bytes)
{
    enum cost_stage busiest = COST_SENDER;
    for (int i = COST_WIRE; i < COST_LATENCY; i++) {
        enum cost_stage stage = (enum cost_stage) i;
        double time = cost_of_stage(cost, stage, bytes), most = cost_of_stage(cost, busiest, bytes);
        if (time > most ||
            (time == most && cost->stage[stage].growth_s_byte > cost->stage[busiest].growth_s_byte))
            busiest = stage;
    }
    return busiest;
}

static struct cost_line stream_line(const struct cost *cost, enum cost_stage busiest)
{
    struct cost_line sum = cost_sum_line(cost), line = cost->stage[busiest];
    line.fixed_s += (sum.fixed_s - line.fixed_s) / COST_STREAM_MESSAGES;
    line.growth_s_byte += (sum.growth_s_byte - line.growth_s_byte) / COST_STREAM_MESSAGES;
    return line;
}

/* How far from `bytes` on the stage stays the largest of a stream's: lines cross once. */
static uint64_t busiest_until(const struct cost *cost, enum cost_stage busiest, uint64_t bytes)
{
    uint64_t low = bytes, high = cost->last_bytes;
    if (busiest_stage(cost, high) == busiest)
        return high;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (busiest_stage(cost, middle) == busiest)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void candidate_cost(const struct candidate *candidate, const struct plan_input *input,
                           uint64_t bytes, struct cost *cost)
{
    const struct model_protocol *protocol = candidate->protocol;
    struct model_surroundings around = input->around;
    const struct model_message of = {candidate->lanes, candidate->set.count, &around, bytes};
    bool waits = around.sender_leaves &&
                 (protocol->calls == MODEL_CALLS_SENDER || protocol->calls == MODEL_CALLS_BOTH);
    around.copies = candidate->copies;
    cost_begin(cost, (protocol->kind == MODEL_RNDV ? around.bias : 1) *
                         (waits ? MODEL_LEAVING_FACTOR : 1));
    protocol->cost(&of, cost);
    cost_end(cost);
}

/* Where it is known what the way in use takes, one that has not been tried does not take its place,
 * whatever the equation says. */
#define UNKNOWN_FACTOR 1e3

/* What messages have taken replaces what was expected, up to the end of the range of sizes, or of
 * the way in use. */
static void cost_as_learned(const struct candidate *candidate, const struct plan_input *input,
                            uint64_t bytes, struct cost *cost)
{
    uint32_t bucket = learned_bucket(bytes);
    struct learned_key key = learned_key_of(candidate->protocol_index, candidate->copies,
                                            candidate->set.lane, candidate->set.count);
    double factor = learned_factor(input->learned, key, bucket);
    uint64_t last_bytes;
    struct learned_key used = learned_used_at(input->learned, bytes, &last_bytes);
    if (input->stay > 0 && learned_key_equals(key, used))
        factor *= input->stay;
    else if (input->stay > 0 && learned_is_known(input->learned, used, bucket) &&
             !learned_is_known(input->learned, key, bucket))
        factor *= UNKNOWN_FACTOR;
    for (int stage = 0; stage < COST_STAGES; stage++) {
        cost->stage[stage].fixed_s *= factor;
        cost->stage[stage].growth_s_byte *= factor;
    }
    if (cost->last_bytes > last_bytes)
        cost->last_bytes = last_bytes;
}

/* Where processors move the bytes, both ends are busy with them, and what else they do for a
 * message comes on top of it. */
static void wire_is_processors(struct cost *cost)
{
    struct cost_line *wire = &cost->stage[COST_WIRE];
    for (int i = 0; i < 2; i++) {
        struct cost_line *end = &cost->stage[i ? COST_RECEIVER : COST_SENDER];
        end->fixed_s += wire->fixed_s;
        end->growth_s_byte += wire->growth_s_byte;
    }
    *wire = (struct cost_line){0, 0};
}

void candidate_evaluate(struct candidate *candidate, const struct plan_input *input, uint64_t bytes)
{
    candidate_cost(candidate, input, bytes, &candidate->cost);
    if (input->view == COST_OF_STREAM && input->around.wire_is_processors)
        wire_is_processors(&candidate->cost);
    if (input->learned)
        cost_as_learned(candidate, input, bytes, &candidate->cost);
    candidate->cost.first_bytes = bytes;
    candidate->line_first = bytes;
    if (input->view == COST_OF_MESSAGE) {
        candidate->line = cost_sum_line(&candidate->cost);
        candidate->line_last = candidate->cost.last_bytes;
    } else {
        enum cost_stage busiest = busiest_stage(&candidate->cost, bytes);
        candidate->line = stream_line(&candidate->cost, busiest);
        candidate->line_last = busiest_until(&candidate->cost, busiest, bytes);
    }
}

/* --- comparing -------------------------------------------------------------------------------- */

/* Which one wins where both take equally long? */
static bool wins_tie(const struct candidate *a, const struct candidate *b)
{
    if (a->protocol->kind != b->protocol->kind)
        return a->protocol->kind == MODEL_RNDV;
    if (a->protocol_index != b->protocol_index)
        return a->protocol_index < b->protocol_index;
    if (a->set.count != b->set.count)
        return a->set.count < b->set.count;
    return a->order < b->order;
}

bool candidate_preferred(const struct candidate *a, const struct candidate *b, uint64_t bytes)
{
    double time_a = cost_line_at(&a->line, (double) bytes);
    double time_b = cost_line_at(&b->line, (double) bytes);
    bool is_tie = fabs(time_a - time_b) <= TIE * (time_a + time_b);
    return is_tie ? wins_tie(a, b) : time_a < time_b;
}

uint64_t candidate_overtakes(const struct candidate *best, const struct candidate *challenger,
                             uint64_t from, uint64_t to)
{
    /* Lines that are parallel as far as doubles tell do not meet, though far out a tie hides what
     * stands between them. */
    double growth = best->line.growth_s_byte, other = challenger->line.growth_s_byte;
    if (growth - other <= TIE * (growth + other) || !candidate_preferred(challenger, best, to))
        return 0;
    while (to - from > 1) {
        uint64_t middle = from + (to - from) / 2;
        if (candidate_preferred(challenger, best, middle))
            to = middle;
        else
            from = middle;
    }
    return to;
}
