/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of btl/sock in all orders of events: both ends call, are called, write, read and
 * acknowledge, while connections break with any part of what is on its way lost, calls are given up
 * or doubted, and greetings come late. In no reachable state does a frame come twice or out of
 * order, is one acknowledged that was not written, or do both ends wait while something is not
 * received. The rules are those of btl/sock/link.c, written down again without sockets. */
#include "check.h"
#include "test/unit/walk.h"

#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 4
#define QUEUE       2 /* messages on their way; a further one waits */
#define FRAMES      2 /* that each end sends */
#define CALLS_MOST  3

enum role {
    NOTHING,
    BACKLOG, /* has been called, and has not looked */
    GUEST,   /* has said its challenge */
    CALLER,  /* waits for a challenge, */
    HELLO_SAID /* and for a welcome */,
    LINK,
    CLOSED
};

enum kind { CHALLENGE, HELLO, WELCOME, LATER, DATA, ACK };

struct message {
    uint8_t kind, number, have, call, heard;
};

struct connection {
    uint8_t role[2];
    uint8_t count[2]; /* toward each end */
    uint8_t is_broken;
    struct message queue[2][QUEUE];
};

struct end {
    uint8_t link, caller; /* connections, from 1 */
    uint8_t calls, their_calls, linked_call;
    uint8_t have, told;
    uint8_t next, first; /* frame to be written; not known to be received */
    uint8_t most;        /* the last that was ever written */
};

struct state {
    struct end ends[2];
    struct connection connections[CONNECTIONS];
    uint8_t used;
    uint8_t breaks, doubts, drops; /* still to come */
    uint8_t is_exhausted;          /* one more call would be needed */
};

static const char *wrong;
/* A fault on purpose: an end without a connection takes greetings that came late, and one that goes
 * back forgets what it had written. */
static bool forgets;

/* --- connections --- */

static void say(struct state *state, int end, int c, struct message message)
{
    struct connection *connection = &state->connections[c];

    if (connection->role[!end] == CLOSED || connection->is_broken)
        return; /* it is lost */
    connection->queue[!end][connection->count[!end]++] = message;
}

static bool has_room(const struct state *state, int end, int c)
{
    return state->connections[c].count[!end] < QUEUE;
}

static void close_one(struct state *state, int end, int c)
{
    struct connection *connection = &state->connections[c];

    connection->role[end] = CLOSED;
    connection->count[end] = 0;
    memset(connection->queue[end], 0, sizeof(connection->queue[end]));
    if (connection->role[!end] == CLOSED || connection->role[!end] == NOTHING) {
        connection->count[!end] = 0;
        memset(connection->queue[!end], 0, sizeof(connection->queue[!end]));
    }
}

static struct message take(struct state *state, int end, int c)
{
    struct connection *connection = &state->connections[c];
    struct message first = connection->queue[end][0];

    connection->count[end]--;
    memmove(&connection->queue[end][0], &connection->queue[end][1],
            (QUEUE - 1) * sizeof(struct message));
    memset(&connection->queue[end][QUEUE - 1], 0, sizeof(struct message));
    return first;
}

/* --- frames --- */

static void acknowledged(struct end *me, uint8_t have)
{
    if (have > (forgets ? me->next - 1 : me->most))
        wrong = "what was not written is acknowledged";
    if (have + 1 > me->first)
        me->first = (uint8_t) (have + 1);
    if (me->next < me->first)
        me->next = me->first;
}

static void frame_read(struct end *me, struct message message)
{
    acknowledged(me, message.have);
    if (message.kind != DATA)
        return;
    if (message.number != me->have + 1)
        wrong = "a frame comes twice or out of order";
    me->have = message.number;
}

/* What came over the old connection is read before it is closed. */
static void link_close(struct state *state, int end)
{
    struct end *me = &state->ends[end];
    int c = me->link - 1;

    if (c < 0)
        return;
    while (state->connections[c].count[end] > 0)
        frame_read(me, take(state, end, c));
    close_one(state, end, c);
    me->link = 0;
}

static void link_begin(struct state *state, int end, int c, uint8_t have)
{
    struct end *me = &state->ends[end];

    acknowledged(me, have);
    me->next = me->first;
    me->link = (uint8_t) (c + 1);
    state->connections[c].role[end] = LINK;
}

static void caller_drop(struct state *state, int end)
{
    struct end *me = &state->ends[end];

    if (me->caller)
        close_one(state, end, me->caller - 1);
    me->caller = 0;
}

