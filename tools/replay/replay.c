/* SPDX-License-Identifier: BSD-3-Clause */
/* The step-by-step simulation. Each rank has a clock and goes through its events; the rank whose
 * clock is behind goes first. Between two events it computes for as long as it did. A message takes
 * its plan's protocol and lanes: its sender's processor, its lanes, each a queue at both ends,
 * their latency, its receiver's processor. A rendezvous is answered while the one who has to answer
 * is in a call of MPI. */
#include "tools/replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/recording.h"

#define NONE  MATCH_NONE
#define PORTS (REPLAY_PLACES * MODEL_LANES_MAX)

/* So much of what was sent over a network waits in the sender's kernel; a send is done when the
 * rest has left. */
#define KEPT_BYTES (1024.0 * 1024)

/* What is known of one. Times are in seconds since the first event of all; INFINITY: not yet. */
struct message {
    double came_s; /* the receiver has it */
    double left_s; /* the sender has sent it */
    double due_s;  /* a rendezvous: its announcement has come, or the answer to that */
    double stage_s[COST_STAGES];
    uint64_t bytes;
    const struct plan_entry *entry; /* null: not sent yet, or from a rank to itself */
    uint32_t from, to;
    uint32_t next; /* that waits for the same rank's next call */
    bool posted;   /* its receive */
    bool answered; /* the receiver has; now it is the sender's turn */
};

struct rank {
    const struct recording_rank *of;
    uint32_t at; /* the event */
    uint32_t node;
    uint32_t first_due, waits_for; /* messages, or NONE */
    double clock_s, began_s, computes_s;
    double in_s, out_s; /* of its last call of MPI */
};

/* A lane of a rank, or of a node whose ranks share it: from when on it is free. */
struct port {
    double out_s, in_s;
};

struct replay {
    const struct replay_lanes *lanes;
    struct match match;
    struct message *messages;
    struct rank *ranks;
    uint32_t rank_count;
    uint32_t *heap, heap_count; /* ranks that can go on, the one behind first */
    struct port *ports;         /* PORTS of each rank, then of each node */
    struct error_text *error;
};

/* --- the rank that is behind ------------------------------------------------------------------ */

static bool heap_is_before(const struct replay *replay, uint32_t a, uint32_t b)
{
    return replay->ranks[replay->heap[a]].clock_s < replay->ranks[replay->heap[b]].clock_s;
}

static uint32_t heap_swap(struct replay *replay, uint32_t a, uint32_t b)
{
    uint32_t rank = replay->heap[a];
    replay->heap[a] = replay->heap[b];
    replay->heap[b] = rank;
    return b;
}

static void heap_add(struct replay *replay, const struct rank *rank)
{
    uint32_t at = replay->heap_count++;
    replay->heap[at] = (uint32_t) (rank - replay->ranks);
    while (at && heap_is_before(replay, at, (at - 1) / 2))
        at = heap_swap(replay, at, (at - 1) / 2);
}

static struct rank *heap_take(struct replay *replay)
{
    struct rank *first = &replay->ranks[replay->heap[0]];
    replay->heap[0] = replay->heap[--replay->heap_count];
    for (uint32_t at = 0, child; (child = 2 * at + 1) < replay->heap_count;) {
        child += child + 1 < replay->heap_count && heap_is_before(replay, child + 1, child);
        if (!heap_is_before(replay, child, at))
            break;
        at = heap_swap(replay, at, child);
    }
    return first;
}

/* --- lanes ------------------------------------------------------------------------------------ */

static enum replay_place place_of(const struct replay *replay, const struct message *message)
{
    return replay->ranks[message->from].node == replay->ranks[message->to].node ? REPLAY_IN_NODE
                                                                                : REPLAY_BETWEEN;
}

static struct port *port_of(struct replay *replay, uint32_t owner, enum replay_place place,
                            uint32_t lane)
{
    return &replay->ports[(size_t) owner * PORTS + place * MODEL_LANES_MAX + lane];
}

/* The bytes go through the ports of both ends, when these are free. */
static void ports_pass(struct port *from, struct port *to, double begin_s, double busy_s,
                       struct message *message)
{
    from->out_s = fmax(begin_s, from->out_s) + busy_s;
    to->in_s = fmax(from->out_s - busy_s, to->in_s) + busy_s;
    message->left_s = fmax(message->left_s, from->out_s);
    message->came_s = fmax(message->came_s, to->in_s);
}

