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

typedef const struct model_lane *const *lane_set;

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

static const struct model_copy *copy_of(const struct model_surroundings *around,
                                        enum model_memory memory)
{
    int bit = 0;
    while (bit < MODEL_MEMORIES - 1 && !((uint32_t) memory >> bit & 1))
        bit++;
    return &around->copy[bit];
}

static const struct model_copy *sender_copy(const struct model_surroundings *around)
{
    return copy_of(around, around->buffer.memory);
}

static enum model_memory receiver_memory(const struct model_surroundings *around)
{
    return around->receiver ? around->receiver : around->buffer.memory;
}

static const struct model_copy *receiver_copy(const struct model_surroundings *around)
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

/* The range of a lane that holds at `bytes`; the cost holds no farther than the range does. */
static const struct model_lane_range *range_for(const struct model_lane *lane, enum model_way way,
                                                uint64_t bytes, struct cost *cost)
{
    const struct model_lane_range *range = model_lane_range_at(lane, way, bytes);
    cost_bound(cost, range->largest_bytes);
    return range;
}

/* The bandwidth of all lanes together. With a second way both ends work at once. */
static void add_bandwidths(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                           enum model_way way, enum model_way second, uint64_t bytes,
                           struct cost *cost)
{
    struct group_member members[MODEL_LANES_MAX];
    double parts[MODEL_LANES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        members[i].group = lanes[i]->group;
        members[i].bandwidth_bytes_s = range_for(lanes[i], way, bytes, cost)->bandwidth_bytes_s;
        if (second != way) /* unknown: as fast as the first */
            members[i].bandwidth_bytes_s +=
                range_for(lanes[i], lanes[i]->cost[second].range_count ? second : way, bytes, cost)
                    ->bandwidth_bytes_s;
    }
    uint32_t part_count =
        group_bandwidths(members, count, around->groups, around->group_count, parts);
    for (uint32_t i = 0; i < part_count; i++)
        cost_add_bandwidth(cost, parts[i]);
}

static void add_registration(struct cost *cost, enum cost_stage stage,
                             struct cost_line registration)
{
    cost_add_fixed(cost, stage, 1, registration.fixed_s);
    cost_add_growth(cost, stage, 1, registration.growth_s_byte);
    cost->registration.fixed_s += registration.fixed_s;
    cost->registration.growth_s_byte += registration.growth_s_byte;
}