/* --- events: true where it can happen --- */

static bool needs_link(const struct end *me, const struct end *other)
{
    /* A break that was seen is followed by a call even where nothing is to be sent. */
    return me->first <= FRAMES || other->first <= FRAMES;
}

static bool call(struct state *state, int end, bool doubts)
{
    struct end *me = &state->ends[end];

    if (me->caller || (me->link && !doubts) || !needs_link(me, &state->ends[!end]) ||
        (doubts && (!me->link || state->doubts == 0)))
        return false;
    if (state->used == CONNECTIONS || me->calls == CALLS_MOST) {
        state->is_exhausted |= !doubts;
        return false;
    }
    state->doubts = (uint8_t) (state->doubts - doubts);
    int c = state->used++;
    state->connections[c].role[end] = CALLER;
    state->connections[c].role[!end] = BACKLOG;
    me->caller = (uint8_t) (c + 1);
    return true;
}

static bool accept_one(struct state *state, int end, int c)
{
    if (state->connections[c].role[end] != BACKLOG)
        return false;
    state->connections[c].role[end] = GUEST;
    say(state, end, c, (struct message){.kind = CHALLENGE});
    return true;
}

static void hello_say(struct state *state, int end, int c)
{
    struct end *me = &state->ends[end];

    link_close(state, end);
    state->connections[c].role[end] = HELLO_SAID;
    say(state, end, c,
        (struct message){
            .kind = HELLO, .have = me->have, .call = ++me->calls, .heard = me->their_calls});
}

/* `insists`: our own call is young. */
static void hello_heard(struct state *state, int end, int c, struct message hello, bool insists)
{
    struct end *me = &state->ends[end];
    bool is_outdated = hello.heard < me->linked_call && !(forgets && !me->link);
    bool ours_counts = me->caller && end == 0 && insists;

    if (hello.call <= me->their_calls || is_outdated || ours_counts) {
        say(state, end, c, (struct message){.kind = LATER});
        close_one(state, end, c);
        return;
    }
    me->their_calls = hello.call;
    me->linked_call = 0;
    caller_drop(state, end);
    link_close(state, end);
    say(state, end, c, (struct message){.kind = WELCOME, .have = me->have});
    link_begin(state, end, c, hello.have);
}

static void welcome_heard(struct state *state, int end, int c, struct message welcome)
{
    struct end *me = &state->ends[end];

    if (welcome.kind == LATER) {
        caller_drop(state, end);
        return;
    }
    me->caller = 0;
    me->linked_call = me->calls;
    link_begin(state, end, c, welcome.have);
}

/* The next message of a connection, or its end. */
static bool look(struct state *state, int end, int c, bool insists)
{
    struct connection *connection = &state->connections[c];
    struct end *me = &state->ends[end];
    int role = connection->role[end];

    if (role == NOTHING || role == CLOSED || role == BACKLOG)
        return false;
    if (connection->count[end] == 0) {
        if (!connection->is_broken && connection->role[!end] != CLOSED)
            return false;
        if (me->link == c + 1)
            me->link = 0;
        if (me->caller == c + 1)
            me->caller = 0;
        close_one(state, end, c);
        return true;
    }
    struct message message = take(state, end, c);
    if (role == CALLER)
        hello_say(state, end, c);
    else if (role == GUEST)
        hello_heard(state, end, c, message, insists);
    else if (role == HELLO_SAID)
        welcome_heard(state, end, c, message);
    else
        frame_read(me, message);
    return true;
}

static bool write_one(struct state *state, int end)
{
    struct end *me = &state->ends[end];

    if (!me->link || me->next > FRAMES || !has_room(state, end, me->link - 1))
        return false;
    say(state, end, me->link - 1,
        (struct message){.kind = DATA, .number = me->next, .have = me->have});
    me->told = me->have;
    if (me->most < me->next)
        me->most = me->next;
    me->next++;
    return true;
}

static bool acknowledge(struct state *state, int end)
{
    struct end *me = &state->ends[end];

    if (!me->link || me->told == me->have || !has_room(state, end, me->link - 1))
        return false;
    say(state, end, me->link - 1, (struct message){.kind = ACK, .have = me->have});
    me->told = me->have;
    return true;
}

