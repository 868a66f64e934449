/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to a peer and their answers, and changes of a lane's state. */
#include "liveness/liveness.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/multilane.h"
#include "base/parameters.h"
#include "plan/stripe.h"

static void liveness_free(struct liveness *liveness)
{
    OBJ_DESTRUCT(&liveness->lock);
    free(liveness);
}

static struct liveness *liveness_new(struct peer *peer)
{
    struct liveness *liveness = calloc(1, sizeof(*liveness));
    if (!liveness)
        return NULL;
    OBJ_CONSTRUCT(&liveness->lock, opal_mutex_t);
    liveness->peer = peer;
    /* Another thread may be here at the same time. */
    struct liveness *none = NULL;
    /* Release, against liveness_find; acquire, against the thread that was first. */
    if (atomic_compare_exchange_strong_explicit(&peer->liveness, &none, liveness,
                                                memory_order_acq_rel, memory_order_acquire)) {
        schedule_begin();
        return liveness;
    }
    liveness_free(liveness);
    return none;
}

struct liveness *liveness_of(struct peer *peer)
{
    struct liveness *liveness = liveness_find(peer);
    return liveness ? liveness : liveness_new(peer);
}

void livenesses_fini(void)
{
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer)) {
        if (liveness_find(peer))
            liveness_free(liveness_find(peer));
        atomic_store_explicit(&peer->liveness, NULL, memory_order_relaxed);
    }
}

bool lane_state_set(struct liveness *liveness, struct lane *lane, enum lane_state state,
                    const char *why)
{
    if (lane_state(lane) == state || lane_state(lane) == LANE_BROKEN)
        return false;
    atomic_store_explicit(&lane->health.state, (uint8_t) state,
                          memory_order_relaxed); /* lane_state */
    if (state == LANE_BROKEN)                    /* what is under way on it may never be reported */
        stripe_lane_lost(lane);
    lane->health.has_changed = true;
    lane->health.asked = 0;
    lane->health.contrast_ns = 0;
    lane->health.pause_ns = (uint64_t) parameters.suspect_ms * 1000000;
    lane->health.asked_ns = active_time_ns();
    snprintf(lane->health.why, sizeof(lane->health.why), "%s", why);
    schedule_add(liveness);
    return true;
}

/* The lane answers; those that were asked too and have not are held against it from now on. */
static void lane_answered(struct liveness *liveness, struct lane *lane, uint32_t ask)
{
    struct lane_health *mine = &lane->health;
    if (lane_state(lane) == LANE_SILENT)
        lane_state_set(liveness, lane, LANE_UP, "answers again");
    if (mine->asked && (int32_t) (ask - mine->asked) >= 0) {
        mine->asked = 0;
        mine->contrast_ns = 0;
    }
    for (int i = 0; i < peer_lane_count(liveness->peer); i++) {
        struct lane_health *other = &liveness->peer->lanes[i].health;
        if (other->asked && !other->contrast_ns)
            other->contrast_ns = active_time_ns();
    }
}

bool liveness_answered(struct peer *peer, struct lane *lane, const struct wire_ask *answer)
{
    struct liveness *liveness = liveness_find(peer);
    if (!liveness)
        return false;
    OPAL_THREAD_LOCK(&liveness->lock);
    bool good = (int32_t) (liveness->ask - answer->number) >= 0;
    if (good && !liveness->lost) {
        liveness->alive_ns = active_time_ns();
        liveness->has_parted = false;
        if (lane)
            lane_answered(liveness, lane, answer->number);
    }
    OPAL_THREAD_UNLOCK(&liveness->lock);
    return good;
}

void liveness_asked(struct lane *lane, const struct wire_ask *ask)
{
    /* Without room now: the next question will be answered. */
    if (lane && lane_state(lane) != LANE_BROKEN)
        (void) control_send_bare(lane, WIRE_ALIVE, ask, sizeof(*ask));
}

void liveness_end(struct liveness *liveness)
{
    OPAL_THREAD_LOCK(&liveness->lock);
    liveness->lost = true;
    OPAL_THREAD_UNLOCK(&liveness->lock);
    for (int i = 0; i < peer_lane_count(liveness->peer); i++)
        lane_return_none(&liveness->peer->lanes[i]);
}

