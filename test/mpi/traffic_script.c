// SPDX-License-Identifier: BSD-3-Clause
// Derives the traffic from a seed: the same on every rank, free of deadlock by construction.
//
// Why an ordered batch ends. Take the rank that is blocked at the earliest message. If its partner
// has passed that message, the partner's call was made; else the partner is at an earlier one,
// which contradicts the choice. Along a channel whose receives name their source, message i is
// taken by receive i, because all earlier ones are taken by the earlier receives. Where they do
// not, no send blocks, and as all receives of the channel are alike there, any message will do. Why
// a posted batch ends: see enum shape. Batches with MPI_ANY_SOURCE end with a barrier, so that
// their receives cannot take what belongs to the next one.
#include "traffic.h"
#include "suite.h"

#include <string.h>

static uint64_t below(struct script *script, uint64_t limit)
{
    return random_next(&script->state) % limit;
}

static bool one_in(struct script *script, unsigned n)
{
    return below(script, n) == 0;
}

void script_begin(struct script *script, uint64_t seed)
{
    script->seed = seed;
    script->state = seed * 0x9E3779B97F4A7C15u + 12345;
    script->batch_number = 0;
}

static size_t size_around(struct script *script, size_t point)
{
    size_t spread = point / 64 + 3;
    size_t bytes = point + (size_t) below(script, 2 * spread);
    return bytes > spread ? bytes - spread : 0;
}

// Sizes near those where protocols change are as likely as all others.
static size_t size_pick(struct script *script)
{
    static const size_t points[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384};
    static const size_t large_points[] = {32768, 65536, 131072, 262144, 524288, 1048576};
    const struct script_options *options = &script->options;
    int total = options->weight_small + options->weight_middle + options->weight_large;
    int draw = (int) below(script, (uint64_t) total);
    size_t bytes;
    if (draw < options->weight_small)
        bytes = one_in(script, 2) ? (size_t) below(script, 17) : (size_t) below(script, 300);
    else if (draw < options->weight_small + options->weight_middle)
        bytes = one_in(script, 2) ? size_around(script, points[below(script, COUNT_OF(points))])
                                  : (size_t) below(script, 30000);
    else
        bytes = one_in(script, 2)
                    ? size_around(script, large_points[below(script, COUNT_OF(large_points))])
                    : (size_t) below(script, options->largest);
    return bytes < options->largest ? bytes : options->largest;
}

static void ends_pick(struct script *script, struct message *message)
{
    const struct channel *channel;
    do {
        message->channel = (int) below(script, (uint64_t) script->channel_count);
        channel = &script->channels[message->channel];
        message->source = (int) below(script, (uint64_t) script->ranks);
        message->destination = (int) below(script, (uint64_t) script->ranks);
    } while (channel->inter &&
             channel->side_of[message->source] == channel->side_of[message->destination]);
}

// What all messages along one channel toward one rank share in a batch.
struct group {
    bool drawn, plain, source_chain;
    struct layout_element element;
    enum shape shape; // of every receive, in an ordered batch
    size_t room;
};

static enum shape shape_pick(struct script *script, const struct channel *channel, bool chain)
{
    if (!script->options.wildcards || one_in(script, 2))
        return EXACT;
    if (!channel->any_tag)
        return ANY_SOURCE;
    if (one_in(script, 3))
        return ANYTHING;
    return chain ? ANY_TAG : ANY_SOURCE;
}

static void group_draw(struct script *script, struct group *group, const struct channel *channel)
{
    group->drawn = true;
    group->plain = !script->options.layouts || one_in(script, 3);
    group->source_chain = one_in(script, 2);
    group->element = layout_element_get(below(script, layout_element_count()));
    group->shape = shape_pick(script, channel, group->source_chain);
    group->room = 0;
}

static void contents_pick(struct script *script, const struct group *group, struct message *message)
{
    size_t bytes = size_pick(script);
    message->element = group->element;
    message->elements = bytes / group->element.bytes;
    message->send_layout = message->receive_layout = LAYOUT_CONTIGUOUS;
    if (!group->plain) {
        message->elements -= message->elements % LAYOUT_UNIT;
        message->send_layout = (enum layout_kind) below(script, LAYOUT_KINDS);
        message->receive_layout = (enum layout_kind) below(script, LAYOUT_KINDS);
    }
    message->tag = (int) below(script, TAGS);
}

