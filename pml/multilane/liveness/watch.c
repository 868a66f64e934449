/* SPDX-License-Identifier: BSD-3-Clause */
/* Suspicion: when a lane is left out, taken back, and when a peer counts as lost.
 *
 * Nothing moved for T/2 though something is kept: every lane is asked. Once one lane has answered,
 * another that does not for T/2 more is silent: what went by it goes by another one, and new plans
 * do without it. It is asked again now and then, and is used again when it answers. A lane whose
 * BTL reports an error is broken. Open MPI's stay so: tcp goes on in the middle of a fragment. One
 * of ours is made anew, while another one is left, and counts as silent then.
 */
#include "liveness/watch.h"

#include <stdio.h>
#include <string.h>

#include "liveness/awaited.h"
#include "base/clock.h"
#include "common/compat/tcp.h"
#include "liveness/errors.h"
#include "liveness/lost.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "peer/peer_class.h"
#include "base/sockets.h"

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

/* Looks are not closer than this. */
#define LOOK_NS (MILLISECOND / 5)
/* Progress that is called more rarely than this counts as if it were not. */
#define ATTENDED_NS (50 * MILLISECOND)
/* What has come is acknowledged after so long, if nothing else told it. */
#define OWED_NS (2 * MILLISECOND)
/* A silent lane is asked ever more rarely, up to this multiple of T. */
#define ASK_PAUSE_MAX 16
/* A broken lane that can be is made anew after this multiple of T. */
#define RENEW_AFTER 2
/* How often the system is asked whether a peer lives that answers on no lane. */
#define VERIFY_NS SECOND
/* How often peers for which nothing is kept are looked at, and, between, how many calls of progress
 * do without a look at the clock. */
#define QUIET_NS    SECOND
#define QUIET_CALLS 16

/* Of one lane's changes so many are said. */
#define SAID_MAX 6

static struct {
    opal_mutex_t lock; /* guards first; a leaf */
    struct delivery *first;
    uint64_t attended_ns; /* atomic: written by the thread that is inside, read by all */
    uint64_t looked_ns;   /* by the system's clock; of the thread that is inside, as the next */
    uint64_t quiet_ns;    /* when peers for which nothing is kept were looked at, */
    uint64_t met_ns;      /* and those met that somebody waits for */
    uint32_t calls;       /* atomic: of progress while nothing is kept */
    bool inside;          /* atomic: a thread is */
    bool listens;         /* atomic: Open MPI's progress calls us */
    bool begun;           /* atomic */
    bool keeps;           /* atomic: messages were kept */
} watch;

static uint64_t lost_ns(void)
{
    return (uint64_t) parameters.lost_s * SECOND;
}

/* Silence after which a peer for which nothing is kept is asked. */
static uint64_t ask_after_ns(void)
{
    return lost_ns() / 3;
}

static uint64_t suspect_ns(void)
{
    return (uint64_t) parameters.suspect_ms * MILLISECOND;
}

uint64_t active_time_ns(void)
{
    return __atomic_load_n(&watch.attended_ns, __ATOMIC_RELAXED);
}

void watch_add(struct delivery *delivery)
{
    /* Cleared before the look at the delivery takes its lock, which we hold: so if it is still set,
     * that look is yet to come. */
    if (__atomic_load_n(&delivery->watched, __ATOMIC_RELAXED))
        return;
    OPAL_THREAD_LOCK(&watch.lock);
    /* Acquire, against watch_all: it is done with next_watched. */
    if (!__atomic_load_n(&delivery->watched, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&delivery->watched, true, __ATOMIC_RELAXED);
        delivery->next_watched = watch.first;
        __atomic_store_n(&watch.first, delivery, __ATOMIC_RELAXED); /* watch_progress */
        __atomic_store_n(&watch.keeps, true, __ATOMIC_RELAXED);     /* watch_keeps */
    }
    OPAL_THREAD_UNLOCK(&watch.lock);
}

/* --- lanes --------------------------------------------------------------------------------------
 */

/* With the delivery's lock held. */
static void lane_set(struct delivery *delivery, struct lane *lane, enum lane_state state,
                     const char *why)
{
    if (lane_state(lane) == state || lane_state(lane) == LANE_BROKEN)
        return;
    __atomic_store_n(&lane->watch.state, (uint8_t) state, __ATOMIC_RELAXED); /* lane_state */
    lane->watch.has_changed = true;
    lane->watch.asked = 0;
    lane->watch.contrast_ns = 0;
    lane->watch.pause_ns = suspect_ns();
    lane->watch.asked_ns = active_time_ns();
    snprintf(lane->watch.why, sizeof(lane->watch.why), "%s", why);
    if (state != LANE_UP)
        delivery_take_back(delivery, lane);
    watch_add(delivery);
}