static void line_begin(struct cost *cost, const struct model_surroundings *around, double bias)
{
    cost_begin(cost, around->waits ? bias * MODEL_LEAVING_FACTOR : bias);
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

static double largest_latency(lane_set lanes, uint32_t count, enum model_way way, uint64_t bytes,
                              struct cost *cost)
{
    double latency = 0;
    for (uint32_t i = 0; i < count; i++)
        latency = fmax(latency, range_for(lanes[i], way, bytes, cost)->latency_s);
    return latency;
}

/* An eager message that must report its receive is answered by a short one over the first lane. */
static void add_sync_answer(lane_set lanes, const struct model_surroundings *around, uint64_t bytes,
                            struct cost *cost)
{
    if (around->operation != MODEL_OPERATION_SEND_SYNC)
        return;
    const struct model_lane_range *range = range_for(lanes[0], MODEL_BY_SEND, bytes, cost);
    add_overhead(cost, range, 0, 1);
    cost_add_fixed(cost, COST_LATENCY, 1, range->latency_s);
}

/* --- pipelines -------------------------------------------------------------------------------- */

/* What each stage takes for a slot of so many bytes: fixed, and by the byte. */
struct pipeline {
    struct cost_line sender, wire, receiver;
    uint64_t slot_bytes;
};

static double slot_time(struct cost_line line, uint64_t slot_bytes)
{
    return line.fixed_s + (double) slot_bytes * line.growth_s_byte;
}

/* A message that fits one slot passes the stages one after the other. */
static void add_single_slot(struct cost *cost, const struct pipeline *pipeline)
{
    cost_bound(cost, pipeline->slot_bytes);
    cost_add_fixed(cost, COST_SENDER, 1, pipeline->sender.fixed_s);
    cost_add_growth(cost, COST_SENDER, 1, pipeline->sender.growth_s_byte);
    cost_add_fixed(cost, COST_WIRE, 1, pipeline->wire.fixed_s);
    cost_add_growth(cost, COST_WIRE, 1, pipeline->wire.growth_s_byte);
    cost_add_fixed(cost, COST_RECEIVER, 1, pipeline->receiver.fixed_s);
    cost_add_growth(cost, COST_RECEIVER, 1, pipeline->receiver.growth_s_byte);
}

/* The stage that holds the others up: its time counts for every slot. */
static enum cost_stage slowest_stage(const struct pipeline *pipeline)
{
    double sender = slot_time(pipeline->sender, pipeline->slot_bytes);
    double wire = slot_time(pipeline->wire, pipeline->slot_bytes);
    double receiver = slot_time(pipeline->receiver, pipeline->slot_bytes);
    if (wire >= sender && wire >= receiver)
        return COST_WIRE;
    return sender >= receiver ? COST_SENDER : COST_RECEIVER;
}

static void add_stage(struct cost *cost, const struct pipeline *pipeline, enum cost_stage stage,
                      struct cost_line line)
{
    if (stage == slowest_stage(pipeline)) /* continuous with the single slot */
        cost_add_growth(cost, stage, 1,
                        line.growth_s_byte + line.fixed_s / (double) pipeline->slot_bytes);
    else
        cost_add_fixed(cost, stage, 1, slot_time(line, pipeline->slot_bytes));
}

/* Slots overlap: the slowest stage works all the time, the others once more at the ends. */
static void add_pipeline(struct cost *cost, const struct pipeline *pipeline, uint64_t bytes)
{
    if (bytes <= pipeline->slot_bytes) {
        add_single_slot(cost, pipeline);
        return;
    }
    add_stage(cost, pipeline, COST_SENDER, pipeline->sender);
    add_stage(cost, pipeline, COST_WIRE, pipeline->wire);
    add_stage(cost, pipeline, COST_RECEIVER, pipeline->receiver);
}

static uint64_t stage_bytes(const struct model_surroundings *around)
{
    return around->stage_bytes ? around->stage_bytes : STAGE_BYTES_DEFAULT;
}

/* --- data by active messages ------------------------------------------------------------------ */

static bool all_in_place(lane_set lanes, uint32_t count, const struct model_surroundings *around)
{
    for (uint32_t i = 0; i < count; i++)
        if (!sends_in_place(lanes[i], around))
            return false;
    return true;
}

/* Bytes that travel at once, one fragment on every lane. */
static uint64_t fragments_together(lane_set lanes, uint32_t count,
                                   const struct model_surroundings *around)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t fragment = sends_in_place(lanes[i], around) ? lanes[i]->zcopied_max_bytes
                                                             : lanes[i]->copied_max_bytes;
        sum = fragment > UINT64_MAX - sum ? UINT64_MAX : sum + fragment;
    }
    return sum;
}

/* Lanes of which some copy: per byte the processors copy that lanes' part of the message. */
static void copy_pipeline(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          uint64_t bytes, struct pipeline *pipeline, struct cost *cost)
{
    const struct model_copy *copy = sender_copy(around), *last = receiver_copy(around);
    double copied_bytes_s = 0, all_bytes_s = 0, sender_copies = 0;
    struct cost wire;
    memset(pipeline, 0, sizeof *pipeline);
    for (uint32_t i = 0; i < count; i++) {
        const struct model_lane_range *range = range_for(lanes[i], MODEL_BY_SEND, bytes, cost);
        bool copies = !sends_in_place(lanes[i], around);
        double bytes_s = fmin(range->bandwidth_bytes_s, 1e30);
        all_bytes_s += bytes_s;
        copied_bytes_s += copies ? bytes_s : 0;
        sender_copies += copies ? bytes_s * lane_copy_growth(lanes[i], around) : 0;
        pipeline->sender.fixed_s += range->overhead_send_s + (copies ? copy->fixed_s : 0);
        pipeline->receiver.fixed_s +=
            range->overhead_receive_s + (copies || receiver_must_copy(around) ? last->fixed_s : 0);
    }
    double copied_part = copied_bytes_s / all_bytes_s;
    pipeline->receiver.growth_s_byte =
        last->s_byte * (receiver_must_copy(around) ? 1 : copied_part);
    pipeline->sender.growth_s_byte = copy->s_byte * copied_part + sender_copies / all_bytes_s;
    cost_begin(&wire, 1);
    add_bandwidths(lanes, count, around, MODEL_BY_SEND, MODEL_BY_SEND, bytes, &wire);
    cost_end(&wire);
    pipeline->wire = wire.stage[COST_WIRE];
    pipeline->slot_bytes = fragments_together(lanes, count, around);
    if (receiver_must_copy(around) && pipeline->slot_bytes > stage_bytes(around))
        pipeline->slot_bytes = stage_bytes(around);
}