/* Each lane of a rank carries its share in the time that all take, and one that ranks share what it
 * can carry for all. */
static void lanes_pass(struct replay *replay, struct message *message, double begin_s)
{
    enum replay_place place = place_of(replay, message);
    const struct plan_entry *entry = message->entry;
    message->left_s = message->came_s = begin_s;
    for (uint32_t i = 0; i < entry->lane_count; i++) {
        uint32_t lane = entry->lanes[i], nodes = replay->rank_count;
        double shared_bytes_s = replay->lanes->input[place].lanes[lane].shared_bytes_s;
        double bytes = (double) message->bytes * entry->weights[i] / PLAN_WEIGHT_ONE;
        ports_pass(port_of(replay, message->from, place, lane),
                   port_of(replay, message->to, place, lane), begin_s, message->stage_s[COST_WIRE],
                   message);
        if (shared_bytes_s > 0)
            ports_pass(port_of(replay, nodes + replay->ranks[message->from].node, place, lane),
                       port_of(replay, nodes + replay->ranks[message->to].node, place, lane),
                       begin_s, bytes / shared_bytes_s, message);
    }
}

/* A message that finds its lane busy goes by the plan of streams. */
static bool plan_choose(struct replay *replay, struct message *message, double now_s)
{
    enum replay_place place = place_of(replay, message);
    const struct plan_input *input = &replay->lanes->input[place];
    struct plan *const *plan = replay->lanes->plan[place];
    struct cost cost = {0};
    if (!input->lane_count)
        return fail_with(replay->error, "no lane leads from rank %u to rank %u on %s node",
                         message->from, message->to,
                         place == REPLAY_IN_NODE ? "the same" : "another");
    message->entry = plan_lookup(plan[COST_OF_MESSAGE], message->bytes);
    if (port_of(replay, message->from, place, message->entry->lanes[0])->out_s > now_s)
        message->entry = plan_lookup(plan[COST_OF_STREAM], message->bytes);
    (void) plan_predict(input, message->entry, message->bytes, &cost); /* the plan has looked */
    for (int stage = 0; stage < COST_STAGES; stage++)
        message->stage_s[stage] = cost_of_stage(&cost, (enum cost_stage) stage, message->bytes);
    return true;
}

/* --- messages --------------------------------------------------------------------------------- */

static void rank_goes_on(struct replay *replay, struct rank *rank);

/* Ends the rank's wait, if it waits and this is over. */
static void rank_wake(struct replay *replay, struct rank *rank)
{
    if (rank->waits_for == NONE)
        return;
    const struct message *message = &replay->messages[rank->waits_for];
    uint32_t begun = rank->of->events[rank->at].number;
    bool sent = rank->of->events[begun].kind == RECORD_SEND;
    double when_s = sent ? message->left_s : message->came_s;
    if (when_s == INFINITY)
        return;
    rank->waits_for = NONE;
    rank->clock_s = fmax(rank->clock_s, when_s) + (sent ? 0 : message->stage_s[COST_RECEIVER]);
    rank_goes_on(replay, rank);
}

/* One of the four latencies that the equation counts. */
static double latency_of(const struct message *message)
{
    return message->stage_s[COST_LATENCY] / 4;
}

static void rndv_pass(struct replay *replay, struct message *message, double begin_s)
{
    lanes_pass(replay, message, begin_s);
    message->left_s = message->came_s += 2 * latency_of(message);
    rank_wake(replay, &replay->ranks[message->from]);
    rank_wake(replay, &replay->ranks[message->to]);
}

/* Something has come for a rendezvous: the rank sees it in a call, this one or the next. */
static void rndv_look(struct replay *replay, uint32_t number)
{
    struct message *message = &replay->messages[number];
    struct rank *rank = &replay->ranks[message->answered ? message->from : message->to];
    enum model_calls calls = message->entry->protocol->calls;
    double now_s = fmax(message->due_s, rank->in_s);
    if (message->due_s > rank->out_s) {
        message->next = rank->first_due;
        rank->first_due = number;
    } else if (message->answered) {
        rndv_pass(replay, message, now_s);
    } else if (calls == MODEL_CALLS_RECEIVER || calls == MODEL_CALLS_EITHER) {
        rndv_pass(replay, message, now_s + latency_of(message));
    } else {
        message->answered = true;
        message->due_s = now_s + latency_of(message);
        rndv_look(replay, number);
    }
}

