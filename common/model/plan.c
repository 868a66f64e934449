/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: walks the sizes from 0 to the maximum along the lowest of all candidates' lines. */
#include "common/model/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/candidate.h"
#include "common/model/group.h"
#include "common/model/number.h"

/* The walk, while it goes on. */
struct walk {
    const struct plan_input *input;
    struct candidate *candidates;
    uint32_t candidate_count;
    struct candidate **active; /* those that can carry the sizes of the present interval */
    uint32_t active_count;
    struct plan_entry *entries;
    uint32_t entry_count, entry_room;
    const struct candidate *last; /* that of the newest entry */
    char *note;                   /* the plan's */
};

const char *plan_decider_name(enum plan_decider decider)
{
    static const char *const names[PLAN_DECIDERS] = {
        [PLAN_BY_LANE_LIMIT] = "lane limit", [PLAN_BY_CREDIT] = "credit",
        [PLAN_BY_EAGER_MAX] = "eager_max",   [PLAN_BY_EQUATION] = "equation",
        [PLAN_BY_RANGE] = "range",           [PLAN_BY_FORCE] = "forced"};
    return decider < PLAN_DECIDERS ? names[decider] : "unknown";
}

/* --- what is walked along --------------------------------------------------------------------- */

static void walk_add_protocol(struct walk *walk, uint32_t protocol_index)
{
    struct lane_set sets[LANE_SETS_MAX];
    uint32_t count = lane_sets_select(walk->input, model_protocols[protocol_index], sets);
    const struct model_protocol *protocol = model_protocols[protocol_index];
    for (uint32_t i = 0; i < count; i++)
        for (int copies = 0; copies <= lane_set_chooses(walk->input, protocol, &sets[i]);
             copies++) {
            struct candidate *candidate = &walk->candidates[walk->candidate_count];
            candidate->order = walk->candidate_count;
            if (candidate_init(candidate, walk->input, protocol_index, &sets[i], copies))
                walk->candidate_count++;
        }
}

static bool walk_begin(struct walk *walk, const struct plan_input *input, char *note)
{
    size_t room = (size_t) MODEL_PROTOCOLS * 2 * 2 * input->lane_count;
    *walk = (struct walk){.input = input, .note = note};
    walk->candidates = malloc(room * sizeof *walk->candidates);
    walk->active = malloc(room * sizeof *walk->active);
    if (!walk->candidates || !walk->active)
        return false;
    for (uint32_t i = 0; i < MODEL_PROTOCOLS; i++)
        if (!(input->without >> i & 1))
            walk_add_protocol(walk, i);
    return true;
}

static void walk_end(struct walk *walk)
{
    free(walk->candidates);
    free(walk->active);
    free(walk->entries);
}

/* --- overrides -------------------------------------------------------------------------------- */

/* The override that holds at `bytes`, or null. */
static const struct plan_override *override_at(const struct plan_input *input, uint64_t bytes)
{
    for (uint32_t i = input->override_count; i-- > 0;)
        if (bytes >= input->overrides[i].first_bytes && bytes <= input->overrides[i].last_bytes)
            return &input->overrides[i];
    return NULL;
}

/* The last size before an override begins or ends. */
static uint64_t override_bound(const struct plan_input *input, uint64_t bytes, uint64_t end)
{
    for (uint32_t i = 0; i < input->override_count; i++) {
        const struct plan_override *override = &input->overrides[i];
        if (override->first_bytes > bytes && override->first_bytes - 1 < end)
            end = override->first_bytes - 1;
        if (override->last_bytes >= bytes && override->last_bytes < end)
            end = override->last_bytes;
    }
    return end;
}

static void note_override(struct walk *walk, const struct plan_override *override, uint64_t bytes)
{
    if (!walk->note[0])
        snprintf(walk->note, sizeof((struct plan *) 0)->note,
                 "%s is forced but cannot carry %.20s bytes over these lanes; "
                 "the cheapest protocol that can is used there",
                 model_protocols[override->protocol_index]->name, number_size(bytes).text);
}

/* --- the walk --------------------------------------------------------------------------------- */

static bool carries(const struct candidate *candidate, uint64_t bytes)
{
    return bytes >= candidate->first_bytes && bytes <= candidate->largest_bytes;
}