/* eager-short and eager-copy: one message, a copy at either end. */
static void add_copied_message(const struct model_lane *lane,
                               const struct model_surroundings *around, uint64_t bytes,
                               struct cost *cost)
{
    const struct model_copy *copy = sender_copy(around), *last = receiver_copy(around);
    add_overhead(cost, range_for(lane, MODEL_BY_SEND, bytes, cost), 1, 0);
    cost_add_fixed(cost, COST_SENDER, 1, copy->fixed_s);
    cost_add_growth(cost, COST_SENDER, 1, copy->s_byte);
    cost_add_growth(cost, COST_SENDER, 1, lane_copy_growth(lane, around));
    cost_add_fixed(cost, COST_RECEIVER, 1, last->fixed_s);
    cost_add_growth(cost, COST_RECEIVER, 1, last->s_byte);
    add_bandwidths(&lane, 1, around, MODEL_BY_SEND, MODEL_BY_SEND, bytes, cost);
}

/* The data of eager-zcopy and of rndv-am: one message's overhead, registration or copies, the wire.
 * Where every lane sends in place it is the equation's. */
static void add_sent_data(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          uint64_t bytes, struct cost *cost)
{
    bool in_place = all_in_place(lanes, count, around) && !receiver_must_copy(around);
    if (!in_place && count == 1 && bytes <= lanes[0]->copied_max_bytes) {
        /* In the very terms of eager-copy, so that a tie is seen as one. */
        add_copied_message(lanes[0], around, bytes, cost);
        cost_bound(cost, lanes[0]->copied_max_bytes);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct model_lane_range *range = range_for(lanes[i], MODEL_BY_SEND, bytes, cost);
        if (in_place)
            add_overhead(cost, range, 1, 0);
        if (sends_in_place(lanes[i], around))
            add_registration(cost, COST_SENDER, model_registration(lanes[i], range, around));
    }
    if (in_place) {
        add_bandwidths(lanes, count, around, MODEL_BY_SEND, MODEL_BY_SEND, bytes, cost);
    } else {
        struct pipeline pipeline;
        copy_pipeline(lanes, count, around, bytes, &pipeline, cost);
        add_pipeline(cost, &pipeline, bytes);
    }
}

/* --- the eager protocols ---------------------------------------------------------------------- */

static bool eager_fits(const struct model_surroundings *around, uint64_t lane_bytes,
                       uint64_t *bytes)
{
    if (lane_bytes < around->header_bytes)
        return false;
    *bytes = lane_bytes - around->header_bytes;
    return true;
}

static bool eager_short_largest(lane_set lanes, uint32_t count,
                                const struct model_surroundings *around, uint64_t *bytes)
{
    (void) count;
    return lanes[0]->short_max_bytes && eager_fits(around, lanes[0]->short_max_bytes, bytes);
}

static bool eager_copy_largest(lane_set lanes, uint32_t count,
                               const struct model_surroundings *around, uint64_t *bytes)
{
    (void) count;
    return lanes[0]->copied_max_bytes && eager_fits(around, lanes[0]->copied_max_bytes, bytes);
}

