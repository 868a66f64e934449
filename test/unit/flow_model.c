/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control in all orders of events: a few messages, every order in which they can be received,
 * every order in which messages and limits can arrive, small windows, a pool that others empty and
 * fill at any moment. In no reachable state do all wait; memory stays within what was
 * promised; nothing is counted twice. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/flow.h"
#include "test/unit/walk.h"

#define MESSAGES_MAX 5
#define CREDITS_MAX  3 /* limits under way at once; a further one waits for room */

struct setting {
    int count;
    uint32_t window, headers, pool;
    uint32_t start; /* of all marks, to see them wrap */
    size_t bytes[MESSAGES_MAX];
    int receives[MESSAGES_MAX]; /* the receiver blocks on this message first, ... */
    bool sends_block;           /* a send ends before the next one begins */
};

/* All that is known anywhere. Compared byte by byte. */
struct state {
    struct flow_out out;
    struct flow_in in;
    struct flow_pool pool;
    uint32_t others; /* what other senders have of it */
    uint32_t drawn;
    uint32_t marks[MESSAGES_MAX];
    uint8_t next;    /* message to be sent */
    uint8_t waiting; /* bits of messages, as all below */
    uint8_t under_way;
    uint8_t is_rts;
    uint8_t early; /* came before an older one */
    uint8_t held;  /* wait for their receives */
    uint8_t received;
    uint8_t in_order; /* how many came, without a gap */
    uint8_t receive;  /* the one that blocks */
    bool due;
    bool starved; /* it is looked whether the receive that blocks may wait for room */
    bool was_extended;
    uint8_t credits;
    uint32_t limits[CREDITS_MAX][2];
};

static uint8_t bit(int message)
{
    return (uint8_t) (1u << message);
}

static uint32_t received_cost(const struct setting *setting, const struct state *state, int message)
{
    return flow_cost(state->is_rts & bit(message) ? 0 : setting->bytes[message]);
}

/* --- what can happen -----------------------------------------------------------------------------
 */

static void message_try(const struct setting *setting, struct state *state, int message)
{
    switch (flow_try(&state->out, state->marks[message], flow_cost(setting->bytes[message]))) {
    case FLOW_GO_AS_RTS:
        state->is_rts |= bit(message);
        /* fall through */
    case FLOW_GO:
        state->waiting &= (uint8_t) ~bit(message);
        state->under_way |= bit(message);
        return;
    case FLOW_WAIT:
        state->waiting |= bit(message);
        return;
    }
}

static bool send_next(const struct setting *setting, struct state *state)
{
    bool is_blocked = setting->sends_block &&
                      (state->waiting ||
                       (state->is_rts & (uint8_t) ~state->received)); /* a RTS is answered late */
    if (state->next == setting->count || is_blocked)
        return false;
    int message = state->next++;
    state->drawn += flow_cost(setting->bytes[message]);
    state->marks[message] = state->drawn;
    message_try(setting, state, message);
    return true;
}

static void receive_matches(const struct setting *setting, struct state *state)
{
    while (state->receive < setting->count &&
           state->held & bit(setting->receives[state->receive])) {
        int message = setting->receives[state->receive++];
        state->held &= (uint8_t) ~bit(message);
        state->received |= bit(message);
        state->due |= flow_release(&state->in, received_cost(setting, state, message));
    }
}

static bool message_arrives(const struct setting *setting, struct state *state, int message)
{
    if (!(state->under_way & bit(message)))
        return false;
    state->under_way &= (uint8_t) ~bit(message);
    state->early |= bit(message);
    while (state->early & bit(state->in_order)) {
        int next = state->in_order++;
        state->early &= (uint8_t) ~bit(next);
        if (state->receive < setting->count && setting->receives[state->receive] == next) {
            state->receive++;
            state->received |= bit(next);
            state->due |= flow_matched(&state->in, received_cost(setting, state, next));
        } else {
            state->held |= bit(next);
            state->due |= flow_hold(&state->in, &state->pool, received_cost(setting, state, next));
        }
        state->starved |= state->in.held && flow_is_exhausted(&state->in);
        receive_matches(setting, state);
    }
    return true;
}