static void collect(struct walk *walk, uint64_t bytes, const struct plan_override *only)
{
    walk->active_count = 0;
    for (uint32_t i = 0; i < walk->candidate_count; i++) {
        struct candidate *candidate = &walk->candidates[i];
        if (carries(candidate, bytes) &&
            (!only || only->protocol_index == candidate->protocol_index))
            walk->active[walk->active_count++] = candidate;
    }
}

/* Those that compete at `bytes`: the forced protocol's where it can, and otherwise all. Size 0 has
 * nothing to move, so nothing but an eager protocol is ever asked to. */
static void walk_gather(struct walk *walk, uint64_t bytes)
{
    const struct plan_override *override = override_at(walk->input, bytes);
    collect(walk, bytes, override);
    if (override && !walk->active_count) {
        if (bytes)
            note_override(walk, override, bytes);
        collect(walk, bytes, NULL);
    }
    for (uint32_t i = 0; i < walk->active_count; i++) {
        struct candidate *candidate = walk->active[i];
        if (bytes > candidate->line_last || bytes < candidate->line_first || !bytes)
            candidate_evaluate(candidate, walk->input, bytes);
    }
}

/* The last size up to which the same candidates compete and no line bends. */
static uint64_t interval_end(const struct walk *walk, uint64_t bytes)
{
    uint64_t end = override_bound(walk->input, bytes, bytes ? UINT64_MAX : 0);
    for (uint32_t i = 0; i < walk->candidate_count; i++)
        if (walk->candidates[i].largest_bytes >= bytes && walk->candidates[i].largest_bytes < end)
            end = walk->candidates[i].largest_bytes;
    for (uint32_t i = 0; i < walk->active_count; i++)
        if (walk->active[i]->line_last < end)
            end = walk->active[i]->line_last;
    return end;
}

static struct candidate *best_at(const struct walk *walk, uint64_t bytes)
{
    struct candidate *best = walk->active[0];
    for (uint32_t i = 1; i < walk->active_count; i++)
        if (candidate_preferred(walk->active[i], best, bytes))
            best = walk->active[i];
    return best;
}

/* The candidate that overtakes `best` first, and from which size on; *size is 0 if none does up to
 * `end`. */
static struct candidate *next_best(const struct walk *walk, const struct candidate *best,
                                   uint64_t from, uint64_t end, uint64_t *size)
{
    struct candidate *next = NULL;
    *size = 0;
    for (uint32_t i = 0; i < walk->active_count; i++) {
        struct candidate *challenger = walk->active[i];
        uint64_t at = challenger == best ? 0 : candidate_overtakes(best, challenger, from, end);
        if (!at)
            continue;
        if (at < *size || !next || candidate_preferred(challenger, next, at)) {
            next = challenger;
            *size = at;
            end = at; /* later ones do not matter */
        }
    }
    return next;
}

/* --- entries ---------------------------------------------------------------------------------- */

static bool same_choice(const struct plan_entry *entry, const struct candidate *candidate)
{
    return entry->protocol_index == candidate->protocol_index &&
           entry->copies == candidate->copies && entry->lane_count == candidate->set.count &&
           !memcmp(entry->lanes, candidate->set.lane, candidate->set.count);
}

static void set_weights(const struct model_surroundings *around, const struct candidate *candidate,
                        uint64_t bytes, struct plan_entry *entry)
{
    struct group_member members[MODEL_LANES_MAX];
    double carried[MODEL_LANES_MAX], sum = 0;
    uint32_t count = candidate->set.count, left = PLAN_WEIGHT_ONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct model_lane *lane = candidate->lanes[i];
        const struct model_lane_range *range =
            model_lane_range_at(lane, candidate->protocol->needs.way, bytes);
        members[i].group = lane->group;
        members[i].bandwidth_bytes_s =
            range->bandwidth_bytes_s < 1e30 ? range->bandwidth_bytes_s : 1e30;
    }
    for (uint32_t i = 0; i < count; i++)
        sum += carried[i] = group_part(members, count, i, &around->groups);
    for (uint32_t i = count; i-- > 1; left -= entry->weights[i])
        entry->weights[i] = (uint32_t) (PLAN_WEIGHT_ONE * (carried[i] / sum));
    entry->weights[0] = left; /* what rounding leaves goes to the best */
}

