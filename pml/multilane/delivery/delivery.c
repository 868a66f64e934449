/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: numbered, kept, sent, acknowledged. */
#include "delivery/delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/multilane.h"
#include "delivery/health.h"
#include "delivery/schedule.h"
#include "lane/lane_events.h"
#include "peer/control_message.h"
#include "plan/stripe.h"

/* Acknowledge after so many frames or bytes, or when watch.c finds that an acknowledgement is
 * due: often enough that the peer's window never fills, rarely beside the data. */
#define OWED_FRAMES_MAX 64
#define OWED_BYTES_MAX  ((size_t) 256 << 10)

/* Frames sent per look at the list. */
#define RESEND_BATCH 64

static void frames_free(struct frame *frame)
{
    while (frame) {
        struct frame *next = frame->next;
        free(frame);
        frame = next;
    }
}

static void delivery_free(struct delivery *delivery)
{
    frames_free(delivery->first);
    OBJ_DESTRUCT(&delivery->lock);
    free(delivery);
}

static __attribute__((noinline)) struct delivery *delivery_new(struct peer *peer)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    if (!delivery)
        return NULL;
    OBJ_CONSTRUCT(&delivery->lock, opal_mutex_t);
    delivery->peer = peer;
    delivery->last = &delivery->first;
    /* Another thread may be here at the same time, with a frame of the peer. */
    struct delivery *none = NULL;
    /* Release, against delivery_find; acquire, against the thread that was first. */
    if (atomic_compare_exchange_strong_explicit(&peer->delivery, &none, delivery,
                                                memory_order_acq_rel, memory_order_acquire)) {
        schedule_begin();
        return delivery;
    }
    delivery_free(delivery);
    return none;
}

struct delivery *delivery_of(struct peer *peer)
{
    struct delivery *delivery = delivery_find(peer);
    return OPAL_LIKELY(delivery != NULL) ? delivery : delivery_new(peer);
}

static void delivery_of_peer_free(struct peer *peer, void *unused)
{
    (void) unused;
    struct delivery *delivery = delivery_find(peer);
    if (delivery)
        delivery_free(delivery);
    atomic_store_explicit(&peer->delivery, NULL, memory_order_relaxed);
}

void deliveries_fini(void)
{
    peers_visit(delivery_of_peer_free, NULL);
}

/* --- frames of ours --------------------------------------------------------------------------- */

/* With the lock held. */
static bool is_full(const struct delivery *delivery)
{
    return delivery->next + delivery->begun - delivery->acknowledged >= WIRE_FRAME_WINDOW ||
           atomic_load_explicit(&delivery->kept_bytes, memory_order_relaxed) >=
               DELIVERY_WINDOW_BYTES ||
           delivery->unsent > 0;
}

/* With the lock held. Null: too much is under way, or no memory. */
static inline struct frame *frame_open(struct delivery *delivery, struct lane *lane, size_t length)
{
    size_t bytes = sizeof(struct wire_base) + sizeof(struct wire_frame) +
                   (OPAL_UNLIKELY(delivery->peer->is_of_other_job) ? sizeof(struct wire_name) : 0) +
                   length;
    struct frame *frame = is_full(delivery) ? NULL : malloc(sizeof(*frame) + bytes);
    if (OPAL_LIKELY(frame != NULL))
        *frame = (struct frame){.delivery = delivery,
                                .lane = lane,
                                .meant = lane,
                                .room = (uint32_t) length,
                                .length = bytes};
    return frame;
}

struct frame *frame_begin(struct lane *lane, size_t length, int *rc)
{
    struct delivery *delivery = delivery_of(lane->peer);
    *rc = LANE_AGAIN;
    if (!delivery)
        return NULL;
    OPAL_THREAD_LOCK(&delivery->lock);
    struct frame *frame = frame_open(delivery, lane, length);
    delivery->begun += frame != NULL;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (frame)
        *rc = OMPI_SUCCESS;
    return frame;
}

/* With the lock held: what the frame says of the frames of the peer. */
static void frame_acknowledges(struct frame *frame)
{
    frame->ask = frame->delivery->ask;
    frame->heard = frame->delivery->heard;
}

/* With the lock held: a frame that says so leaves. */
static void acknowledged_by_frame(struct delivery *delivery)
{
    if (!delivery->owes_now)
        delivery->owed_frames = 0, delivery->owed_bytes = 0;
}

