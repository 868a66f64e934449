/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols: what each needs of lanes, and its cost by the conventions of the equation: no
 * eager line has the latency, the bias multiplies every rendezvous. */
#include "common/model/protocol.h"

#include <math.h>
#include <string.h>

#include "common/model/cost.h"
#include "common/model/group.h"
#include "common/model/number.h"

#define STAGE_BYTES_DEFAULT (UINT64_C(512) << 10)

const char *model_buffer_name(struct model_buffer buffer)
{
    static const char *const names[2][MODEL_MEMORIES] = {
        {"contiguous host memory", "contiguous cuda memory", "contiguous managed memory"},
        {"scattered host memory", "scattered cuda memory", "scattered managed memory"}};
    for (int i = 0; i < MODEL_MEMORIES; i++)
        if ((uint32_t) buffer.memory == UINT32_C(1) << i)
            return names[buffer.pieces != 1][i];
    return "memory of no known kind";
}

const char *model_operation_name(enum model_operation operation)
{
    return operation == MODEL_OPERATION_SEND ? "send" : "synchronous send";
}

/* --- what lanes offer ------------------------------------------------------------------------- */

static bool gathers(const struct model_lane *lane, uint32_t pieces)
{
    return pieces == 1 || (pieces && pieces <= lane->pieces_max);
}

static bool reaches_in_place(const struct model_lane *lane, struct model_buffer buffer)
{
    return (lane->reach & (uint32_t) buffer.memory) && gathers(lane, buffer.pieces);
}

static const struct cost_line *copy_of(const struct model_surroundings *around,
                                       enum model_memory memory)
{
    int bit = 0;
    while (bit < MODEL_MEMORIES - 1 && !((uint32_t) memory >> bit & 1))
        bit++;
    return &around->copy[bit];
}

static const struct cost_line *sender_copy(const struct model_surroundings *around)
{
    return copy_of(around, around->buffer.memory);
}

static enum model_memory receiver_memory(const struct model_surroundings *around)
{
    return around->receiver ? around->receiver : around->buffer.memory;
}

static const struct cost_line *receiver_copy(const struct model_surroundings *around)
{
    return copy_of(around, receiver_memory(around));
}

/* Into what the sender did not count on: the receiver copies all of it. */
static bool receiver_must_copy(const struct model_surroundings *around)
{
    return receiver_memory(around) != around->buffer.memory &&
           receiver_memory(around) != MODEL_MEMORY_HOST;
}

/* Does one end's get (put) reach both ends' bytes? A lane that reaches no host memory works by a
 * driver's copies, which take it at the end that works. */
static bool reaches_both(const struct model_lane *lane, enum model_way way,
                         const struct model_surroundings *around)
{
    uint32_t far =
        (uint32_t) (way == MODEL_BY_PUT ? receiver_memory(around) : around->buffer.memory);
    uint32_t near =
        (uint32_t) (way == MODEL_BY_PUT ? around->buffer.memory : receiver_memory(around));
    bool by_driver = !(lane->reach & MODEL_MEMORY_HOST);
    return (lane->reach & far) &&
           ((lane->reach & near) || (by_driver && near == MODEL_MEMORY_HOST));
}

static bool can_copy(const struct model_lane *lane, const struct model_surroundings *around)
{
    return sender_copy(around)->fixed_s >= 0 && lane->copied_max_bytes > around->header_bytes;
}

bool model_lane_chooses(const struct model_lane *lane, const struct model_surroundings *around)
{
    return lane->copy_growth_s_byte > 0 && lane->zcopied_max_bytes &&
           around->buffer.memory == MODEL_MEMORY_HOST && reaches_in_place(lane, around->buffer) &&
           can_copy(lane, around);
}

/* Does the lane send from where the data lies, or are they copied into its fragments? */
static bool sends_in_place(const struct model_lane *lane, const struct model_surroundings *around)
{
    return lane->zcopied_max_bytes && reaches_in_place(lane, around->buffer) &&
           !(around->copies && model_lane_chooses(lane, around));
}

/* The lane's own part of the sender's copy. The receiver's, out of the lane's fragments, is in what
 * its sends cost in any case. */