static void eager_pass(struct replay *replay, struct message *message, struct rank *rank)
{
    enum replay_place place = place_of(replay, message);
    const struct model_lane *lane = &replay->lanes->input[place].lanes[message->entry->lanes[0]];
    const struct model_lane_range *range = model_lane_range_at(lane, MODEL_BY_SEND, message->bytes);
    lanes_pass(replay, message, rank->clock_s);
    if (range && !replay->lanes->is_profile)
        message->came_s += range->latency_s;
    if (place == REPLAY_IN_NODE) /* the sender's processor copies */
        rank->clock_s = message->left_s;
    else if (lane->can & MODEL_CAN_DELIVER)
        message->left_s = message->came_s;
    else if (message->bytes)
        message->left_s -= message->stage_s[COST_WIRE] * KEPT_BYTES / (double) message->bytes;
    rank_wake(replay, &replay->ranks[message->to]);
}

static bool rank_sends(struct replay *replay, struct rank *rank, uint32_t number)
{
    struct message *message = &replay->messages[number];
    message->bytes = rank->of->events[rank->at].bytes;
    message->from = rank->of->head.rank;
    message->to = rank->of->events[rank->at].peer;
    if (message->to == message->from) {
        message->came_s = message->left_s = rank->clock_s;
        return true;
    }
    if (!plan_choose(replay, message, rank->clock_s))
        return false;
    rank->clock_s += message->stage_s[COST_SENDER];
    message->due_s = rank->clock_s + latency_of(message);
    if (message->entry->protocol->kind == MODEL_EAGER)
        eager_pass(replay, message, rank);
    else if (message->posted)
        rndv_look(replay, number);
    return true;
}