/* The candidate's entry for sizes from `first` on. */
static struct plan_entry entry_of(const struct plan_input *input, const struct candidate *candidate,
                                  uint64_t first)
{
    struct plan_entry entry = {.first_bytes = first,
                               .protocol = candidate->protocol,
                               .protocol_index = candidate->protocol_index,
                               .chooses =
                                   lane_set_chooses(input, candidate->protocol, &candidate->set),
                               .copies = candidate->copies,
                               .lane_count = candidate->set.count};
    memcpy(entry.lanes, candidate->set.lane, candidate->set.count);
    return entry;
}

static struct plan_entry *entry_append(struct walk *walk)
{
    if (walk->entry_count == walk->entry_room) {
        uint32_t room = walk->entry_room ? 2 * walk->entry_room : 16;
        struct plan_entry *grown = realloc(walk->entries, room * sizeof *grown);
        if (!grown)
            return NULL;
        walk->entries = grown;
        walk->entry_room = room;
    }
    return &walk->entries[walk->entry_count++];
}

/* Sizes first to last go to the candidate; equal neighbours become one entry. */
static bool walk_emit(struct walk *walk, const struct candidate *candidate, uint64_t first,
                      uint64_t last, enum plan_decider decider)
{
    struct plan_entry *entry = walk->entry_count ? &walk->entries[walk->entry_count - 1] : NULL;
    if (!entry || !same_choice(entry, candidate)) {
        entry = entry_append(walk);
        if (!entry)
            return false;
        *entry = entry_of(walk->input, candidate, first);
        entry->decided_by = decider;
    }
    entry->largest_bytes = last;
    walk->last = candidate;
    set_weights(&walk->input->around, candidate, last, entry);
    return true;
}

/* What decides, where an interval begins, that it is not carried on as the last one was? */
static enum plan_decider interval_decider(const struct walk *walk, uint64_t bytes)
{
    if (!walk->last)
        return PLAN_BY_EQUATION;
    if (override_at(walk->input, bytes) != override_at(walk->input, bytes - 1))
        return PLAN_BY_FORCE;
    return carries(walk->last, bytes) ? PLAN_BY_RANGE : (enum plan_decider) walk->last->bound;
}

/* --- putting it together ---------------------------------------------------------------------- */

static bool fail_memory(struct error_text *error)
{
    return fail_with(error, "no memory for a plan");
}

/* Names what was missing for the protocol that asks least of a lane. */
static bool fail_uncovered(const struct walk *walk, uint64_t bytes, struct error_text *error)
{
    const struct plan_input *input = walk->input;
    struct error_text why = {"every protocol that could is left out"};
    for (uint32_t i = MODEL_PROTOCOLS; i-- > 0;) {
        const struct model_protocol *protocol = model_protocols[i];
        if (input->without >> i & 1 ||
            (protocol->kind == MODEL_RNDV && !bytes && !input->is_announced))
            continue;
        if (model_protocol_allows(protocol, &input->lanes[0], &input->around, &why))
            fail_with(&why, "%s does not carry so many over lane \"%s\"", protocol->name,
                      input->lanes[0].name);
        if (protocol->needs.all_of == MODEL_CAN_SEND)
            break;
    }
    return fail_with(error, "no protocol can carry a %s of %s bytes of %s: %.140s",
                     model_operation_name(input->around.operation), number_size(bytes).text,
                     model_buffer_name(input->around.buffer), why.text);
}

/* One interval in which every line is straight. */
static bool walk_interval(struct walk *walk, uint64_t from, uint64_t end)
{
    struct candidate *best = best_at(walk, from);
    enum plan_decider decider = interval_decider(walk, from);
    for (;;) {
        uint64_t switch_bytes;
        struct candidate *next = next_best(walk, best, from, end, &switch_bytes);
        if (!walk_emit(walk, best, from, next ? switch_bytes - 1 : end, decider))
            return false;
        if (!next)
            return true;
        best = next;
        from = switch_bytes;
        decider = PLAN_BY_EQUATION;
    }
}