static bool limits_granted(struct state *state)
{
    if (!state->due || state->credits == CREDITS_MAX)
        return false;
    flow_grant(&state->in, &state->pool, &state->limits[state->credits][0],
               &state->limits[state->credits][1]);
    state->credits++;
    state->due = false;
    return true;
}

static bool limits_arrive(const struct setting *setting, struct state *state, int which)
{
    if (which >= state->credits)
        return false;
    CHECK(flow_is_possible(&state->out, state->drawn, state->limits[which][0],
                           state->limits[which][1]),
          "true limits are not believed");
    flow_moved(&state->out, state->drawn, state->limits[which][0], state->limits[which][1]);
    state->credits--;
    memmove(state->limits[which], state->limits[which + 1],
            (size_t) (state->credits - which) * sizeof(state->limits[0]));
    memset(state->limits[state->credits], 0, sizeof(state->limits[0]));
    for (int message = 0; message < setting->count; message++) {
        if (!(state->waiting & bit(message)))
            continue;
        message_try(setting, state, message);
        if (state->waiting & bit(message))
            break; /* the first that waits holds back the others */
    }
    return true;
}

/* The receive that blocks may wait for one that has no room. */
static bool receiver_extends(const struct setting *setting, struct state *state)
{
    if (!state->starved || state->receive == setting->count || state->due || state->credits > 0)
        return false;
    state->starved = flow_is_exhausted(&state->in);
    if (!state->starved)
        return true;
    flow_extend(&state->in);
    state->was_extended = state->due = true;
    struct state granted;
    uint32_t limit, headers;
    memcpy(&granted, state, sizeof(granted));
    flow_grant(&granted.in, &granted.pool, &limit, &headers);
    CHECK(headers - state->in.granted_headers >= FLOW_MESSAGE_UNITS &&
              flow_is_within(state->in.granted_headers, headers),
          "more room is granted, and there is no more: %u after %u", headers,
          state->in.granted_headers);
    return true;
}

#define OTHERS_CHANGE 3

/* Other senders come, or go: nothing that anybody may have to wait for. */
static bool others_change(struct state *state)
{
    uint32_t left = state->pool.left;
    state->pool.left = state->others;
    state->others = left;
    return left != state->pool.left;
}

/* Event number `event`; false: it cannot happen now. */
static bool happen(const struct setting *setting, struct state *state, int event)
{
    if (event == 0)
        return send_next(setting, state);
    if (event == 1)
        return limits_granted(state);
    if (event == 2)
        return receiver_extends(setting, state);
    if (event == OTHERS_CHANGE)
        return others_change(state);
    if (event < 4 + CREDITS_MAX)
        return limits_arrive(setting, state, event - 4);
    return message_arrives(setting, state, event - 4 - CREDITS_MAX);
}

#define EVENTS (4 + CREDITS_MAX + MESSAGES_MAX)

/* --- all states
 * -----------------------------------------------------------------------------------
 */

static struct {
    struct state *states;
    uint32_t *table; /* of indices + 1 */
    uint32_t count, room;
} seen;

static uint64_t hash(const struct state *state)
{
    const unsigned char *bytes = (const unsigned char *) state;
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof(*state); i++)
        value = (value ^ bytes[i]) * 0x100000001b3u;
    return value ^ value >> 29;
}

static void seen_add(const struct state *state)
{
    uint64_t at = hash(state) % (seen.room * 2u);
    while (seen.table[at]) {
        if (memcmp(&seen.states[seen.table[at] - 1], state, sizeof(*state)) == 0)
            return;
        at = (at + 1) % (seen.room * 2u);
    }
    if (seen.count == seen.room) {
        CHECK(false, "more than %u states", seen.room);
        exit(1);
    }
    seen.states[seen.count++] = *state;
    seen.table[at] = seen.count;
}