static void eager_copied_cost(lane_set lanes, uint32_t count,
                              const struct model_surroundings *around, uint64_t bytes,
                              struct cost *cost)
{
    (void) count;
    line_begin(cost, around, 1);
    add_copied_message(lanes[0], around, bytes, cost);
    add_sync_answer(lanes, around, bytes, cost);
    cost_end(cost);
}

/* etime */
static void eager_zcopy_cost(lane_set lanes, uint32_t count,
                             const struct model_surroundings *around, uint64_t bytes,
                             struct cost *cost)
{
    line_begin(cost, around, 1);
    add_sent_data(lanes, count, around, bytes, cost);
    add_sync_answer(lanes, around, bytes, cost);
    cost_end(cost);
}

/* --- the rendezvous protocols ----------------------------------------------------------------- */

/* RTS there and RTR back before the data: 2 overheads of the lane that carries them; and 4
 * latencies in all, of which the equation counts two for the data. Over one lane that is the
 * equation's. */
static void add_handshake(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          enum model_way way, uint64_t bytes, struct cost *cost)
{
    for (uint32_t i = 0; i < (around->handshake_on_all ? count : 1); i++)
        add_overhead(cost, range_for(lanes[i], way, bytes, cost), 1, 1);
    cost_add_fixed(cost, COST_LATENCY, 4, largest_latency(lanes, count, way, bytes, cost));
}

/* rtime with rrc = 0 */
static void rndv_am_cost(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                         uint64_t bytes, struct cost *cost)
{
    line_begin(cost, around, around->bias);
    add_handshake(lanes, count, around, MODEL_BY_SEND, bytes, cost);
    add_sent_data(lanes, count, around, bytes, cost);
    cost_end(cost);
}

/* rtime with rrc = 1: RTS and ACK, both ends register, `worker` starts and completes the transfer.
 */
static void add_one_sided(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          enum model_way way, enum model_way second, enum cost_stage worker,
                          uint64_t bytes, struct cost *cost)
{
    add_handshake(lanes, count, around, way, bytes, cost);
    for (uint32_t i = 0; i < count; i++) {
        const struct model_lane_range *range = range_for(lanes[i], way, bytes, cost);
        struct cost_line registration = model_registration(lanes[i], range, around);
        add_registration(cost, COST_SENDER, registration);
        add_registration(cost, COST_RECEIVER, registration);
        cost_add_fixed(cost, worker, 1, range->overhead_send_s);
        cost_add_fixed(cost, worker, 1, range->overhead_receive_s);
    }
    add_bandwidths(lanes, count, around, way, second, bytes, cost);
}

static void rndv_get_cost(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          uint64_t bytes, struct cost *cost)
{
    line_begin(cost, around, around->bias);
    add_one_sided(lanes, count, around, MODEL_BY_GET, MODEL_BY_GET, COST_RECEIVER, bytes, cost);
    cost_end(cost);
}

/* RTS, RTR, and FIN in place of get's ACK: the same line with the costs of putting. */
static void rndv_put_cost(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                          uint64_t bytes, struct cost *cost)
{
    line_begin(cost, around, around->bias);
    add_one_sided(lanes, count, around, MODEL_BY_PUT, MODEL_BY_PUT, COST_SENDER, bytes, cost);
    cost_end(cost);
}

/* rndv-get with what both ends copy together: as measured, or what either does alone added up. */
static void rndv_both_cost(lane_set lanes, uint32_t count, const struct model_surroundings *around,
                           uint64_t bytes, struct cost *cost)
{
    bool is_known = true;
    for (uint32_t i = 0; i < count; i++)
        is_known = is_known && lanes[i]->cost[MODEL_BY_BOTH].range_count;
    line_begin(cost, around, around->bias);
    add_one_sided(lanes, count, around, is_known ? MODEL_BY_BOTH : MODEL_BY_GET,
                  is_known ? MODEL_BY_BOTH : MODEL_BY_PUT, COST_RECEIVER, bytes, cost);
    cost_end(cost);
}