/* With the lock held. True: the caller gives the frame to frame->lane next. False: no lane takes it
 * now. */
static bool frame_claim(struct frame *frame)
{
    struct delivery *delivery = frame->delivery;
    if (!frame->lane || !lane_is_up(frame->lane)) {
        struct lane *other = peer_lane_for(delivery->peer, frame->length);
        if (!other)
            return false;
        frame->lane = other;
    }
    frame->busy = true;
    frame->users += 2; /* this thread, and the lane, which may be done before it returns */
    frame_acknowledges(frame);
    acknowledged_by_frame(delivery);
    return true;
}

/* With the lock held: leaves the frame to watch.c. */
static void frame_defer(struct frame *frame)
{
    if (frame->unsent)
        return;
    frame->unsent = true;
    frame->delivery->unsent++;
}

/* With the lock held. */
static void frame_need_not_be_sent(struct frame *frame)
{
    if (frame->unsent)
        frame->delivery->unsent--;
    frame->unsent = false;
}

/* The owner to tell when the lock is released; null if it was told before. */
struct told {
    lane_left left;
    void *owner;
    int status;
};

static struct told frame_take_owner(struct frame *frame)
{
    struct told told = {frame->left, frame->owner, OMPI_SUCCESS};
    frame->left = NULL;
    return told;
}

static void tell(struct told told)
{
    if (told.left)
        told.left(told.owner, told.status);
}

/* With the lock held: one user less. True: the frame is the caller's to free. */
static bool frame_release(struct frame *frame)
{
    return --frame->users == 0 && frame->done;
}

/* The lane's callback. After an error the lane has failed, and watch.c sends the frame again. */
static void frame_handed_over(void *owner, int status)
{
    struct frame *frame = owner;
    struct delivery *delivery = frame->delivery;
    struct told told = {.left = NULL};
    OPAL_THREAD_LOCK(&delivery->lock);
    if (status == OMPI_SUCCESS)
        told = frame_take_owner(frame);
    bool is_mine = frame_release(frame);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (is_mine)
        free(frame);
    tell(told);
}

static int frame_give(struct frame *frame)
{
    if (lane_state(frame->lane) == LANE_BROKEN)
        return LANE_AGAIN;
    return lane_send_plain(frame->lane, frame->bytes, frame->length, frame_handed_over, frame);
}

static inline void frame_write(struct frame *frame)
{
    struct wire_frame wire = {.number = frame->number, .heard = frame->heard};
    unsigned char *at = peer_write_base(frame->delivery->peer, frame->bytes, WIRE_FRAME,
                                        0); /* frame_begin has counted its length */
    ((struct wire_base *) frame->bytes)->traits =
        (uint16_t) ((frame->striped ? WIRE_STRIPED : 0) |
                    (frame->lane != frame->meant ? WIRE_MOVED : 0));
    memcpy(at, &wire, sizeof(wire));
}

/* Gives a claimed frame to its lane: LANE_LEFT, LANE_UNDER_WAY, or why watch.c sends it later.
 * The frame may be freed on return. */
static int frame_transmit(struct frame *frame)
{
    struct delivery *delivery = frame->delivery;
    struct lane *lane = frame->lane;
    struct told told = {.left = NULL};
    frame_write(frame);
    bool is_striped = frame->striped;
    size_t length = frame->length;
    if (is_striped) /* before it is sent: the lane may be lost at once */
        stripe_sent(lane, length);
    int rc = frame_give(frame);
    bool is_taken = rc == LANE_LEFT || rc == LANE_UNDER_WAY;
    if (!is_taken && is_striped)
        stripe_not_sent(lane, length);
    if (OPAL_UNLIKELY(!is_taken && rc != LANE_AGAIN))
        lane_failed(lane, "could not send a message", rc);

    OPAL_THREAD_LOCK(&delivery->lock);
    if (is_taken && frame->was_sent)
        counter_add(&multilane.resent_messages, 1);
    frame->was_sent |= is_taken;
    frame->busy = false;
    if (rc == LANE_LEFT)
        told = frame_take_owner(frame);
    if (OPAL_UNLIKELY(!is_taken) && !frame->done)
        frame_defer(frame);
    if (rc != LANE_UNDER_WAY)
        frame->users--;
    bool is_mine = frame_release(frame);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (is_mine)
        free(frame);
    tell(told);
    return rc;
}