bool lane_break(struct lane *lane, const char *what, const char *why)
{
    /* Also for a lane that has carried nothing yet: later messages go by another lane. */
    struct liveness *liveness = lane->returns ? liveness_of(lane->peer) : NULL;
    char text[sizeof(lane->health.why)];
    if (!liveness)
        return false;
    snprintf(text, sizeof(text), "%s: %s", what, why);
    OPAL_THREAD_LOCK(&liveness->lock);
    (void) lane_state_set(liveness, lane, LANE_BROKEN, text);
    OPAL_THREAD_UNLOCK(&liveness->lock);
    return true;
}

void lane_watch(struct lane *lane)
{
    struct liveness *liveness = liveness_of(lane->peer);
    if (!liveness)
        return;
    OPAL_THREAD_LOCK(&liveness->lock);
    schedule_add(liveness);
    OPAL_THREAD_UNLOCK(&liveness->lock);
}

/* --- the list of peers for progress ----------------------------------------------------------- */

/* The list of peers for progress. */

struct liveness *_Atomic schedule_first;
_Atomic bool schedule_begun;

static opal_mutex_t schedule_lock = OPAL_MUTEX_STATIC_INIT; /* guards schedule_first; a leaf */
_Atomic uint64_t active_time;

void schedule_add(struct liveness *liveness)
{
    /* watch.c clears it before it takes the lock of the liveness, which the caller holds: where it
     * is still set, that look comes after this. */
    if (atomic_load_explicit(&liveness->watched, memory_order_relaxed))
        return;
    OPAL_THREAD_LOCK(&schedule_lock);
    /* Acquire, against the release in watch.c: that thread has read next_watched. */
    if (!atomic_load_explicit(&liveness->watched, memory_order_acquire)) {
        atomic_store_explicit(&liveness->watched, true, memory_order_relaxed);
        liveness->next_watched = atomic_load_explicit(&schedule_first, memory_order_relaxed);
        atomic_store_explicit(&schedule_first, liveness,
                              memory_order_relaxed); /* schedule_has_any */
    }
    OPAL_THREAD_UNLOCK(&schedule_lock);
}

struct liveness *schedule_take(void)
{
    OPAL_THREAD_LOCK(&schedule_lock);
    struct liveness *all = atomic_load_explicit(&schedule_first, memory_order_relaxed);
    atomic_store_explicit(&schedule_first, NULL, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&schedule_lock);
    return all;
}

void schedule_begin(void)
{
    atomic_store_explicit(&schedule_begun, true, memory_order_relaxed);
}

void schedule_fini(void)
{
    atomic_init(&schedule_begun, false);
    atomic_init(&schedule_first, NULL);
}

/* --- fences: messages between the two ends of a broken lane ----------------------------------- */

_Static_assert(sizeof(((struct wire_fence *) 0)->bytes) == MULTILANE_FENCE_BYTES, "a message fits");

/* A lost message does no harm: it is sent again, and so is its answer. */
static void fence_post(struct lane *by, const struct wire_fence *message)
{
    if (by)
        (void) control_send_bare(by, WIRE_FENCE, message, sizeof(*message));
}

void fence_send(struct lane *lane)
{
    struct wire_fence message = {.length = 0};
    if (lane->extension && lane->extension->fence_ask)
        message.length =
            (uint32_t) lane->extension->fence_ask(lane->btl, lane->endpoint, message.bytes);
    if (message.length)
        fence_post(peer_lane_for(lane->peer, 0), &message);
}

bool fence_heard(struct peer *peer, struct lane *lane, const struct wire_fence *message)
{
    struct wire_fence answer = {.length = 0};
    if (message->length == 0 || message->length > sizeof(message->bytes))
        return false;
    /* Each component knows its own messages; the lanes of one share the function. */
    for (int i = 0; i < peer_lane_count(peer) && !answer.length; i++) {
        const struct multilane_extension *extension = peer->lanes[i].extension;
        if (extension && extension->fence_hear)
            answer.length =
                (uint32_t) extension->fence_hear(message->bytes, message->length, answer.bytes);
    }
    if (answer.length)
        fence_post(lane && lane_is_up(lane) ? lane : peer_lane_for(peer, 0), &answer);
    return true;
}