/* Device to ring, ring to ring, ring to device. */
static void rndv_staged_cost(lane_set lanes, uint32_t count,
                             const struct model_surroundings *around, uint64_t bytes,
                             struct cost *cost)
{
    const struct model_copy *copy = sender_copy(around), *last = receiver_copy(around);
    struct pipeline pipeline;
    struct cost wire;
    cost_begin(&wire, 1);
    add_bandwidths(lanes, count, around, MODEL_BY_SEND, MODEL_BY_SEND, bytes, &wire);
    for (uint32_t i = 0; i < count; i++)
        add_overhead(&wire, range_for(lanes[i], MODEL_BY_SEND, bytes, &wire), 1, 0);
    cost_end(&wire);
    pipeline.sender =
        (struct cost_line){copy->fixed_s + wire.stage[COST_SENDER].fixed_s, copy->s_byte};
    pipeline.wire = wire.stage[COST_WIRE];
    pipeline.receiver =
        (struct cost_line){last->fixed_s + wire.stage[COST_RECEIVER].fixed_s, last->s_byte};
    pipeline.slot_bytes = stage_bytes(around);

    line_begin(cost, around, around->bias);
    cost_bound(cost, wire.last_bytes);
    add_handshake(lanes, count, around, MODEL_BY_SEND, bytes, cost);
    add_pipeline(cost, &pipeline, bytes);
    cost_end(cost);
}

/* --- the table -------------------------------------------------------------------------------- */

#define ANY_MEMORY    (MODEL_MEMORY_HOST | MODEL_MEMORY_CUDA | MODEL_MEMORY_MANAGED)
#define DEVICE_MEMORY (MODEL_MEMORY_CUDA | MODEL_MEMORY_MANAGED)

static const struct model_protocol eager_short = {
    .name = "eager-short",
    .kind = MODEL_EAGER,
    .needs = {.all_of = MODEL_CAN_SEND | MODEL_CAN_SHORT,
              .memory = ANY_MEMORY,
              .way = MODEL_BY_SEND,
              .one_lane = true},
    .largest = eager_short_largest,
    .cost = eager_copied_cost};

static const struct model_protocol eager_copy = {.name = "eager-copy",
                                                 .kind = MODEL_EAGER,
                                                 .needs = {.all_of = MODEL_CAN_SEND,
                                                           .memory = ANY_MEMORY,
                                                           .way = MODEL_BY_SEND,
                                                           .one_lane = true},
                                                 .largest = eager_copy_largest,
                                                 .cost = eager_copied_cost};

static const struct model_protocol eager_zcopy = {.name = "eager-zcopy",
                                                  .kind = MODEL_EAGER,
                                                  .needs = {.all_of = MODEL_CAN_SEND,
                                                            .memory = ANY_MEMORY,
                                                            .way = MODEL_BY_SEND,
                                                            .may_copy = true},
                                                  .cost = eager_zcopy_cost};

static const struct model_protocol rndv_am = {.name = "rndv-am",
                                              .kind = MODEL_RNDV,
                                              .needs = {.all_of = MODEL_CAN_SEND,
                                                        .memory = ANY_MEMORY,
                                                        .way = MODEL_BY_SEND,
                                                        .may_copy = true},
                                              .cost = rndv_am_cost};

static const struct model_protocol rndv_get = {
    .name = "rndv-get",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_RECEIVER,
    .needs = {.all_of = MODEL_CAN_GET, .memory = ANY_MEMORY, .way = MODEL_BY_GET, .in_place = true},
    .cost = rndv_get_cost};

static const struct model_protocol rndv_put = {
    .name = "rndv-put",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_SENDER,
    .needs = {.all_of = MODEL_CAN_PUT, .memory = ANY_MEMORY, .way = MODEL_BY_PUT, .in_place = true},
    .cost = rndv_put_cost};