static void rank_receives(struct replay *replay, uint32_t number)
{
    struct message *message = &replay->messages[number];
    message->posted = true;
    if (message->entry && message->entry->protocol->kind == MODEL_RNDV)
        rndv_look(replay, number);
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* Looks at what has come, as every call does. */
static void rank_looks(struct replay *replay, struct rank *rank)
{
    uint32_t number = rank->first_due;
    rank->first_due = NONE;
    while (number != NONE) {
        uint32_t next = replay->messages[number].next;
        rndv_look(replay, number);
        number = next;
    }
}

/* On to the next event, after what the rank computes before it; MPI_Finalize answers the others. */
static void rank_goes_on(struct replay *replay, struct rank *rank)
{
    rank->out_s = rank->clock_s;
    if (++rank->at == rank->of->count) {
        rank->out_s = INFINITY;
        rank_looks(replay, rank);
        return;
    }
    double computes_s = 1e-9 * (double) rank->of->events[rank->at].computed_ns;
    rank->computes_s += computes_s;
    rank->clock_s += computes_s;
    heap_add(replay, rank);
}

static bool rank_step(struct replay *replay, struct rank *rank)
{
    const struct record_event *event = &rank->of->events[rank->at];
    bool waits = event->kind == RECORD_DONE;
    uint32_t number = replay->match.message[rank->of->first + (waits ? event->number : rank->at)];
    waits = waits && number != NONE;
    rank->waits_for = waits ? number : NONE;
    rank->in_s = rank->clock_s;
    rank->out_s = waits ? INFINITY : rank->clock_s;
    rank_looks(replay, rank); /* which may end the wait */
    if (waits) {
        rank_wake(replay, rank);
        return true;
    }
    if (number != NONE && event->kind == RECORD_RECEIVE)
        rank_receives(replay, number);
    if (number != NONE && event->kind == RECORD_SEND && !rank_sends(replay, rank, number))
        return false;
    rank_goes_on(replay, rank);
    return true;
}

/* A node is known by its first rank. */
static uint32_t node_of(const struct replay *replay, uint32_t rank)
{
    uint32_t most = replay->lanes->ranks_a_node, first = rank ? rank - 1 : 0;
    const char *host = replay->ranks[rank].of->head.host;
    if (most)
        return rank / most * most;
    if (first < rank && strcmp(replay->ranks[first].of->head.host, host) == 0)
        return replay->ranks[first].node;
    for (first = 0; strcmp(replay->ranks[first].of->head.host, host) != 0;)
        first++;
    return first;
}

static void ranks_begin(struct replay *replay, const struct recording *recording)
{
    double first_s = INFINITY;
    for (uint32_t i = 0; i < replay->rank_count; i++) {
        struct rank *rank = &replay->ranks[i];
        const struct recording_rank *of = rank->of = &recording->ranks[i];
        int64_t later_ns = (int64_t) (of->head.began_ns - recording->ranks[0].head.began_ns);
        rank->began_s = 1e-9 * ((double) of->events[0].time_ns + (double) later_ns);
        rank->node = node_of(replay, i);
        rank->first_due = rank->waits_for = NONE;
        first_s = fmin(first_s, rank->began_s);
    }
    for (uint32_t i = 0; i < replay->rank_count; i++) {
        replay->ranks[i].clock_s = replay->ranks[i].began_s -= first_s;
        heap_add(replay, &replay->ranks[i]);
    }
    for (uint32_t i = 0; i < replay->match.message_count; i++)
        replay->messages[i] = (struct message){.came_s = INFINITY, .left_s = INFINITY};
}

static bool ranks_run(struct replay *replay)
{
    while (replay->heap_count)
        if (!rank_step(replay, heap_take(replay)))
            return false;
    for (uint32_t i = 0; i < replay->rank_count; i++)
        if (replay->ranks[i].waits_for != NONE)
            return fail_with(replay->error,
                             "rank %u waits for good at event %u: with these lanes the job counts "
                             "on sends that end before their receive begins",
                             i, replay->ranks[i].at);
    return true;
}

/* --- the job ---------------------------------------------------------------------------------- */

static void result_fill(const struct replay *replay, struct replay_result *result)
{
    for (uint32_t i = 0; i < replay->rank_count; i++) {
        const struct rank *rank = &replay->ranks[i];
        const struct record_event *first = rank->of->events, *last = first + rank->of->count - 1;
        double spent_s = 1e-9 * ((double) last->time_ns - (double) first->time_ns);
        result->ranks[i] =
            (struct replay_rank){.computes_s = rank->computes_s,
                                 .waited_s = fmax(0, spent_s - rank->computes_s),
                                 .waits_s = rank->clock_s - rank->began_s - rank->computes_s};
        result->took_s = fmax(result->took_s, rank->began_s + spent_s);
        result->takes_s = fmax(result->takes_s, rank->clock_s);
        result->nodes += rank->node == i;
    }
    result->messages = replay->match.message_count;
    result->unmatched = replay->match.unmatched;
    for (uint32_t i = 0; i < replay->match.message_count; i++)
        result->bytes += (double) replay->messages[i].bytes;
}

static bool replay_make(struct replay *replay, const struct recording *recording)
{
    uint32_t ranks = replay->rank_count = recording->rank_count;
    replay->ranks = calloc(ranks, sizeof(*replay->ranks));
    replay->heap = calloc(ranks, sizeof(*replay->heap));
    replay->ports = calloc(2 * (size_t) ranks, PORTS * sizeof(struct port));
    if (match_make(recording, &replay->match))
        replay->messages = calloc(replay->match.message_count + 1u, sizeof(*replay->messages));
    return replay->ranks && replay->heap && replay->ports && replay->messages;
}

bool replay_run(const struct recording *recording, const struct replay_lanes *lanes,
                struct replay_result *result, struct error_text *error)
{
    struct replay replay = {.lanes = lanes, .error = error};
    *result =
        (struct replay_result){.ranks = calloc(recording->rank_count, sizeof(*result->ranks))};
    bool is_good = (result->ranks && replay_make(&replay, recording)) ||
                   fail_with(error, "there is no memory to replay");
    if (is_good) {
        ranks_begin(&replay, recording);
        is_good = ranks_run(&replay);
    }
    if (is_good)
        result_fill(&replay, result);
    else
        replay_free(result);
    free(replay.match.message);
    free(replay.messages);
    free(replay.ranks);
    free(replay.heap);
    free(replay.ports);
    return is_good;
}

void replay_free(struct replay_result *result)
{
    free(result->ranks);
    result->ranks = NULL;
}