bool watch_lane_broke(struct lane *lane, const char *what, const char *why)
{
    /* Also of a lane that has carried nothing: what was to go by it goes by another one. */
    struct delivery *delivery = lane->framed ? delivery_of(lane->peer) : NULL;
    char text[sizeof(lane->watch.why)];
    if (!delivery)
        return false;
    snprintf(text, sizeof(text), "%s: %s", what, why);
    OPAL_THREAD_LOCK(&delivery->lock);
    lane_set(delivery, lane, LANE_BROKEN, text);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    return true;
}

void watch_answered(struct delivery *delivery, struct lane *lane, uint32_t ask)
{
    struct lane_watch *mine = &lane->watch;
    if (lane_state(lane) == LANE_SILENT)
        lane_set(delivery, lane, LANE_UP, "answers again");
    if (mine->asked && (int32_t) (ask - mine->asked) >= 0) {
        mine->asked = 0;
        mine->contrast_ns = 0;
    }
    for (int i = 0; i < delivery->peer->lane_count; i++) {
        struct lane_watch *other = &delivery->peer->lanes[i].watch;
        if (other->asked && !other->contrast_ns)
            other->contrast_ns = active_time_ns();
    }
}

/* --- one look at one peer -----------------------------------------------------------------------
 */

/* What is to be done when the lock is released. */
struct look {
    uint64_t now;
    bool tell;
    bool send;
    bool lanes_changed;
    bool is_lost;
    bool keep;
    uint64_t ask_lanes; /* bit i: ask on lane i; further lanes have none to ask for */
    uint64_t renew_lanes;
    uint32_t ask;
    char why[160];
};

static void ask_next(struct delivery *delivery)
{
    if (++delivery->ask == 0)
        delivery->ask = 1; /* 0 is no question */
}

static void lane_ask(struct delivery *delivery, struct lane *lane, struct look *look)
{
    if (lane->index >= 64)
        return;
    look->ask_lanes |= UINT64_C(1) << lane->index;
    if (!lane->watch.asked) {
        lane->watch.asked = delivery->ask;
        lane->watch.contrast_ns = 0;
    }
    lane->watch.asked_ns = look->now;
}

/* On every lane that is used. */
static void ask_all(struct delivery *delivery, struct look *look)
{
    ask_next(delivery);
    delivery->asked_ns = look->now;
    for (int i = 0; i < delivery->peer->lane_count; i++)
        if (lane_is_up(&delivery->peer->lanes[i]) && delivery->peer->lanes[i].framed)
            lane_ask(delivery, &delivery->peer->lanes[i], look);
}

/* Nothing moves. */
static void look_ask(struct delivery *delivery, struct look *look)
{
    uint64_t half = suspect_ns() / 2;
    if (delivery->first && look->now - delivery->moved_ns >= half &&
        look->now - delivery->asked_ns >= half)
        ask_all(delivery, look);
}

static bool any_lane_left(const struct peer *peer)
{
    for (int i = 0; i < peer->lane_count; i++)
        if (lane_sends(&peer->lanes[i]) && lane_state(&peer->lanes[i]) != LANE_BROKEN)
            return true;
    return false;
}

static void look_lane(struct delivery *delivery, struct lane *lane, struct look *look)
{
    struct lane_watch *mine = &lane->watch;
    char why[sizeof(mine->why)];
    /* The peer must have gone on answering: it may have begun to compute after its first answer. */
    if (lane_is_up(lane) && mine->asked && mine->contrast_ns &&
        look->now - mine->contrast_ns >= suspect_ns() / 2 &&
        delivery->alive_ns - mine->contrast_ns >= suspect_ns() / 4 &&
        delivery->alive_ns > mine->contrast_ns) {
        snprintf(why, sizeof(why),
                 "did not answer for %d ms, while that process answered over another lane",
                 parameters.suspect_ms);
        lane_set(delivery, lane, LANE_SILENT, why);
    }
    if (lane_state(lane) == LANE_SILENT) {
        look->keep = true;
        if (look->now - mine->asked_ns >= mine->pause_ns) {
            ask_next(delivery);
            if (mine->pause_ns < ASK_PAUSE_MAX * suspect_ns())
                mine->pause_ns *= 2;
            lane_ask(delivery, lane, look);
        }
    }
    /* Also where what is left is silent: that lane may never come back, and this one may. */
    if (lane_state(lane) == LANE_BROKEN && lane->renewable && lane->index < 64 &&
        any_lane_left(delivery->peer)) {
        look->keep = true;
        if (look->now - mine->asked_ns >= RENEW_AFTER * suspect_ns()) {
            mine->asked_ns = look->now;
            look->renew_lanes |= UINT64_C(1) << lane->index;
        }
    }
    look->lanes_changed |= mine->has_changed;
}