static double lane_copy_growth(const struct model_lane *lane,
                               const struct model_surroundings *around)
{
    return around->buffer.memory == MODEL_MEMORY_HOST ? lane->copy_growth_s_byte : 0;
}

void model_bound_eager(struct model_surroundings *around, enum model_bound is, uint64_t bytes)
{
    if (around->eager_max_bytes && around->eager_max_bytes <= bytes)
        return;
    around->eager_max_bytes = bytes;
    around->eager_max_is = is;
}

struct cost_line model_registration(const struct model_lane *lane,
                                    const struct model_lane_range *range,
                                    const struct model_surroundings *around)
{
    bool registers = range->reg_cost_s > 0 || range->reg_growth_s_byte > 0;
    if (registers && around->registration_cached && lane->reg_cached_s >= 0)
        return (struct cost_line){lane->reg_cached_s, 0};
    return (struct cost_line){range->reg_cost_s, range->reg_growth_s_byte};
}

/* --- terms that several protocols share ------------------------------------------------------- */

/* What one of the lanes costs at the message's size; the cost holds no farther than that does. */
static const struct model_lane_range *range_for(const struct model_message *of, uint32_t lane,
                                                enum model_way way, struct cost *cost)
{
    const struct model_lane_range *range = model_lane_range_at(of->lanes[lane], way, of->bytes);
    cost_bound(cost, range->largest_bytes);
    return range;
}

/* The bandwidth of all lanes together. With a second way both ends work at once. */
static void add_bandwidths(const struct model_message *of, enum model_way way,
                           enum model_way second, struct cost *cost)
{
    struct group_member members[MODEL_LANES_MAX];
    double parts[MODEL_LANES_MAX];
    for (uint32_t i = 0; i < of->lane_count; i++) {
        members[i].group = of->lanes[i]->group;
        members[i].bandwidth_bytes_s = range_for(of, i, way, cost)->bandwidth_bytes_s;
        if (second != way) /* unknown: as fast as the first */
            members[i].bandwidth_bytes_s +=
                range_for(of, i, of->lanes[i]->cost[second].range_count ? second : way, cost)
                    ->bandwidth_bytes_s;
    }
    uint32_t part_count = group_bandwidths(members, of->lane_count, &of->around->groups, parts);
    for (uint32_t i = 0; i < part_count; i++)
        cost->bandwidth_bytes_s += parts[i];
}

static void add_registration(struct cost *cost, enum cost_stage stage,
                             struct cost_line registration)
{
    cost_add(cost, stage, registration);
    cost->registration.fixed_s += registration.fixed_s;
    cost->registration.growth_s_byte += registration.growth_s_byte;
}

/* One message from sender to receiver (`forth`) or back: the processors' part of it. */
static void add_overhead(struct cost *cost, const struct model_lane_range *range, int forth,
                         int back)
{
    cost_add_fixed(cost, COST_SENDER, forth, range->overhead_send_s);
    cost_add_fixed(cost, COST_RECEIVER, forth, range->overhead_receive_s);
    cost_add_fixed(cost, COST_RECEIVER, back, range->overhead_send_s);
    cost_add_fixed(cost, COST_SENDER, back, range->overhead_receive_s);
}

static double largest_latency(const struct model_message *of, enum model_way way, struct cost *cost)
{
    double latency = 0;
    for (uint32_t i = 0; i < of->lane_count; i++)
        latency = fmax(latency, range_for(of, i, way, cost)->latency_s);
    return latency;
}

/* An eager message that must report its receive is answered by a short one over the first lane. */
static void add_sync_answer(const struct model_message *of, struct cost *cost)
{
    if (of->around->operation != MODEL_OPERATION_SEND_SYNC)
        return;
    const struct model_lane_range *range = range_for(of, 0, MODEL_BY_SEND, cost);
    add_overhead(cost, range, 0, 1);
    cost_add_fixed(cost, COST_LATENCY, 1, range->latency_s);
}

/* --- pipelines -------------------------------------------------------------------------------- */

/* What sender, wire and receiver take for a slot of so many bytes: fixed, and by the byte. */
struct pipeline {
    struct cost_line stage[COST_LATENCY];
    uint64_t slot_bytes;
};

static double slot_time(const struct pipeline *pipeline, int stage)
{
    return pipeline->stage[stage].fixed_s +
           (double) pipeline->slot_bytes * pipeline->stage[stage].growth_s_byte;
}