static void state_check(const struct setting *setting, const struct state *state, bool can_go_on)
{
    uint32_t beyond = state->in.matched + state->in.held - state->in.granted_headers;
    CHECK(beyond == 0 || (int32_t) beyond < 0, "%u units more came than were promised", beyond);
    uint32_t promised = state->in.granted_headers - state->in.matched;
    CHECK(state->was_extended || promised <= state->in.window + state->in.headers,
          "%u units are promised with a window of %u and %u", promised, state->in.window,
          state->in.headers);
    CHECK(state->pool.left + state->others + state->in.window == setting->pool + setting->window,
          "a pool of %u became one of %u, %u and a window of %u", setting->pool, state->pool.left,
          state->others, state->in.window);
    if (can_go_on)
        return;
    CHECK(state->receive == setting->count && !state->waiting,
          "window %u and %u, bytes %zu %zu %zu %zu: all wait after %d receives", setting->window,
          setting->headers, setting->bytes[0], setting->bytes[1], setting->bytes[2],
          setting->bytes[3], state->receive);
    CHECK(state->in.held == 0 && state->in.matched == state->drawn - state->out.refunded,
          "%u units were sent, %u counted", state->drawn - state->out.refunded, state->in.matched);
}

static uint32_t explore(const struct setting *setting)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    flow_in_init(&first.in, setting->window, setting->headers);
    first.pool.left = setting->pool;
    first.in.matched = first.in.granted = first.drawn = setting->start;
    first.in.granted_limit += setting->start;
    first.in.granted_headers += setting->start;
    first.out.limit = setting->start + setting->window;
    first.out.headers = first.out.limit + setting->headers;
    seen.count = 0;
    memset(seen.table, 0, seen.room * 2u * sizeof(*seen.table));
    seen_add(&first);
    for (uint32_t i = 0; i < seen.count; i++) {
        bool can_go_on = false;
        for (int event = 0; event < EVENTS; event++) {
            struct state state;
            memcpy(&state, &seen.states[i], sizeof(state));
            if (!happen(setting, &state, event))
                continue;
            can_go_on |= event != OTHERS_CHANGE;
            seen_add(&state);
        }
        state_check(setting, &seen.states[i], can_go_on);
    }
    return seen.count;
}

/* --- all settings
 * ---------------------------------------------------------------------------------
 */

static uint64_t states_in_all;

static void every_order(struct setting *setting, int fixed)
{
    if (fixed == setting->count) {
        for (int blocks = 0; blocks < 2; blocks++) {
            /* Blocking sends end only if their receives come in an order that allows it. */
            bool in_order = true;
            for (int i = 0; i < setting->count; i++)
                in_order = in_order && setting->receives[i] == i;
            setting->sends_block = blocks;
            if (!blocks || in_order)
                states_in_all += explore(setting);
        }
        return;
    }
    for (int i = fixed; i < setting->count; i++) {
        int swapped = setting->receives[fixed];
        setting->receives[fixed] = setting->receives[i];
        setting->receives[i] = swapped;
        every_order(setting, fixed + 1);
        swapped = setting->receives[fixed];
        setting->receives[fixed] = setting->receives[i];
        setting->receives[i] = swapped;
    }
}

static void no_order_of_events_makes_all_wait(int count)
{
    static const uint32_t windows[] = {0, 13, 60};
    static const uint32_t headers[] = {12, 30};
    static const uint32_t pools[] = {0, 100};
    static const uint32_t starts[] = {0, UINT32_MAX - 20};
    for (size_t w = 0; w < 3; w++)
        for (size_t h = 0; h < 2; h++)
            for (size_t s = 0; s < 4; s++)
                for (unsigned sizes = 0; sizes < 1u << count; sizes++) {
                    struct setting setting = {.count = count,
                                              .window = windows[w],
                                              .headers = headers[h],
                                              .pool = pools[s / 2],
                                              .start = starts[s % 2]};
                    for (int i = 0; i < count; i++) {
                        setting.bytes[i] = sizes >> i & 1 ? 2000 : 8;
                        setting.receives[i] = i;
                    }
                    every_order(&setting, 0);
                }
}

/* A large message stays, those that meet their receives at once take the rest of the room, and are
 * too few for the sender to be granted them. */
static void matches_use_up_the_limits(void)
{
    struct setting setting = {.count = 4,
                              .window = 80,
                              .headers = 20,
                              .bytes = {4000, 8, 8, 8},
                              .receives = {0, 1, 2, 3}};
    every_order(&setting, 0);
}