/* So many messages toward each end are read all the same. */
static bool connection_break(struct state *state, int c, int keeps[2])
{
    struct connection *connection = &state->connections[c];

    if (state->breaks == 0 || c >= state->used || connection->is_broken ||
        keeps[0] > connection->count[0] || keeps[1] > connection->count[1] ||
        (connection->role[0] == CLOSED && connection->role[1] == CLOSED))
        return false;
    state->breaks--;
    connection->is_broken = 1;
    for (int end = 0; end < 2; end++) {
        memset(&connection->queue[end][keeps[end]], 0,
               (size_t) (QUEUE - keeps[end]) * sizeof(struct message));
        connection->count[end] = (uint8_t) keeps[end];
        if (connection->role[end] == BACKLOG) { /* the kernel takes it off */
            connection->role[end] = CLOSED;
            connection->count[end] = 0;
        }
    }
    return true;
}

static bool call_dropped(struct state *state, int end)
{
    if (!state->ends[end].caller || state->drops == 0)
        return false;
    state->drops--;
    caller_drop(state, end);
    return true;
}

/* --- all of them --- */

#define BREAKS (CONNECTIONS * (QUEUE + 1) * (QUEUE + 1))
#define LOOKS  (CONNECTIONS * 2 * 2)

enum {
    CALL = 0,
    DOUBT = CALL + 2,
    ACCEPT = DOUBT + 2,
    LOOK = ACCEPT + 2 * CONNECTIONS,
    WRITE = LOOK + LOOKS,
    ACKNOWLEDGE = WRITE + 2,
    DROP = ACKNOWLEDGE + 2,
    BREAK = DROP + 2,
    EVENTS = BREAK + BREAKS
};

static bool happen(struct state *state, int event)
{
    if (event < DOUBT)
        return call(state, event - CALL, false);
    if (event < ACCEPT)
        return call(state, event - DOUBT, true);
    if (event < LOOK)
        return accept_one(state, (event - ACCEPT) % 2, (event - ACCEPT) / 2);
    if (event < WRITE)
        return look(state, (event - LOOK) % 2, (event - LOOK) / 4, (event - LOOK) / 2 % 2);
    if (event < ACKNOWLEDGE)
        return write_one(state, event - WRITE);
    if (event < DROP)
        return acknowledge(state, event - ACKNOWLEDGE);
    if (event < BREAK)
        return call_dropped(state, event - DROP);
    int which = event - BREAK;
    int keeps[2] = {which % (QUEUE + 1), which / (QUEUE + 1) % (QUEUE + 1)};
    return connection_break(state, which / ((QUEUE + 1) * (QUEUE + 1)), keeps);
}

static bool goes_on_by_itself(uint32_t event)
{
    return event < DOUBT || (event >= ACCEPT && event < DROP);
}

static struct state now;

static bool now_happen(uint32_t event)
{
    struct state next = now;
    if (!happen(&next, (int) event))
        return false;
    if (wrong)
        walk_fail(wrong);
    now = next;
    return true;
}

/* Or it would go on with a call more than there are here. */
static bool is_over(void)
{
    struct state next = now;
    (void) call(&next, 0, false);
    (void) call(&next, 1, false);
    return (now.ends[0].first > FRAMES && now.ends[1].first > FRAMES) || next.is_exhausted;
}

/* What is wrong in one of the orders, or null. */
static const char *walk_from(uint8_t breaks, uint8_t doubts, uint8_t drops)
{
    static const struct walk_events model = {&now,       sizeof(now),       1u << 22, EVENTS,
                                             now_happen, goes_on_by_itself, is_over};
    const struct end fresh = {.next = 1, .first = 1};

    memset(&now, 0, sizeof(now));
    wrong = NULL;
    now.breaks = breaks;
    now.doubts = doubts;
    now.drops = drops;
    now.ends[0] = now.ends[1] = fresh;
    (void) walk_events(&model);
    printf("%u breaks, %u doubts, %u drops: %llu states\n", breaks, doubts, drops,
           (unsigned long long) walk.states);
    return walk.failure;
}

static void holds(uint8_t breaks, uint8_t doubts, uint8_t drops)
{
    const char *why = walk_from(breaks, doubts, drops);

    CHECK(!why, "%u breaks, %u doubts, %u drops: %s", breaks, doubts, drops, why);
}

int main(void)
{
    if (!walk_is_wanted()) {
        printf("left out: another build walks it\n");
        return 77;
    }
    holds(0, 0, 0);
    holds(0, 0, 1);
    holds(0, 1, 0);
    holds(1, 0, 0);
    if (check_is_long())
        holds(0, 1, 1);
    forgets = true;
    CHECK(walk_from(0, 1, 0), "a fault on purpose is not found");
    return check_end();
}
