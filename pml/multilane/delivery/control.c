/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable control messages: the queue and the owners; messages that broken lanes return; and
 * when striped bytes are reported. */
#include "delivery/control.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pending.h"
#include "lane/lane.h"

/* A control message that its lane has refused, or still has in this process. */
struct control {
    struct pending pending;
    struct lane *lane;
    _Atomic lane_left left; /* null: the owner was notified, or there is none */
    void *owner;
    uint64_t until_ns; /* when the owner stops waiting; 0: never */
    uint32_t looks;    /* tries so far: on a crowded node the time may pass with few of them */
    _Atomic uint32_t holders; /* the pending queue and the lane; the last one frees it */
    bool is_under_way;
    uint8_t tag; /* WIRE_TAG, or that of osc/rdma, whose message a lane has returned */
    size_t length;
    unsigned char bytes[];
};

static void control_drop(struct control *control)
{
    /* Release: this holder's use. Acquire: the other holder's, before the memory is freed. */
    if (atomic_fetch_sub_explicit(&control->holders, 1, memory_order_acq_rel) == 1)
        free(control);
}

/* Notifies the owner; only the first call does. Acquire and release: the lane's callback and the
 * queue may be in different threads. */
static void control_notify(struct control *control, int status)
{
    lane_left left = atomic_exchange_explicit(&control->left, NULL, memory_order_acq_rel);
    if (left)
        left(control->owner, status);
}

static void control_left(void *owner, int status)
{
    struct control *control = owner;
    control_notify(control, status);
    control_drop(control);
}

/* It concerns only the lane that it was sent on. */
static bool is_of_lane(const void *bytes)
{
    uint8_t type = ((const struct wire_base *) bytes)->type;
    return type == WIRE_LANE || type == WIRE_RECEIVED || type == WIRE_ALIVE || type == WIRE_ASK ||
           type == WIRE_FENCE || type == WIRE_WRONG;
}

static bool is_ours(const struct control *control)
{
    return control->tag == WIRE_TAG;
}

/* The lane for a message that was written for `lane`. Null: none now. What says that bytes are in
 * place waits, before it goes by another lane, until they cannot be written again. */
static struct lane *taker(struct lane *lane, const void *bytes, size_t length)
{
    const struct wire_base *base = bytes;
    if (OPAL_LIKELY(!lane->returns || lane_is_up(lane)))
        return lane;
    if ((base->type == WIRE_FIN || base->type == WIRE_FIN_SUMMED) && lane_fence(lane) == LANE_AGAIN)
        return NULL;
    return peer_lane_instead(lane, length);
}

/* It goes over another lane than it was written for, which may have counted it. */
static void mark_moved(void *bytes)
{
    struct wire_base *base = bytes;
    base->traits = (uint16_t) ((base->traits & ~WIRE_STRIPED) | WIRE_MOVED);
}

/* Its lane is not up, and it goes by no other. */
static bool is_dropped(struct lane *lane, const void *bytes)
{
    if (OPAL_LIKELY(!lane->returns || lane_is_up(lane)) || !is_of_lane(bytes))
        return false;
    /* Its index is sent again. Relaxed: see rma.c. */
    if (((const struct wire_base *) bytes)->type == WIRE_LANE)
        atomic_store_explicit(&lane->introduced, false, memory_order_relaxed);
    return true;
}

static struct lane *taker_of(struct control *control)
{
    struct lane *lane = control->lane;
    if (OPAL_UNLIKELY(!is_ours(control)))
        return lane_is_up(lane) ? lane : peer_lane_instead(lane, control->length);
    lane = taker(lane, control->bytes, control->length);
    if (OPAL_UNLIKELY(lane && lane != control->lane))
        mark_moved(control->bytes);
    return lane;
}

