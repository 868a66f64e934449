/* SPDX-License-Identifier: BSD-3-Clause */
/* How the two ends of a lane of btl/sock agree on what has arrived when it is given up, and what
 * returns to the PML, in all orders of events. No message arrives twice, or by the lane as well as
 * returned; and from each state, if nothing more goes wrong, all can arrive while neither end
 * waits. The rules are those of btl/sock, written down again under the names of its functions; of
 * calls at the same time see sock_model.c. */
#include "check.h"
#include "test/unit/walk.h"

#define CONNECTIONS 2
#define WORDS       3 /* on their way to one end */

enum kind { HELLO = 1, WELCOME, LATER, DATA, ASK, DONE };
enum role { CLOSED, GUEST, CALLER, LINK, NOTES };
enum peer_state { UP, FAILED };

struct word {
    uint8_t kind, session, have, past_session, past_have;
    uint8_t number; /* of a call or frame */
    uint8_t heard;  /* the last call of the other end; or which message it is */
};

struct connection {
    struct word words[2][WORDS]; /* toward each end */
    uint8_t count[2], role[2], is_broken;
};

struct end { /* as in btl/sock/sock.h */
    uint8_t state, failure, fenced, was_linked, their_have, have;
    uint8_t first, next, last; /* numbers: the oldest kept, the next to be written, the last */
    uint8_t session, past_session, past_have, calls, their_calls, linked_call;
    uint8_t before;                /* messages of earlier sessions */
    uint8_t arrived, returned;     /* bits of its messages */
    uint8_t may_send, may_give_up; /* so often still */
};

static struct {
    struct connection connections[CONNECTIONS + 1]; /* the last one: the other lane, with notes */
    struct end ends[2];
    uint8_t may_break;
} now;
static struct connection *const notes = &now.connections[CONNECTIONS];
static struct end *me;        /* to whom something happens, */
static uint8_t my;            /* and which of the two it is; */
static struct connection *at; /* where, if it is about one */

/* What is wrong on purpose. */
enum fault { NONE, FORGETS, RETURNS_EARLY, ANSWERS_EARLY, IS_SILENT, HEARS_OLD, CALLS_ON, FAULTS };
static enum fault fault;

/* --- connections --- */

static struct connection *mine(enum role role)
{
    for (struct connection *c = now.connections; c < notes; c++)
        if (c->role[my] == role && (role || !c->role[!my]))
            return c;
    return NULL;
}

static struct word take(void)
{
    struct word *words = at->words[my], first = words[0];
    memmove(words, words + 1, sizeof(at->words[my]) - sizeof(first));
    memset(&words[--at->count[my]], 0, sizeof(first));
    return first;
}

/* Toward an end that is closed, or without room, it is lost. */
static void say(struct connection *connection, struct word word)
{
    uint8_t *count = &connection->count[!my];
    if (connection->role[!my] && *count < WORDS)
        connection->words[!my][(*count)++] = word;
}

/* What was not read came too late. */
static void close_one(struct connection *connection)
{
    if (!connection)
        return;
    connection->role[my] = connection->count[my] = 0;
    memset(connection->words[my], 0, sizeof(connection->words[my]));
    if (!connection->role[!my])
        memset(connection, 0, sizeof(*connection));
}

static void received(uint8_t have) /* sock_queue_received */
{
    if (have > me->last)
        walk_fail("an end is said to have what was not sent");
    if (have >= me->first)
        me->first = have + 1;
    me->next = me->next < me->first ? me->first : me->next;
}

static void frame_read(struct word frame)
{
    struct end *sender = &now.ends[!my];
    received(frame.have);
    if (frame.number != ++me->have || (sender->arrived >> frame.heard & 1))
        walk_fail("a message arrives twice or out of order");
    if (sender->returned >> frame.heard & 1)
        walk_fail("a message arrives that was returned");
    sender->arrived |= 1u << frame.heard;
}

static void link_begin(uint8_t have)
{
    at->role[my] = LINK;
    me->was_linked = 1;
    received(have);
    me->next = me->first;
}

/* --- sessions --- */

static void fenced(uint8_t have) /* sock_peer_fenced */
{
    me->their_have = me->fenced ? me->their_have : have;
    me->fenced = 1;
}

static bool is_unfenced(const struct end *end) /* sock_peer_is_unfenced */
{
    return end->state == FAILED && end->was_linked && !end->fenced;
}