static const struct model_protocol rndv_both = {
    .name = "rndv-both",
    .kind = MODEL_RNDV,
    .calls = MODEL_CALLS_EITHER,
    .needs = {.all_of = MODEL_CAN_CONTROL | MODEL_CAN_COPY,
              .memory = ANY_MEMORY,
              .way = MODEL_BY_GET,
              .in_place = true},
    .cost = rndv_both_cost};

static const struct model_protocol rndv_staged = {
    .name = "rndv-staged",
    .kind = MODEL_RNDV,
    .needs = {.all_of = MODEL_CAN_SEND, .memory = DEVICE_MEMORY, .way = MODEL_BY_SEND},
    .cost = rndv_staged_cost};

#define ENTRY(index, object) [MODEL_##index] = &object,
const struct model_protocol *const model_protocols[MODEL_PROTOCOLS] = {MODEL_PROTOCOL_LIST(ENTRY)};

int model_protocol_find(const char *name, struct model_error *error)
{
    char known[160] = "";
    for (int i = 0; i < MODEL_PROTOCOLS; i++) {
        if (!strcmp(name, model_protocols[i]->name))
            return i;
        text_more(known, sizeof known, "%s%s", i ? ", " : "", model_protocols[i]->name);
    }
    model_fail(error, "there is no protocol \"%.40s\"; known are %s", name, known);
    return -1;
}

static bool allows_abilities(const struct model_protocol *protocol, const struct model_lane *lane,
                             struct model_error *error)
{
    uint32_t missing = protocol->needs.all_of & ~lane->can;
    if (missing)
        return model_fail(error, "%s needs a lane with the ability \"%s\", which \"%s\" lacks",
                          protocol->name, model_ability_name(missing), lane->name);
    return true;
}

/* The data must be reached in place, or there must be a way to copy them into host fragments. */
static bool allows_memory(const struct model_protocol *protocol, const struct model_lane *lane,
                          const struct model_surroundings *around, struct model_error *error)
{
    if (protocol->needs.in_place &&
        (!gathers(lane, around->buffer.pieces) || !reaches_both(lane, protocol->needs.way, around)))
        return model_fail(error, "%s needs a lane that reaches %s in place, which \"%s\" does not",
                          protocol->name, model_buffer_name(around->buffer), lane->name);
    if (!protocol->needs.in_place && receiver_must_copy(around) &&
        receiver_copy(around)->fixed_s < 0)
        return model_fail(error, "%s would copy to %s memory, which cannot be copied here",
                          protocol->name, model_memory_name((uint32_t) receiver_memory(around)));
    if (protocol->needs.in_place || (protocol->needs.may_copy && sends_in_place(lane, around)))
        return true;
    if (sender_copy(around)->fixed_s < 0)
        return model_fail(error, "%s would copy %s, which cannot be copied here", protocol->name,
                          model_buffer_name(around->buffer));
    if (!(lane->reach & MODEL_MEMORY_HOST))
        return model_fail(error, "%s needs a lane that reaches host memory, which \"%s\" does not",
                          protocol->name, lane->name);
    if (protocol->needs.may_copy && !can_copy(lane, around))
        return model_fail(error, "%s needs a lane with copied fragments, which \"%s\" lacks",
                          protocol->name, lane->name);
    return true;
}

bool model_protocol_allows(const struct model_protocol *protocol, const struct model_lane *lane,
                           const struct model_surroundings *around, struct model_error *error)
{
    uint32_t use = protocol->kind == MODEL_EAGER ? MODEL_USE_EAGER : MODEL_USE_RNDV;
    if (!(lane->use & use))
        return model_fail(error, "%s needs a lane for its kind of traffic, which \"%s\" is not",
                          protocol->name, lane->name);
    if (!(protocol->needs.memory & (uint32_t) around->buffer.memory))
        return model_fail(error, "%s does not carry %s", protocol->name,
                          model_buffer_name(around->buffer));
    if (!allows_abilities(protocol, lane, error) || !allows_memory(protocol, lane, around, error))
        return false;
    if (!lane->cost[protocol->needs.way].range_count)
        return model_fail(error,
                          "%s needs a lane whose costs are known, and those of \"%s\" are not",
                          protocol->name, lane->name);
    return true;
}