/* The stage that holds the others up: its time counts for every slot. Of several the wire, or else
 * the sender. */
static int slowest_stage(const struct pipeline *pipeline)
{
    int end = slot_time(pipeline, COST_SENDER) >= slot_time(pipeline, COST_RECEIVER)
                  ? COST_SENDER
                  : COST_RECEIVER;
    return slot_time(pipeline, COST_WIRE) >= slot_time(pipeline, end) ? COST_WIRE : end;
}

/* A message that fits one slot passes the stages one after the other. Slots of a longer one
 * overlap: the slowest stage works all the time, the others once more at the ends. */
static void add_pipeline(struct cost *cost, const struct pipeline *pipeline, uint64_t bytes)
{
    bool is_single = bytes <= pipeline->slot_bytes;
    int slowest = slowest_stage(pipeline);
    if (is_single)
        cost_bound(cost, pipeline->slot_bytes);
    for (int i = 0; i < COST_LATENCY; i++) {
        struct cost_line line = pipeline->stage[i];
        if (!is_single && i == slowest) /* continuous with the single slot */
            line = (struct cost_line){0, line.growth_s_byte +
                                             line.fixed_s / (double) pipeline->slot_bytes};
        else if (!is_single)
            line = (struct cost_line){slot_time(pipeline, i), 0};
        cost_add(cost, (enum cost_stage) i, line);
    }
}

static uint64_t stage_bytes(const struct model_surroundings *around)
{
    return around->stage_bytes ? around->stage_bytes : STAGE_BYTES_DEFAULT;
}

/* --- data by active messages ------------------------------------------------------------------ */

static bool all_in_place(const struct model_message *of)
{
    for (uint32_t i = 0; i < of->lane_count; i++)
        if (!sends_in_place(of->lanes[i], of->around))
            return false;
    return true;
}

/* Bytes that travel at once, one fragment on every lane. */
static uint64_t fragments_together(const struct model_message *of)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < of->lane_count; i++) {
        uint64_t fragment = sends_in_place(of->lanes[i], of->around)
                                ? of->lanes[i]->zcopied_max_bytes
                                : of->lanes[i]->copied_max_bytes;
        sum = fragment > UINT64_MAX - sum ? UINT64_MAX : sum + fragment;
    }
    return sum;
}

/* Lanes of which some copy: per byte the processors copy that lanes' part of the message. */
static struct pipeline copy_pipeline(const struct model_message *of, struct cost *cost)
{
    const struct cost_line *copy = sender_copy(of->around), *last = receiver_copy(of->around);
    const bool must_copy = receiver_must_copy(of->around);
    double copied_bytes_s = 0, all_bytes_s = 0, sender_copies = 0;
    struct cost wire;
    struct pipeline pipeline = {.slot_bytes = fragments_together(of)};
    struct cost_line *sender = &pipeline.stage[COST_SENDER];
    struct cost_line *receiver = &pipeline.stage[COST_RECEIVER];
    for (uint32_t i = 0; i < of->lane_count; i++) {
        const struct model_lane_range *range = range_for(of, i, MODEL_BY_SEND, cost);
        bool copies = !sends_in_place(of->lanes[i], of->around);
        double bytes_s = fmin(range->bandwidth_bytes_s, 1e30);
        all_bytes_s += bytes_s;
        copied_bytes_s += copies ? bytes_s : 0;
        sender_copies += copies ? bytes_s * lane_copy_growth(of->lanes[i], of->around) : 0;
        sender->fixed_s += range->overhead_send_s + (copies ? copy->fixed_s : 0);
        receiver->fixed_s += range->overhead_receive_s + (copies || must_copy ? last->fixed_s : 0);
    }
    double copied_part = copied_bytes_s / all_bytes_s;
    receiver->growth_s_byte = last->growth_s_byte * (must_copy ? 1 : copied_part);
    sender->growth_s_byte = copy->growth_s_byte * copied_part + sender_copies / all_bytes_s;
    cost_begin(&wire, 1);
    add_bandwidths(of, MODEL_BY_SEND, MODEL_BY_SEND, &wire);
    cost_end(&wire);
    pipeline.stage[COST_WIRE] = wire.stage[COST_WIRE];
    if (must_copy && pipeline.slot_bytes > stage_bytes(of->around))
        pipeline.slot_bytes = stage_bytes(of->around);
    return pipeline;
}