static void mode_pick(struct script *script, struct message *message)
{
    size_t cost = message->elements * message->element.bytes + MPI_BSEND_OVERHEAD + 64;
    message->mode = one_in(script, 2) ? STANDARD : (enum send_mode) below(script, SEND_MODES);
    if (message->mode != BUFFERED)
        return;
    if (cost > script->buffered_left)
        message->mode = STANDARD;
    else
        script->buffered_left -= cost;
}

// Takes back what would be wrong or could block for ever.
static void hows_settle(const struct batch *batch, struct message *message)
{
    bool any_source = message->shape == ANY_SOURCE || message->shape == ANYTHING;
    bool self = message->source == message->destination;
    if (message->mode == READY && any_source && !batch->posted)
        message->mode = STANDARD;
    if ((batch->posted || any_source || self) && message->mode != BUFFERED &&
        message->send_how == SEND_BLOCKING && message->mode != READY)
        message->send_how = SEND_IMMEDIATE;
    if ((self || message->mode == READY) && message->receive_how < RECEIVE_LATE_HOWS)
        message->receive_how = RECEIVE_IMMEDIATE;
}

static void truncation_maybe(struct script *script, const struct batch *batch,
                             struct message *message)
{
    if (!script->options.truncation || batch->posted || message->shape != EXACT ||
        message->elements == 0 || !one_in(script, 12) ||
        message->elements * message->element.bytes > script->options.largest_truncated)
        return;
    size_t room = (size_t) below(script, message->elements);
    if (message->receive_layout != LAYOUT_CONTIGUOUS)
        room -= room % LAYOUT_UNIT;
    message->room = room;
    // Open MPI frees a persistent request whose receive failed, so the caller must not
    if (message->receive_how == RECEIVE_PERSISTENT)
        message->receive_how = RECEIVE_IMMEDIATE;
}

static void message_pick(struct script *script, struct batch *batch, struct group *groups,
                         int index)
{
    struct message *message = &batch->messages[index];
    ends_pick(script, message);
    const struct channel *channel = &script->channels[message->channel];
    struct group *group = &groups[message->channel * RANKS_MOST + message->destination];
    if (!group->drawn)
        group_draw(script, group, channel);
    contents_pick(script, group, message);
    message->shape =
        batch->posted ? shape_pick(script, channel, group->source_chain) : group->shape;
    mode_pick(script, message);
    message->send_how = (enum send_how) below(script, 3);
    message->receive_how = (enum receive_how) below(script, RECEIVE_HOWS);
    message->post_order = (uint32_t) below(script, 1u << 30);
    message->key = script->seed * 1000003u + (uint64_t) script->batch_number * 1009u +
                   (uint64_t) index * 0x10000000001u;
    hows_settle(batch, message);
    if (message->elements > group->room)
        group->room = message->elements;
    batch->has_ready |= message->mode == READY;
    batch->has_any_source |= message->shape == ANY_SOURCE || message->shape == ANYTHING;
}

void script_next(struct script *script, struct batch *batch)
{
    static _Thread_local struct group groups[CHANNELS_MOST * RANKS_MOST];
    memset(groups, 0, sizeof groups);
    memset(batch, 0, sizeof *batch);
    batch->posted = one_in(script, 2);
    batch->receives_first = one_in(script, 2);
    batch->count = 1 + (int) below(script, MESSAGES_MOST);
    for (int i = 0; i < batch->count; i++)
        message_pick(script, batch, groups, i);
    for (int i = 0; i < batch->count; i++) {
        struct message *message = &batch->messages[i];
        message->room = groups[message->channel * RANKS_MOST + message->destination].room;
        truncation_maybe(script, batch, message);
    }
    bool carry = one_in(script, 3);
    batch->carried = carry && !batch->has_any_source;
    int late = (int) below(script, 8);
    batch->late = batch->posted && !batch->has_ready ? late : 0;
    script->batch_number++;
}

int message_start_order(const struct batch *batch, int message)
{
    // ready sends come last in a posted batch, when the receives are known to be there
    bool last = batch->posted && batch->messages[message].mode == READY;
    return message + (last ? MESSAGES_MOST : 0);
}