static int control_give(struct control *control)
{
    if (OPAL_UNLIKELY(is_ours(control) && is_dropped(control->lane, control->bytes)))
        return LANE_LEFT;
    struct lane *lane = taker_of(control);
    if (OPAL_UNLIKELY(!lane))
        return LANE_AGAIN;
    control->lane = lane;
    atomic_fetch_add_explicit(&control->holders, 1, memory_order_relaxed); /* control_drop orders */
    control->is_under_way = true;
    int rc = OPAL_LIKELY(is_ours(control))
                 ? lane_send_plain(lane, control->bytes, control->length, control_left, control)
                 : lane_send_tagged(lane, control->tag, control->bytes, control->length,
                                    control_left, control);
    if (rc == LANE_UNDER_WAY)
        return rc;
    control->is_under_way = false;
    control_drop(control);
    return rc;
}

/* At least so many tries before the owner stops waiting. */
#define LOOKS_LEAST 100

/* True: try again later. Notifies the owner once its message has left, has failed, or has taken too
 * long. */
static bool control_waits(struct control *control, int rc)
{
    if (rc != LANE_AGAIN && rc != LANE_UNDER_WAY) {
        if (rc != LANE_LEFT) /* the peer would wait for it for ever */
            lane_events.failed(control->lane, "could not send a control message", rc);
        control_notify(control, rc);
        return false;
    }
    if (rc == LANE_UNDER_WAY && !atomic_load_explicit(&control->left, memory_order_acquire))
        return false; /* the callback has notified the owner; acquire, against control_notify */
    if (control->until_ns && ++control->looks >= LOOKS_LEAST &&
        clock_now_ns() >= control->until_ns) {
        control_notify(control, OMPI_SUCCESS);
        control->until_ns = 0;
    }
    return rc == LANE_AGAIN || control->until_ns;
}

static int control_retry(struct pending *pending)
{
    struct control *control = (struct control *) pending;
    const struct peer *peer = control->lane->peer;
    if (OPAL_UNLIKELY(pending_queue.is_closed)) { /* its owner may be freed already */
        atomic_store_explicit(&control->left, NULL, memory_order_relaxed);
        control_drop(control);
        return OMPI_SUCCESS;
    }
    if (OPAL_UNLIKELY(peer_is_gone(peer) || peer_lane_count(peer) == 0)) { /* or forgotten */
        control_notify(control, OMPI_ERR_UNREACH);
        control_drop(control);
        return OMPI_SUCCESS;
    }
    int rc = control->is_under_way ? LANE_UNDER_WAY : control_give(control);
    if (control_waits(control, rc))
        return LANE_AGAIN;
    control_drop(control);
    return OMPI_SUCCESS;
}

/* Null: no memory. */
static struct control *control_new(struct lane *lane, uint8_t tag, const void *bytes, size_t length,
                                   const void *more, size_t more_length)
{
    struct control *control = malloc(sizeof(*control) + length + more_length);
    if (!control)
        return NULL;
    *control = (struct control){
        .pending = {.retry = control_retry, .is_unsent = true, .frees_itself = true},
        .lane = lane,
        .tag = tag,
        .holders = 1,
        .length = length + more_length};
    memcpy(control->bytes, bytes, length);
    if (more_length)
        memcpy(control->bytes + length, more, more_length);
    return control;
}

/* Where there is no memory the lane counts as failed, because the peer would wait for the message.
 */
static struct control *control_of(struct lane *lane, const struct control_message *message)
{
    struct control *control = control_new(lane, WIRE_TAG, message->bytes, message->length, NULL, 0);
    if (!control)
        lane_events.failed(lane, "could not keep a control message", OMPI_ERR_OUT_OF_RESOURCE);
    return control;
}

static void control_begin(struct control *control)
{
    if (control_waits(control, control_give(control)))
        pending_add(&control->pending);
    else
        control_drop(control);
}

void control_send_owned(struct lane *lane, uint8_t type, const void *body, size_t length,
                        uint64_t patience_ns, lane_left left, void *owner)
{
    struct control_message message;
    control_write(&message, lane->peer, type, body, length);
    if (OPAL_LIKELY(lane_send_immediately(lane, message.bytes, message.length) == LANE_LEFT)) {
        left(owner, OMPI_SUCCESS);
        return;
    }
    struct control *control = control_of(lane, &message);
    if (!control) {
        left(owner, OMPI_ERR_OUT_OF_RESOURCE);
        return;
    }
    atomic_init(&control->left, left);
    control->owner = owner;
    control->until_ns = patience_ns ? clock_now_ns() + patience_ns : 0;
    control_begin(control);
}