/* One message over the first lane, a copy at either end. */
static void add_copied_message(const struct model_message *of, struct cost *cost)
{
    const struct model_message alone = {of->lanes, 1, of->around, of->bytes};
    add_overhead(cost, range_for(of, 0, MODEL_BY_SEND, cost), 1, 0);
    cost_add(cost, COST_SENDER, *sender_copy(of->around));
    cost_add(cost, COST_SENDER, (struct cost_line){0, lane_copy_growth(of->lanes[0], of->around)});
    cost_add(cost, COST_RECEIVER, *receiver_copy(of->around));
    add_bandwidths(&alone, MODEL_BY_SEND, MODEL_BY_SEND, cost);
}

/* The data of eager-zcopy and of rndv-am: one message's overhead, registration or copies, the wire.
 * Where every lane sends in place it is the equation's. */
static void add_sent_data(const struct model_message *of, struct cost *cost)
{
    bool in_place = all_in_place(of) && !receiver_must_copy(of->around);
    if (!in_place && of->lane_count == 1 && of->bytes <= of->lanes[0]->copied_max_bytes) {
        /* In the very terms of eager-copy, so that a tie is seen as one. */
        add_copied_message(of, cost);
        cost_bound(cost, of->lanes[0]->copied_max_bytes);
        return;
    }
    for (uint32_t i = 0; i < of->lane_count; i++) {
        const struct model_lane_range *range = range_for(of, i, MODEL_BY_SEND, cost);
        if (in_place)
            add_overhead(cost, range, 1, 0);
        if (sends_in_place(of->lanes[i], of->around))
            add_registration(cost, COST_SENDER,
                             model_registration(of->lanes[i], range, of->around));
    }
    if (in_place) {
        add_bandwidths(of, MODEL_BY_SEND, MODEL_BY_SEND, cost);
    } else {
        const struct pipeline pipeline = copy_pipeline(of, cost);
        add_pipeline(cost, &pipeline, of->bytes);
    }
}

/* --- the eager protocols ---------------------------------------------------------------------- */

static void eager_copied_cost(const struct model_message *of, struct cost *cost)
{
    add_copied_message(of, cost);
    add_sync_answer(of, cost);
}

/* etime */
static void eager_zcopy_cost(const struct model_message *of, struct cost *cost)
{
    add_sent_data(of, cost);
    add_sync_answer(of, cost);
}

/* --- the rendezvous protocols ----------------------------------------------------------------- */

/* RTS there and RTR back before the data: 2 overheads of the lane that carries them; and 4
 * latencies in all, of which the equation counts two for the data. Over one lane that is the
 * equation's. */
static void add_handshake(const struct model_message *of, enum model_way way, struct cost *cost)
{
    for (uint32_t i = 0; i < (of->around->handshake_on_all ? of->lane_count : 1); i++)
        add_overhead(cost, range_for(of, i, way, cost), 1, 1);
    cost_add_fixed(cost, COST_LATENCY, 4, largest_latency(of, way, cost));
}

/* rtime with rrc = 0 */
static void rndv_am_cost(const struct model_message *of, struct cost *cost)
{
    add_handshake(of, MODEL_BY_SEND, cost);
    add_sent_data(of, cost);
}

/* rtime with rrc = 1: RTS and ACK, both ends register, `worker` starts and completes the transfer.
 */
static void add_one_sided(const struct model_message *of, enum model_way way, enum model_way second,
                          enum cost_stage worker, struct cost *cost)
{
    add_handshake(of, way, cost);
    for (uint32_t i = 0; i < of->lane_count; i++) {
        const struct model_lane_range *range = range_for(of, i, way, cost);
        struct cost_line registration = model_registration(of->lanes[i], range, of->around);
        add_registration(cost, COST_SENDER, registration);
        add_registration(cost, COST_RECEIVER, registration);
        cost_add_fixed(cost, worker, 1, range->overhead_send_s);
        cost_add_fixed(cost, worker, 1, range->overhead_receive_s);
    }
    add_bandwidths(of, way, second, cost);
}