/* With the lock held. */
static inline void frame_keep(struct frame *frame)
{
    struct delivery *delivery = frame->delivery;
    if (!delivery->first)
        delivery->moved_ns = active_time_ns();
    frame->number = delivery->next++;
    frame->next = NULL;
    *delivery->last = frame;
    delivery->last = &frame->next;
    atomic_fetch_add_explicit(&delivery->kept_bytes, frame->length, memory_order_relaxed);
    schedule_add(delivery);
}

void frame_send(struct frame *frame, size_t length, bool striped, lane_left left, void *owner)
{
    struct delivery *delivery = frame->delivery;
    frame->length -= frame->room - length;
    frame->room = (uint32_t) length;
    frame->striped = striped;
    frame->left = left;
    frame->owner = owner;
    OPAL_THREAD_LOCK(&delivery->lock);
    delivery->begun--;
    bool is_lost = delivery->lost, is_claimed = false;
    if (!is_lost) {
        frame_keep(frame);
        is_claimed = frame_claim(frame);
        if (OPAL_UNLIKELY(!is_claimed))
            frame_defer(frame);
    }
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (OPAL_UNLIKELY(is_lost)) {
        struct told told = frame_take_owner(frame);
        free(frame);
        told.status = OMPI_ERR_UNREACH;
        tell(told);
    } else if (OPAL_LIKELY(is_claimed)) {
        frame_transmit(frame);
    }
}

int delivery_send(struct lane *lane, const void *bytes, size_t length, lane_left left, void *owner)
{
    int rc;
    struct frame *frame = frame_begin(lane, length, &rc);
    if (!frame)
        return rc;
    memcpy(frame_message(frame), bytes, length);
    frame_send(frame, length, false, left, owner);
    return LANE_UNDER_WAY;
}

void delivery_resend(struct delivery *delivery)
{
    struct frame *batch[RESEND_BATCH];
    int rc = OMPI_SUCCESS;
    while (rc == OMPI_SUCCESS) {
        int count = 0;
        OPAL_THREAD_LOCK(&delivery->lock);
        for (struct frame *at = delivery->unsent > 0 ? delivery->first : NULL;
             at && count < RESEND_BATCH; at = at->next) {
            if (!at->unsent || at->busy || !frame_claim(at))
                continue;
            at->unsent = false;
            delivery->unsent--;
            batch[count++] = at;
        }
        OPAL_THREAD_UNLOCK(&delivery->lock);
        if (count == 0)
            return;
        for (int i = 0; i < count; i++) {
            int sent = frame_transmit(batch[i]);
            if (sent != LANE_LEFT && sent != LANE_UNDER_WAY)
                rc = sent;
        }
    }
}

void delivery_take_back(struct delivery *delivery, struct lane *lane)
{
    stripe_lane_lost(lane);
    for (struct frame *frame = delivery->first; frame; frame = frame->next)
        if (frame->lane == lane)
            frame_defer(frame);
}

void delivery_lane_up(struct delivery *delivery)
{
    for (int i = 0; i < peer_lane_count(delivery->peer); i++)
        if (!lane_is_up(&delivery->peer->lanes[i]))
            delivery_take_back(delivery, &delivery->peer->lanes[i]);
}

void delivery_park(struct delivery *delivery)
{
    OPAL_THREAD_LOCK(&delivery->lock);
    for (struct frame *frame = delivery->first; frame; frame = frame->next) {
        frame_defer(frame);
        frame->lane = NULL;
    }
    OPAL_THREAD_UNLOCK(&delivery->lock);
}

/* With the lock held: the frame is not kept any more; its last user frees it. */
static void frame_end(struct frame *frame)
{
    frame->done = true;
    if (frame->left) { /* its owner, not told yet, is a user */
        frame->users++;
        frame->next = frame->delivery->departed;
        frame->delivery->departed = frame;
    } else if (frame->users == 0) {
        free(frame);
    }
}

/* With the lock held: forgets frames below `number`, which the peer has. */
static void frames_forget(struct delivery *delivery, uint32_t number)
{
    while (delivery->first && (int32_t) (delivery->first->number - number) < 0) {
        struct frame *frame = delivery->first;
        delivery->first = frame->next;
        atomic_fetch_sub_explicit(&delivery->kept_bytes, frame->length, memory_order_relaxed);
        frame_need_not_be_sent(frame);
        frame_end(frame);
    }
    if (!delivery->first)
        delivery->last = &delivery->first;
}