/* Without an owner accepted is as good as left. */
static int taken(int rc)
{
    return rc == LANE_UNDER_WAY ? OMPI_SUCCESS : rc;
}

int control_try(struct lane *lane, const struct control_message *message)
{
    struct control_message moved;
    if (OPAL_UNLIKELY(is_dropped(lane, message->bytes)))
        return OMPI_SUCCESS;
    struct lane *by = taker(lane, message->bytes, message->length);
    if (OPAL_UNLIKELY(!by))
        return LANE_AGAIN;
    if (OPAL_UNLIKELY(by != lane)) {
        moved = *message;
        mark_moved(moved.bytes);
        message = &moved;
        lane = by;
    }
    return taken(lane_send_plain(lane, message->bytes, message->length, NULL, NULL));
}

void control_send_message(struct lane *lane, const struct control_message *message)
{
    int rc = control_try(lane, message);
    if (OPAL_LIKELY(rc == OMPI_SUCCESS))
        return;
    if (rc != LANE_AGAIN) {
        lane_events.failed(lane, "could not send a control message", rc);
        return;
    }
    struct control *control = control_of(lane, message);
    if (control)
        pending_add(&control->pending);
}

void control_send(struct lane *lane, uint8_t type, const void *body, size_t length)
{
    struct control_message message;
    control_write(&message, lane->peer, type, body, length);
    control_send_message(lane, &message);
}

bool control_returned(void *from, uint8_t tag, const void *bytes, size_t length,
                      const void *payload, size_t payload_length)
{
    struct lane *lane = from;
    if (tag == WIRE_TAG && (length < sizeof(struct wire_base) || is_of_lane(bytes)))
        return true;
    struct control *control = control_new(lane, tag, bytes, length, payload, payload_length);
    if (!control) { /* the peer would wait for it for ever */
        lane_events.btl_failed(lane->btl, "has no memory for a message that it returns",
                               OMPI_ERR_OUT_OF_RESOURCE);
        return false;
    }
    if (is_ours(control))
        mark_moved(control->bytes);
    counter_add(&multilane.resent_messages, 1);
    pending_add(&control->pending);
    return true;
}

/* --- striped bytes ---------------------------------------------------------------------------- */

/* When striped bytes are reported. */

/* A report for so many bytes, or, where a lane is slow, for less after this time: often enough for
 * the sender to see a lane that changes, rare beside the data. */
#define REPORT_BYTES     (256u << 10)
#define REPORT_MIN_BYTES (16u << 10)
#define REPORT_NS        500000u

static void report(struct lane *lane)
{
    struct wire_received received = {.bytes = counter_read(&lane->speed.received)};
    /* A report must go by its own lane. A lost report does no harm: the next one holds the sum. */
    if (lane->returns && (lane_state(lane) == LANE_BROKEN ||
                          !control_send_bare(lane, WIRE_RECEIVED, &received, sizeof(received))))
        return;
    counter_set(&lane->speed.reported, received.bytes);
    counter_set(&lane->speed.reported_ns, clock_now_ns());
    if (!lane->returns)
        control_send(lane, WIRE_RECEIVED, &received, sizeof(received));
}

static bool is_due(const struct lane_speed *speed, uint64_t untold)
{
    return untold >= REPORT_BYTES ||
           (untold >= REPORT_MIN_BYTES &&
            clock_now_ns() - counter_read(&speed->reported_ns) >= REPORT_NS);
}

void received_on_lane(struct lane *lane, size_t size)
{
    if (!lane || lane_measures(lane))
        return;
    uint64_t received =
        atomic_fetch_add_explicit(&lane->speed.received, size, memory_order_relaxed) + size;
    if (is_due(&lane->speed, received - counter_read(&lane->speed.reported)))
        report(lane);
}

void received_flush(struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane_speed *speed = &peer->lanes[i].speed;
        if (OPAL_UNLIKELY(counter_read(&speed->received) != counter_read(&speed->reported)))
            report(&peer->lanes[i]);
    }
}