static void windows_keep_the_bound(void)
{
    static const uint64_t bounds[] = {0, 1 << 16, 1 << 20, 256 << 20, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        for (uint32_t peers = 1; peers < 100000; peers = peers * 3 + 1) {
            struct flow_pool pool;
            uint32_t window = flow_divide(bounds[i], peers, &pool);
            uint64_t bytes = ((uint64_t) window + flow_headers(window)) * FLOW_UNIT_BYTES;
            uint64_t all = bytes * peers + (uint64_t) pool.left * FLOW_UNIT_BYTES;
            uint64_t least = 64 * FLOW_MESSAGE_UNITS * FLOW_UNIT_BYTES; /* some RTS go always */
            CHECK(all <= bounds[i] || bytes == least,
                  "%u windows of %llu bytes and a pool are more than %llu", peers,
                  (unsigned long long) bytes, (unsigned long long) bounds[i]);
            CHECK(all >= bounds[i] / 10 * 9 - 1000 || bounds[i] >> 36 ||
                      bounds[i] < least * peers * 10,
                  "%u windows of %llu bytes and a pool leave much of %llu", peers,
                  (unsigned long long) bytes, (unsigned long long) bounds[i]);
        }
}

/* Senders that are granted more again and again, each with a message that waits. */
static void senders_share_the_pool_evenly(void)
{
    enum { SENDERS = 5, POOL = 60000 };
    struct flow_pool pool = {.left = POOL};
    struct flow_in in[SENDERS];
    uint32_t limit, headers, all = 0;
    for (int i = 0; i < SENDERS; i++)
        flow_in_init(&in[i], 100, 12);
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < SENDERS; i++) {
            flow_matched(&in[i], in[i].window / 2);
            flow_grant(&in[i], &pool, &limit, &headers);
        }
    for (int i = 0; i < SENDERS; i++) {
        uint32_t share = in[i].window - in[i].least;
        CHECK(share > POOL / (SENDERS + 1) * 9 / 10 && share < POOL / (SENDERS + 1) * 11 / 10,
              "one of %d has %u of %d", SENDERS, share, POOL);
        all += share;
        flow_end(&in[i], &pool);
    }
    CHECK(pool.left == POOL, "%u of %d are left at the end, %u were shared", pool.left, POOL, all);
}

/* One that parts, whose share others take, and that comes again. */
static void what_was_granted_is_not_taken_back(void)
{
    struct flow_pool pool = {.left = 1000};
    struct flow_in in;
    uint32_t limit, headers, before;
    flow_in_init(&in, 100, 12);
    flow_matched(&in, 60);
    flow_grant(&in, &pool, &before, &headers);
    CHECK(before > 160, "it was granted %u, and the pool is full", before);
    flow_end(&in, &pool);
    CHECK(pool.left == 1000, "%u of 1000 are left when it has parted", pool.left);
    pool.left = 0;
    flow_matched(&in, 10);
    flow_grant(&in, &pool, &limit, &headers);
    CHECK(limit == before, "it was granted %u, and now %u", before, limit);
    CHECK(headers >= limit, "fewer messages may come as RTS, %u, than as they are, %u", headers,
          limit);
}

/* A receive that waits all the time does not do away with the bound at once. */
static void a_wait_lets_little_come(void)
{
    struct flow_pool pool = {.left = 0};
    struct flow_in in;
    uint32_t limit, headers;
    flow_in_init(&in, 1 << 20, 1 << 17);
    in.held = (1 << 20) + (1 << 17);
    for (uint32_t i = 1; i <= 3; i++) {
        CHECK(flow_is_exhausted(&in), "%u units came, and it may go on", in.held);
        flow_extend(&in);
        flow_grant(&in, &pool, &limit, &headers);
        CHECK(headers == (1 << 20) + (1 << 17) + i * FLOW_EXTENSION_UNITS, "it is granted %u",
              headers);
        in.held = headers;
    }
}

int main(void)
{
    seen.room = 1u << 19;
    seen.states = malloc(seen.room * sizeof(*seen.states));
    seen.table = malloc(seen.room * 2u * sizeof(*seen.table));
    windows_keep_the_bound();
    senders_share_the_pool_evenly();
    what_was_granted_is_not_taken_back();
    a_wait_lets_little_come();
    matches_use_up_the_limits();
    const int most = check_is_long() ? 5 : walk_is_wanted() ? 4 : 3;
    for (int count = 1; count <= most; count++)
        no_order_of_events_makes_all_wait(count);
    printf("%llu states\n", (unsigned long long) states_in_all);
    free(seen.states);
    free(seen.table);
    return check_end();
}