static void rndv_get_cost(const struct model_message *of, struct cost *cost)
{
    add_one_sided(of, MODEL_BY_GET, MODEL_BY_GET, COST_RECEIVER, cost);
}

/* RTS, RTR, and FIN in place of get's ACK: the same line with the costs of putting. */
static void rndv_put_cost(const struct model_message *of, struct cost *cost)
{
    add_one_sided(of, MODEL_BY_PUT, MODEL_BY_PUT, COST_SENDER, cost);
}

/* rndv-get with what both ends copy together: as measured, or what either does alone added up. */
static void rndv_both_cost(const struct model_message *of, struct cost *cost)
{
    bool is_known = true;
    for (uint32_t i = 0; i < of->lane_count; i++)
        is_known = is_known && of->lanes[i]->cost[MODEL_BY_BOTH].range_count;
    add_one_sided(of, is_known ? MODEL_BY_BOTH : MODEL_BY_GET,
                  is_known ? MODEL_BY_BOTH : MODEL_BY_PUT, COST_RECEIVER, cost);
}

/* Device to ring, ring to ring, ring to device. */
static void rndv_staged_cost(const struct model_message *of, struct cost *cost)
{
    struct pipeline pipeline = {.slot_bytes = stage_bytes(of->around)};
    struct cost wire;
    cost_begin(&wire, 1);
    add_bandwidths(of, MODEL_BY_SEND, MODEL_BY_SEND, &wire);
    for (uint32_t i = 0; i < of->lane_count; i++)
        add_overhead(&wire, range_for(of, i, MODEL_BY_SEND, &wire), 1, 0);
    cost_end(&wire);
    memcpy(pipeline.stage, wire.stage, sizeof(pipeline.stage));
    pipeline.stage[COST_SENDER].fixed_s += sender_copy(of->around)->fixed_s;
    pipeline.stage[COST_SENDER].growth_s_byte = sender_copy(of->around)->growth_s_byte;
    pipeline.stage[COST_RECEIVER].fixed_s += receiver_copy(of->around)->fixed_s;
    pipeline.stage[COST_RECEIVER].growth_s_byte = receiver_copy(of->around)->growth_s_byte;
    cost_bound(cost, wire.last_bytes);
    add_handshake(of, MODEL_BY_SEND, cost);
    add_pipeline(cost, &pipeline, of->bytes);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct model_protocol eager_short = {
    .name = "eager-short",
    .kind = MODEL_EAGER,
    .needs = {MODEL_CAN_SEND | MODEL_CAN_SHORT, MODEL_BY_SEND, .one_fragment = true},
    .cost = eager_copied_cost,
};

static const struct model_protocol eager_copy = {
    .name = "eager-copy",
    .kind = MODEL_EAGER,
    .needs = {MODEL_CAN_SEND, MODEL_BY_SEND, .one_fragment = true},
    .cost = eager_copied_cost,
};

static const struct model_protocol eager_zcopy = {
    .name = "eager-zcopy",
    .kind = MODEL_EAGER,
    .needs = {MODEL_CAN_SEND, MODEL_BY_SEND, .may_copy = true},
    .cost = eager_zcopy_cost,
};

static const struct model_protocol rndv_am = {
    .name = "rndv-am",
    .kind = MODEL_RNDV,
    .needs = {MODEL_CAN_SEND, MODEL_BY_SEND, .may_copy = true},
    .cost = rndv_am_cost,
};

static const struct model_protocol rndv_get = {
    .name = "rndv-get",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_RECEIVER,
    .needs = {MODEL_CAN_GET, MODEL_BY_GET, .in_place = true},
    .cost = rndv_get_cost,
};

static const struct model_protocol rndv_put = {
    .name = "rndv-put",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_SENDER,
    .needs = {MODEL_CAN_PUT, MODEL_BY_PUT, .in_place = true},
    .cost = rndv_put_cost,
};

static const struct model_protocol rndv_both = {
    .name = "rndv-both",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_EITHER,
    .needs = {MODEL_CAN_CONTROL | MODEL_CAN_COPY, MODEL_BY_GET, .in_place = true},
    .cost = rndv_both_cost,
};

static const struct model_protocol rndv_staged = {
    .name = "rndv-staged",
    .kind = MODEL_RNDV,
    .needs = {MODEL_CAN_SEND, MODEL_BY_SEND, .device_only = true},
    .cost = rndv_staged_cost,
};

#define ENTRY(index, object) [MODEL_##index] = &object,
const struct model_protocol *const model_protocols[MODEL_PROTOCOLS] = {MODEL_PROTOCOL_LIST(ENTRY)};

int model_protocol_find(const char *name, struct error_text *error)
{
    char known[160] = "";
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        if (!strcmp(name, model_protocols[i]->name))
            return i;
        text_more(known, sizeof known, "%s%s", i ? ", " : "", model_protocols[i]->name);
    }
    fail_with(error, "there is no protocol \"%.40s\"; known are %s", name, known);
    return -1;
}