/* Tells the owners of forgotten frames. No lock is held. */
static void owners_tell(struct delivery *delivery, int status)
{
    OPAL_THREAD_LOCK(&delivery->lock);
    struct frame *departed = delivery->departed;
    delivery->departed = NULL;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    while (departed) {
        struct frame *frame = departed;
        departed = frame->next;
        OPAL_THREAD_LOCK(&delivery->lock);
        struct told told = frame_take_owner(frame);
        bool is_mine = frame_release(frame);
        OPAL_THREAD_UNLOCK(&delivery->lock);
        if (is_mine)
            free(frame);
        told.status = status;
        tell(told);
    }
}

void delivery_abandon(struct delivery *delivery)
{
    OPAL_THREAD_LOCK(&delivery->lock);
    delivery->lost = true;
    delivery->acknowledged = delivery->next;
    frames_forget(delivery, delivery->next);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    for (int i = 0; i < peer_lane_count(delivery->peer); i++)
        lane_return_none(&delivery->peer->lanes[i]);
    owners_tell(delivery, OMPI_ERR_UNREACH);
}

/* With the lock held. False: the peer cannot have that many. */
static bool acknowledge(struct delivery *delivery, uint32_t heard)
{
    if ((int32_t) (heard - delivery->acknowledged) <= 0)
        return true; /* known before, by another lane */
    if ((int32_t) (delivery->next - heard) < 0)
        return false;
    delivery->acknowledged = heard;
    delivery->moved_ns = active_time_ns();
    frames_forget(delivery, heard);
    return true;
}

/* An answer came on the lane that carried a frame before the question, and the frame is missing.
 * A lane keeps its order, so the frame was lost. With the lock held. */
static void frames_missed(struct delivery *delivery, const struct lane *lane,
                          const struct wire_heard *heard)
{
    for (struct frame *frame = delivery->first; frame; frame = frame->next) {
        uint32_t beyond = frame->number - heard->heard; /* 0: the first missing frame */
        if (beyond > 64)
            return;
        bool has_come = beyond > 0 && heard->beyond >> (beyond - 1) & 1;
        if (!has_come && frame->lane == lane && (int32_t) (heard->ask - frame->ask) > 0)
            frame_defer(frame);
    }
}

bool delivery_heard(struct peer *peer, struct lane *lane, const struct wire_heard *heard)
{
    struct delivery *delivery = delivery_find(peer);
    if (!delivery)
        return false;
    OPAL_THREAD_LOCK(&delivery->lock);
    bool good = acknowledge(delivery, heard->heard) && (int32_t) (delivery->ask - heard->ask) >= 0;
    if (good) {
        delivery->alive_ns = active_time_ns();
        if (heard->ask && lane) {
            if (heard->heard == delivery->acknowledged) /* else the answer is old */
                frames_missed(delivery, lane, heard);
            bool was_up = lane_is_up(lane);
            health_answered(delivery, lane, heard->ask);
            if (!was_up && lane_is_up(lane))
                delivery_lane_up(delivery);
        }
        if (delivery->unsent > 0)
            schedule_add(delivery);
    }
    good |= delivery->lost;
    bool any_departed = delivery->departed != NULL;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (OPAL_UNLIKELY(any_departed))
        owners_tell(delivery, OMPI_SUCCESS);
    return good;
}

/* --- frames of the peer ----------------------------------------------------------------------- */

static uint64_t *word_of(struct delivery *delivery, uint32_t number)
{
    return &delivery->come[number % WIRE_FRAME_WINDOW / 64];
}

static uint64_t bit_of(uint32_t number)
{
    return UINT64_C(1) << number % 64;
}

/* With the lock held: notes that the frame arrived. False: it is a duplicate. */
static bool note(struct delivery *delivery, uint32_t number)
{
    if (*word_of(delivery, number) & bit_of(number))
        return false;
    uint32_t heard = delivery->heard;
    if (OPAL_LIKELY(number == heard && !(*word_of(delivery, heard + 1) & bit_of(heard + 1)))) {
        delivery->heard = heard + 1; /* in its turn, and none waits behind it */
        return true;
    }
    *word_of(delivery, number) |= bit_of(number);
    while (*word_of(delivery, heard) & bit_of(heard)) {
        *word_of(delivery, heard) &= ~bit_of(heard);
        heard++;
    }
    delivery->heard = heard;
    return true;
}