static void begin(void) /* sock_peer_begin */
{
    me->before += me->last;
    me->past_have = me->was_linked ? me->have : me->past_have;
    me->past_session = me->was_linked ? me->session : me->past_session;
    memset(me, 0, offsetof(struct end, session));
    me->session++;
    me->first = me->next = 1;
}

static void session_heard(struct word heard)
{
    bool tells = heard.past_session == me->session && fault != FORGETS;
    if (heard.session > me->session && me->was_linked) {
        fenced(tells ? heard.past_have : 0);
        me->failure = 1;
    } else if (heard.session > me->session) {
        me->session = heard.session;
    }
}

static struct word word_of(uint8_t kind) /* greeting_fill, note_write */
{
    return (struct word){kind, me->session, me->have, me->past_session, me->past_have, 0, 0};
}

static bool hello_is_good(struct word hello)
{
    bool is_old = hello.number <= me->their_calls || hello.heard < me->linked_call;
    session_heard(hello);
    if (hello.session != me->session || (is_old && fault != HEARS_OLD))
        return false;
    if (me->state == FAILED)
        fenced(hello.have);
    return me->state == UP && !me->failure;
}

static void hello_heard(struct word hello) /* sock_link_accept */
{
    bool is_good = hello_is_good(hello);
    say(at, word_of(is_good ? WELCOME : LATER));
    if (!is_good) {
        close_one(at);
        return;
    }
    me->their_calls = hello.number;
    me->linked_call = 0;
    close_one(mine(CALLER));
    close_one(mine(LINK));
    link_begin(hello.have);
}

static void welcome_heard(struct word welcome)
{
    if (welcome.kind == LATER)
        session_heard(welcome);
    if (welcome.kind == LATER || welcome.session != me->session) {
        close_one(at);
        return;
    }
    me->linked_call = me->calls;
    link_begin(welcome.have);
}

static void note_heard(struct word note) /* sock_fence_message_heard, session_is_over */
{
    struct word done = {.kind = DONE, .session = note.session, .have = me->have};
    bool asks = note.kind == ASK, answers = me->state == FAILED || fault == ANSWERS_EARLY;
    if (note.session < me->session) {
        done.have = me->past_session == note.session ? me->past_have : 0;
        answers = fault != IS_SILENT;
    } else if (note.session > me->session) {
        return;
    } else if (asks || me->state == FAILED) {
        fenced(note.have);
        me->failure |= me->state == UP;
    }
    if (asks && answers)
        say(notes, done);
}

/* --- events: false where it cannot happen --- */

static bool message_send(void)
{
    bool can = me->state == UP && me->may_send > 0;
    me->may_send -= can;
    me->last += can;
    return can;
}

static bool frame_write(void)
{
    const uint8_t message = me->before + me->next - 1;
    struct connection *link = mine(LINK);
    if (!link || me->next > me->last || link->count[!my] == WORDS)
        return false;
    say(link,
        (struct word){.kind = DATA, .have = me->have, .number = me->next++, .heard = message});
    return true;
}

static bool attend(void)
{
    if (!me->failure)
        return false;
    me->failure = 0;
    me->state = FAILED;
    close_one(mine(LINK));
    close_one(mine(CALLER));
    return true;
}

/* sock_link_call and hello_say. Progress attends to a failure before a WELCOME can come. */
static bool call(void)
{
    struct word hello = word_of(HELLO);
    bool is_idle = me->first > me->last && !me->was_linked;
    at = mine(CLOSED);
    if (me->state != UP || is_idle || mine(LINK) || mine(CALLER) || !at)
        return false;
    at->role[my] = CALLER;
    at->role[!my] = GUEST;
    hello.number = ++me->calls;
    hello.heard = me->their_calls;
    say(at, hello);
    if (fault != CALLS_ON)
        (void) attend();
    return true;
}

static bool hear(void)
{
    static void (*const hears[])(struct word word) = {
        [GUEST] = hello_heard, [CALLER] = welcome_heard, [LINK] = frame_read, [NOTES] = note_heard};
    if (at->count[my] == 0)
        return false;
    hears[at->role[my]](take());
    return true;
}

/* sock_link_broke, or a call that fails; what is not read by then is lost. */
static bool end_hear(void)
{
    if (!at->role[my] || (at->role[!my] && !at->is_broken))
        return false;
    close_one(at);
    return true;
}

/* settle, and peer_revive when that is done. */
static bool settle(void)
{
    if (me->state != FAILED || (is_unfenced(me) && fault != RETURNS_EARLY))
        return false;
    if (me->first > me->last) {
        begin();
        return true;
    }
    received(me->their_have);
    for (; me->first <= me->last; me->first++)
        me->returned |= 1u << (me->before + me->first - 1);
    if (me->returned & me->arrived)
        walk_fail("a message returns that arrived");
    return true;
}