static bool allows_abilities(const struct model_protocol *protocol, const struct model_lane *lane,
                             struct error_text *error)
{
    uint32_t missing = protocol->needs.all_of & ~lane->can;
    if (missing)
        return fail_with(error, "%s needs a lane with the ability \"%s\", which \"%s\" lacks",
                         protocol->name, model_ability_name(missing), lane->name);
    return true;
}

/* The data must be reached in place, or there must be a way to copy them into host fragments. */
static bool allows_memory(const struct model_protocol *protocol, const struct model_lane *lane,
                          const struct model_surroundings *around, struct error_text *error)
{
    if (protocol->needs.in_place &&
        (!gathers(lane, around->buffer.pieces) || !reaches_both(lane, protocol->needs.way, around)))
        return fail_with(error, "%s needs a lane that reaches %s in place, which \"%s\" does not",
                         protocol->name, model_buffer_name(around->buffer), lane->name);
    if (!protocol->needs.in_place && receiver_must_copy(around) &&
        receiver_copy(around)->fixed_s < 0)
        return fail_with(error, "%s would copy to %s memory, which cannot be copied here",
                         protocol->name, model_memory_name((uint32_t) receiver_memory(around)));
    if (protocol->needs.in_place || (protocol->needs.may_copy && sends_in_place(lane, around)))
        return true;
    if (sender_copy(around)->fixed_s < 0)
        return fail_with(error, "%s would copy %s, which cannot be copied here", protocol->name,
                         model_buffer_name(around->buffer));
    if (!(lane->reach & MODEL_MEMORY_HOST))
        return fail_with(error, "%s needs a lane that reaches host memory, which \"%s\" does not",
                         protocol->name, lane->name);
    if (protocol->needs.may_copy && !can_copy(lane, around))
        return fail_with(error, "%s needs a lane with copied fragments, which \"%s\" lacks",
                         protocol->name, lane->name);
    return true;
}

bool model_protocol_fits(const struct model_protocol *protocol, const struct model_lane *lane,
                         uint32_t header_bytes, uint64_t *most_bytes)
{
    bool is_short = protocol->needs.all_of & MODEL_CAN_SHORT;
    uint64_t fragment = is_short ? lane->short_max_bytes : lane->copied_max_bytes;
    *most_bytes = protocol->needs.one_fragment ? fragment - header_bytes : UINT64_MAX;
    return !protocol->needs.one_fragment || (fragment && fragment >= header_bytes);
}

bool model_protocol_allows(const struct model_protocol *protocol, const struct model_lane *lane,
                           const struct model_surroundings *around, struct error_text *error)
{
    uint32_t use = protocol->kind == MODEL_EAGER ? MODEL_USE_EAGER : MODEL_USE_RNDV;
    if (!(lane->use & use))
        return fail_with(error, "%s needs a lane for its kind of traffic, which \"%s\" is not",
                         protocol->name, lane->name);
    if (protocol->needs.device_only && around->buffer.memory == MODEL_MEMORY_HOST)
        return fail_with(error, "%s does not carry %s", protocol->name,
                         model_buffer_name(around->buffer));
    if (!allows_abilities(protocol, lane, error) || !allows_memory(protocol, lane, around, error))
        return false;
    if (!lane->cost[protocol->needs.way].range_count)
        return fail_with(error,
                         "%s needs a lane whose costs are known, and those of \"%s\" are not",
                         protocol->name, lane->name);
    return true;
}