bool delivery_arrived(struct delivery *delivery, const struct wire_frame *wire, size_t length,
                      bool *good)
{
    OPAL_THREAD_LOCK(&delivery->lock);
    uint32_t ahead = wire->number - delivery->heard;
    bool is_old = (int32_t) ahead < 0;
    *good = (is_old || ahead < WIRE_FRAME_WINDOW) &&
            (acknowledge(delivery, wire->heard) || delivery->lost);
    bool is_new = *good && !is_old && note(delivery, wire->number);
    if (*good) {
        if (delivery->owed_frames == 0)
            delivery->owed_ns = active_time_ns();
        delivery->owed_frames++;
        delivery->owed_bytes += length;
        delivery->owes_now |= !is_new;
        delivery->alive_ns = active_time_ns();
        schedule_add(delivery);
    }
    bool any_departed = delivery->departed != NULL;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (OPAL_UNLIKELY(any_departed))
        owners_tell(delivery, OMPI_SUCCESS);
    if (*good && !is_new)
        counter_add(&multilane.duplicates, 1);
    return is_new;
}

void delivery_tell(struct delivery *delivery, struct lane *lane, uint32_t ask)
{
    struct wire_heard heard = {.ask = ask};
    OPAL_THREAD_LOCK(&delivery->lock);
    heard.heard = delivery->heard;
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t number = heard.heard + 1 + i;
        if (*word_of(delivery, number) & bit_of(number))
            heard.beyond |= UINT64_C(1) << i;
    }
    uint32_t frames = delivery->owed_frames;
    size_t bytes = delivery->owed_bytes;
    OPAL_THREAD_UNLOCK(&delivery->lock);

    if (!control_send_bare(lane, WIRE_HEARD, &heard, sizeof(heard)))
        return; /* still owed */
    OPAL_THREAD_LOCK(&delivery->lock);
    delivery->owed_frames -= frames < delivery->owed_frames ? frames : delivery->owed_frames;
    delivery->owed_bytes -= bytes < delivery->owed_bytes ? bytes : delivery->owed_bytes;
    delivery->owes_now = false;
    OPAL_THREAD_UNLOCK(&delivery->lock);
}

void delivery_answer(struct delivery *delivery, struct lane *lane)
{
    OPAL_THREAD_LOCK(&delivery->lock);
    bool is_due =
        delivery->owed_frames >= OWED_FRAMES_MAX || delivery->owed_bytes >= OWED_BYTES_MAX;
    OPAL_THREAD_UNLOCK(&delivery->lock);
    if (!is_due)
        return;
    if (!lane || !lane_is_up(lane))
        lane = peer_lane_for(delivery->peer, 0);
    if (lane)
        delivery_tell(delivery, lane, 0);
}

void delivery_asked(struct peer *peer, struct lane *lane, const struct wire_ask *ask)
{
    struct delivery *delivery = delivery_of(peer);
    /* Without room now: the next question will be answered. */
    if (delivery && lane && lane_state(lane) != LANE_BROKEN)
        delivery_tell(delivery, lane, ask->number);
}

bool delivery_lane_broke(struct lane *lane, const char *what, const char *why)
{
    /* Also for a lane that has carried nothing yet: later messages go by another lane. */
    struct delivery *delivery = lane_may_break(lane) ? delivery_of(lane->peer) : NULL;
    char text[sizeof(lane->health.why)];
    if (!delivery)
        return false;
    snprintf(text, sizeof(text), "%s: %s", what, why);
    OPAL_THREAD_LOCK(&delivery->lock);
    if (health_set(delivery, lane, LANE_BROKEN, text))
        delivery_take_back(delivery, lane);
    OPAL_THREAD_UNLOCK(&delivery->lock);
    return true;
}

void delivery_lane_watch(struct lane *lane)
{
    struct delivery *delivery = delivery_of(lane->peer);
    if (!delivery)
        return;
    OPAL_THREAD_LOCK(&delivery->lock);
    schedule_add(delivery);
    OPAL_THREAD_UNLOCK(&delivery->lock);
}