static bool ask(void) /* sock_fence_message */
{
    bool can = is_unfenced(me) && notes->count[!my] == 0;
    if (can)
        say(notes, word_of(ASK));
    return can;
}

static bool give_up(void)
{
    bool can = me->state == UP && !me->failure && me->may_give_up > 0;
    me->may_give_up -= can;
    me->failure |= can;
    return can;
}

/* Of the other lane a note. */
static bool lose(void)
{
    if (at == notes)
        return at->count[my] > 0 && take().kind;
    bool can = now.may_break > 0 && my == 0 && !at->is_broken && (at->role[0] || at->role[1]);
    now.may_break -= can;
    at->is_broken |= can;
    return can;
}

/* The last ones are faults; those from `hear` to `lose` are of a connection. */
static bool (*const events[])(void) = {message_send, frame_write, call,     attend, settle,
                                       ask,          hear,        end_hear, lose,   give_up};
enum { HEAR = 6, LOSE = 8, SORTS = 10, PLACES = CONNECTIONS + 1 };

/* Of the numbers of an end's calls only the order matters. */
static void renumber(uint8_t caller)
{
    uint8_t *all[3 + 2 * CONNECTIONS] = {&now.ends[caller].calls, &now.ends[caller].linked_call,
                                         &now.ends[!caller].their_calls};
    uint32_t count = 3, used = 0;
    for (uint32_t i = 0; i < 2 * CONNECTIONS; i++) {
        struct word *word = now.connections[i / 2].words[i % 2];
        if (word->kind == HELLO)
            all[count++] = i % 2 == caller ? &word->heard : &word->number;
    }
    for (uint32_t i = 0; i < count; i++)
        used |= 1u << *all[i] & ~1u;
    for (uint32_t i = 0; i < count; i++)
        *all[i] = __builtin_popcount(used & ((2u << *all[i]) - 1));
}

static bool happen(uint32_t event)
{
    const uint32_t sort = event / (2 * PLACES), place = event / 2 % PLACES;
    my = event % 2;
    me = &now.ends[my];
    at = now.connections + place;
    if ((place > 0 && (sort < HEAR || sort > LOSE)) || !events[sort]())
        return false;
    renumber(0);
    renumber(1);
    return true;
}

static bool goes_on(uint32_t event)
{
    return event / (2 * PLACES) < LOSE;
}

static bool is_over(void)
{
    bool is = !is_unfenced(&now.ends[0]) && !is_unfenced(&now.ends[1]);
    for (const struct end *end = now.ends; end < now.ends + 2; end++)
        is &= (end->arrived | end->returned) == (1 << (end->before + end->last)) - 1;
    return is;
}

/* Messages and ends given up, of each end, and breaks. */
struct setting {
    uint8_t sends[2], gives_up[2], breaks;
};

static bool holds(const struct setting *setting)
{
    static const struct walk_events model = {&now,   sizeof(now), 1u << 20, 2 * PLACES * SORTS,
                                             happen, goes_on,     is_over};
    memset(&now, 0, sizeof(now));
    for (my = 0; my < 2; my++) {
        me = &now.ends[my];
        begin();
        me->may_send = setting->sends[my];
        me->may_give_up = setting->gives_up[my];
        notes->role[my] = NOTES;
    }
    now.may_break = setting->breaks;
    bool good = walk_events(&model);
    printf("%llu states, fault %d: %s\n", (unsigned long long) walk.states, fault,
           good ? "nothing found" : walk.failure);
    return good;
}

int main(void)
{
    static const struct setting settings[] = {{{1, 1}, {1, 0}, 0}, {{2, 0}, {1, 0}, 1},
                                              {{2, 0}, {1, 1}, 0}, {{1, 0}, {1, 2}, 0},
                                              {{1, 0}, {1, 1}, 1}, {{1, 1}, {1, 0}, 1}};
    const int count = check_is_long() ? 6 : 4;
    if (!walk_is_wanted()) {
        printf("left out: another build walks it\n");
        return 77;
    }
    for (int i = 0; i < count; i++)
        CHECK(holds(&settings[i]), "setting %d: %s", i, walk.failure);
    for (fault = FORGETS; fault < FAULTS; fault++)
        CHECK(!holds(&settings[0]), "fault %d is not found", fault);
    return check_end();
}