static uint8_t alone_of(const struct delivery *delivery)
{
    return __atomic_load_n(&delivery->alone, __ATOMIC_RELAXED);
}

/* Open MPI's tcp is the lane that a cut wire makes silent for a quarter of an hour; but a peer that
 * computes is as silent, and only the kernel can tell. Others report errors in time. */
static bool is_silent_when_cut(const struct lane *lane)
{
    return lane_state(lane) != LANE_BROKEN && compat_is_tcp(lane->btl);
}

/* A peer that is silent for lost_s is asked at least every third of it, so for so long the kernel
 * should have heard that a question came. */
static uint32_t asked_for_ms(void)
{
    uint64_t ms = (lost_ns() - ask_after_ns()) / MILLISECOND;
    return ms < UINT32_MAX ? (uint32_t) ms : UINT32_MAX;
}

/* Does the system know by this lane that the peer lives, however long it computes? The kernel and
 * devices acknowledge for a process. A device reports one that does not; not on a silent lane,
 * which may have no connection since it was made anew. A lane whose messages are not kept knows
 * itself when the peer is gone. */
static bool lane_shows_life(const struct lane *lane)
{
    if (is_silent_when_cut(lane))
        return socket_is_healthy(compat_tcp_socket(lane->btl, lane->endpoint), asked_for_ms());
    return lane_is_up(lane) && (lane->renewable || (lane_sends(lane) && !lane->framed));
}

/* One healthy lane is life; what is known of others' lanes is nothing. */
static bool system_knows_it_alive(const struct peer *peer)
{
    for (int i = 0; i < peer->lane_count; i++)
        if (lane_shows_life(&peer->lanes[i]))
            return true;
    return false;
}

static void look_lost(struct delivery *delivery, struct look *look)
{
    if (!any_lane_left(delivery->peer)) {
        look->is_lost = true;
        snprintf(look->why, sizeof(look->why), "no lane is left");
        return;
    }
    uint64_t since =
        delivery->alive_ns > delivery->moved_ns ? delivery->alive_ns : delivery->moved_ns;
    if (!delivery->first && !alone_of(delivery)) {
        if (delivery->waited_ns <= since)
            return; /* nobody waits for it, or it answered */
        since = delivery->waited_ns;
    }
    if (look->now - since < lost_ns() || look->now - delivery->verified_ns < VERIFY_NS)
        return;
    delivery->verified_ns = look->now;
    if (system_knows_it_alive(delivery->peer))
        return;
    look->is_lost = true;
    snprintf(look->why, sizeof(look->why), "no lane answered for %d s (pml_multilane_lost_s)",
             parameters.lost_s);
}

/* With the lock held: what is to be done? */
static void look_at(struct delivery *delivery, struct look *look)
{
    if (delivery->lost || delivery->peer->lane_count == 0)
        return;
    look->tell = delivery->owes_now ||
                 (delivery->owed_frames > 0 && look->now - delivery->owed_ns >= OWED_NS);
    look->keep = delivery->first != NULL || delivery->owed_frames > 0 || delivery->owes_now;
    look_ask(delivery, look);
    for (int i = 0; i < delivery->peer->lane_count; i++)
        look_lane(delivery, &delivery->peer->lanes[i], look);
    look_lost(delivery, look);
    look->send = delivery->unsent > 0;
    look->ask = delivery->ask;
}

/* Plans anew, and says so. */
static void act_on_changes(struct delivery *delivery)
{
    struct peer *peer = delivery->peer;
    for (int i = 0; i < peer->lane_count; i++) {
        struct lane_watch *mine = &peer->lanes[i].watch;
        char why[sizeof(mine->why)];
        OPAL_THREAD_LOCK(&delivery->lock);
        bool has_changed = mine->has_changed;
        bool is_up = lane_is_up(&peer->lanes[i]);
        mine->has_changed = false;
        memcpy(why, mine->why, sizeof(why));
        OPAL_THREAD_UNLOCK(&delivery->lock);
        if (!has_changed)
            continue;
        /* Only the first ones are said: a lane may come and go for hours. */
        uint32_t said = mine->said < SAID_MAX ? ++mine->said : 0;
        counter_add(is_up ? &multilane.lanes_returned : &multilane.lanes_lost, 1);
        lane_set_lost(&peer->lanes[i], !is_up);
        if (said)
            lane_say_changed(&peer->lanes[i], is_up, why, said == SAID_MAX);
    }
}