static bool walk_sizes(struct walk *walk, struct error_text *error)
{
    uint64_t bytes = 0;
    for (;;) {
        walk_gather(walk, bytes);
        if (!walk->active_count)
            return fail_uncovered(walk, bytes, error);
        uint64_t end = interval_end(walk, bytes);
        if (!walk_interval(walk, bytes, end))
            return fail_memory(error);
        if (end == UINT64_MAX)
            return true;
        bytes = end + 1;
    }
}

/* One block: the plan, its entries, and the sizes that lookups read, on cache lines of their own.
 */
static struct plan *plan_make(const struct walk *walk)
{
    size_t head = sizeof(struct plan) + walk->entry_count * sizeof(struct plan_entry);
    struct plan *plan = malloc(head + walk->entry_count * sizeof(uint64_t));
    if (!plan)
        return NULL;
    plan->entry_count = walk->entry_count;
    plan->entries = (struct plan_entry *) (plan + 1);
    plan->largest = (uint64_t *) (plan->entries + walk->entry_count);
    memcpy(plan->entries, walk->entries, walk->entry_count * sizeof *plan->entries);
    for (uint32_t i = 0; i < walk->entry_count; i++)
        plan->largest[i] = walk->entries[i].largest_bytes;
    memcpy(plan->note, walk->note, sizeof plan->note);
    return plan;
}

struct plan *plan_build(const struct plan_input *input, struct error_text *error)
{
    char note[sizeof((struct plan *) 0)->note] = "";
    struct plan *plan = NULL;
    struct walk walk;
    if (!plan_input_check(input, error))
        return NULL;
    if (!walk_begin(&walk, input, note))
        fail_memory(error);
    else if (walk_sizes(&walk, error) && !(plan = plan_make(&walk)))
        fail_memory(error);
    walk_end(&walk);
    return plan;
}

void plan_free(struct plan *plan)
{
    free(plan);
}

/* --- asking afterwards ------------------------------------------------------------------------ */

struct learned_key plan_entry_key(const struct plan_entry *entry)
{
    return learned_key_of(entry->protocol_index, entry->copies, entry->lanes, entry->lane_count);
}

const char *plan_entry_manner(const struct plan_entry *entry)
{
    return !entry->chooses ? "" : entry->copies ? ", copied" : ", in place";
}

bool plan_predict(const struct plan_input *asked, const struct plan_entry *entry, uint64_t bytes,
                  struct cost *cost)
{
    struct plan_input input = *asked;
    struct candidate candidate;
    struct lane_set set = {.count = entry->lane_count};
    input.around.sender_leaves = false; /* what a message takes, without what is feared */
    input.stay = 0;
    memcpy(set.lane, entry->lanes, entry->lane_count);
    for (uint32_t i = 0; i < set.count; i++)
        if (!model_protocol_allows(model_protocols[entry->protocol_index],
                                   &input.lanes[set.lane[i]], &input.around, NULL))
            return false;
    if (!candidate_init(&candidate, &input, entry->protocol_index, &set, entry->copies) ||
        !carries(&candidate, bytes))
        return false;
    candidate_evaluate(&candidate, &input, bytes);
    *cost = candidate.cost;
    return true;
}

bool plan_best_of_protocol(const struct plan_input *input, uint32_t protocol_index, uint64_t bytes,
                           struct plan_entry *entry, struct cost *cost)
{
    struct lane_set sets[LANE_SETS_MAX];
    struct candidate candidate;
    bool found = false;
    const struct model_protocol *protocol = model_protocols[protocol_index];
    uint32_t count = 2 * lane_sets_select(input, protocol, sets); /* in place, and copied */
    for (uint32_t i = 0; i < count; i++) {
        bool copies = i % 2;
        if ((copies && !lane_set_chooses(input, protocol, &sets[i / 2])) ||
            !candidate_init(&candidate, input, protocol_index, &sets[i / 2], copies) ||
            !carries(&candidate, bytes))
            continue;
        candidate_evaluate(&candidate, input, bytes);
        if (found &&
            cost_of(&candidate.cost, input->view, bytes) >= cost_of(cost, input->view, bytes))
            continue;
        found = true;
        *cost = candidate.cost;
        *entry = entry_of(input, &candidate, bytes);
        entry->largest_bytes = bytes;
        set_weights(&input->around, &candidate, bytes, entry);
    }
    return found;
}