/* Whether they are there again is asked from now on. */
static void renew_lanes(struct delivery *delivery, uint64_t lanes)
{
    struct peer *peer = delivery->peer;
    for (int i = 0; i < peer->lane_count && i < 64; i++) {
        struct lane *lane = &peer->lanes[i];
        if (!(lanes >> i & 1) || !lane_renew(lane))
            continue;
        OPAL_THREAD_LOCK(&delivery->lock);
        __atomic_store_n(&lane->watch.state, LANE_SILENT, __ATOMIC_RELAXED); /* lane_state */
        lane->watch.asked_ns = 0;
        OPAL_THREAD_UNLOCK(&delivery->lock);
    }
}

static void send_questions(struct delivery *delivery, const struct look *look)
{
    struct peer *peer = delivery->peer;
    for (int i = 0; i < peer->lane_count && i < 64; i++) {
        unsigned char bytes[WIRE_CONTROL_MAX];
        struct wire_ask ask = {.number = look->ask};
        if (!(look->ask_lanes >> i & 1))
            continue;
        unsigned char *end = peer_write_base(peer, bytes, WIRE_ASK, 0);
        memcpy(end, &ask, sizeof(ask));
        /* Without room now it is asked again. */
        lane_send_plain(&peer->lanes[i], bytes, (size_t) (end + sizeof(ask) - bytes), NULL, NULL);
    }
}

/* Does what is due; no lock is held. */
static void delivery_act(struct delivery *delivery, const struct look *look)
{
    if (look->lanes_changed)
        act_on_changes(delivery);
    if (look->is_lost) {
        delivery_abandon(delivery);
        peer_lost(delivery->peer, look->why);
        return;
    }
    if (look->renew_lanes)
        renew_lanes(delivery, look->renew_lanes);
    if (look->ask_lanes)
        send_questions(delivery, look);
    if (look->send)
        delivery_resend(delivery);
    struct lane *lane = look->tell ? delivery_lane(delivery->peer, 0) : NULL;
    if (lane)
        delivery_tell(delivery, lane, 0);
}

/* True: look again. */
static bool delivery_look(struct delivery *delivery, uint64_t now)
{
    struct look look = {.now = now};
    OPAL_THREAD_LOCK(&delivery->lock);
    look_at(delivery, &look);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    delivery_act(delivery, &look);
    return look.keep && !look.is_lost;
}

/* --- peers for which nothing is kept -------------------------------------------------------------
 */

void watch_alone(struct lane *lane)
{
    struct delivery *delivery = is_silent_when_cut(lane) ? delivery_of(lane->peer) : NULL;
    if (!delivery)
        return;
    OPAL_THREAD_LOCK(&delivery->lock);
    delivery->alive_ns = active_time_ns();
    OPAL_THREAD_UNLOCK(&delivery->lock);
    __atomic_store_n(&delivery->alone, lane->index + 1, __ATOMIC_RELAXED); /* alone_of */
}

/* Nothing was heard or asked for long. */
static bool is_quiet(struct delivery *delivery, uint64_t now)
{
    uint64_t pause = ask_after_ns();
    OPAL_THREAD_LOCK(&delivery->lock);
    bool is_quiet = !delivery->lost && delivery->peer->lane_count > 0 &&
                    now - delivery->alive_ns >= pause && now - delivery->asked_ns >= pause;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    return is_quiet;
}

/* Else one is left that loses nothing, and knows itself when the peer is gone. */
static bool every_lane_loses(const struct peer *peer)
{
    for (int i = 0; i < peer->lane_count; i++)
        if (lane_sends(&peer->lanes[i]) && !peer->lanes[i].framed)
            return false;
    return true;
}

/* Who only receives keeps nothing. Where errors end the job it need not notice that its peer is
 * lost: who sends will, and end it. Where they are returned the job goes on, so it has to ask. */
static void quiet_look(struct peer *peer, uint64_t now)
{
    struct look look = {.now = now};
    struct delivery *delivery = __atomic_load_n(&peer->delivery, __ATOMIC_ACQUIRE);
    if (!delivery) /* acquire: delivery_of */
        return;
    uint8_t alone = alone_of(delivery);
    bool quiet = is_quiet(delivery, now);
    if (quiet && peer->foreign && !comms_have(peer)) {
        OPAL_THREAD_LOCK(&delivery->lock);
        delivery->asked_ns = now; /* not asked, and left alone for as long */
        OPAL_THREAD_UNLOCK(&delivery->lock);
        return;
    }
    bool asks = quiet && (alone || (every_lane_loses(peer) && lost_would_be_returned(peer)));
    OPAL_THREAD_LOCK(&delivery->lock);
    if (!delivery->lost && peer->lane_count >= alone && peer->lane_count > 0) {
        if (asks && delivery->waited_ns <= delivery->alive_ns)
            delivery->waited_ns = now;
        if (asks && alone) {
            ask_next(delivery);
            delivery->asked_ns = now;
            look.ask_lanes = UINT64_C(1) << (alone - 1) % 64;
        } else if (asks) {
            ask_all(delivery, &look);
        }
        look_lost(delivery, &look);
        look.ask = delivery->ask;
    }
    OPAL_THREAD_UNLOCK(&delivery->lock);
    delivery_act(delivery, &look);
}

static void quiet_look_all(uint64_t now)
{
    for (uint32_t i = 0; i < multilane.local_peer_count; i++) {
        struct peer *peer = __atomic_load_n(&multilane.local_peers[i], __ATOMIC_ACQUIRE);
        if (peer) /* peer_list, for both */
            quiet_look(peer, now);
    }
    struct peer *peer = __atomic_load_n(&multilane.foreign_peers, __ATOMIC_ACQUIRE);
    for (; peer; peer = peer->next_foreign)
        quiet_look(peer, now);
}

/* --- all of them --------------------------------------------------------------------------------
 */

/* One thread at a time. */
static void watch_all(void)
{
    uint64_t system = clock_now_ns(), passed = system - watch.looked_ns;
    if (passed < LOOK_NS)
        return;
    watch.looked_ns = system;
    uint64_t now = active_time_ns() + (passed < ATTENDED_NS ? passed : ATTENDED_NS);
    __atomic_store_n(&watch.attended_ns, now, __ATOMIC_RELAXED); /* active_time_ns */

    if (now - watch.quiet_ns >= QUIET_NS) {
        watch.quiet_ns = now;
        if (now - watch.met_ns >= ask_after_ns()) {
            watch.met_ns = now;
            awaited_meet();
        }
        quiet_look_all(now);
    }
    OPAL_THREAD_LOCK(&watch.lock);
    struct delivery *round = watch.first;
    __atomic_store_n(&watch.first, NULL, __ATOMIC_RELAXED);
    OPAL_THREAD_UNLOCK(&watch.lock);
    while (round) {
        struct delivery *delivery = round;
        round = delivery->next_watched;
        __atomic_store_n(&delivery->watched, false, __ATOMIC_RELEASE); /* watch_add */
        if (delivery_look(delivery, now))
            watch_add(delivery);
    }
}

int watch_progress(void)
{
    if (!__atomic_load_n(&watch.begun, __ATOMIC_RELAXED)) /* watch_begin */
        return 0;
    /* A look without the lock is enough: what is added meanwhile is seen by the next round. */
    if (!__atomic_load_n(&watch.first, __ATOMIC_RELAXED)) {
        uint32_t calls =
            __atomic_load_n(&watch.calls, __ATOMIC_RELAXED); /* a lost one is nothing */
        __atomic_store_n(&watch.calls, calls + 1, __ATOMIC_RELAXED);
        if (calls % QUIET_CALLS)
            return 0;
    }
    /* Acquire and release: the next thread inside sees looked_ns. */
    if (__atomic_exchange_n(&watch.inside, true, __ATOMIC_ACQUIRE))
        return 0;
    watch_all();
    __atomic_store_n(&watch.inside, false, __ATOMIC_RELEASE);
    return 0;
}

void watch_init(void)
{
    OBJ_CONSTRUCT(&watch.lock, opal_mutex_t);
}

void watch_listen(void)
{
    if (!__atomic_exchange_n(&watch.listens, true, __ATOMIC_RELAXED)) /* once is enough */
        opal_progress_register(watch_progress);
}

void watch_begin(void)
{
    watch_listen();
    __atomic_store_n(&watch.begun, true, __ATOMIC_RELAXED); /* watch_progress */
}

bool watch_keeps(void)
{
    return __atomic_load_n(&watch.keeps, __ATOMIC_RELAXED);
}

void watch_fini(void)
{
    if (watch.listens)
        opal_progress_unregister(watch_progress);
    watch.listens = watch.begun = watch.keeps = false;
    watch.first = NULL;
    OBJ_DESTRUCT(&watch.lock);
}
