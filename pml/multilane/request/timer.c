/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of messages, and their answers. */
#include "request/timer.h"

#include <math.h>

#include "base/clock.h"
#include "base/multilane.h"
#include "plan/learning.h"

/* Timers whose answer has not come. An answer may never come: then the oldest one is used again. */
#define TIMERS 64u

/* One message in so many is timed: at first, and at most. In between it is one in a sixteenth of
 * those that went before. */
#define EVERY_FIRST    8u
#define EVERY_LAST     256u
#define EVERY_PART     16u
#define EVERY_OF_SPANS 32u
/* Where a message takes much longer than its answer, plans follow a machine that changes sooner. */
#define EVERY_LARGE_BYTES (UINT64_C(256) << 10)

/* From the first message of a stream that is timed to the last one, where windows are longer: of a
 * shorter one all are timed. */
#define SPAN_MESSAGES 8u

struct timer {
    uint32_t generation; /* of its answer; 0: it waits for none */
    const struct peer *peer;
    struct peer_class *class;
    const struct route *route;
    uint64_t bytes;
    uint64_t since_ns;
    uint32_t messages; /* that the time is divided among */
};

/* Messages of a stream that follow each other, by one route. */
struct span {
    /* Messages up to the last one; 0: there is no span. Written with the lock; read without it as
     * a hint, relaxed. */
    _Atomic uint32_t left;
    const struct peer *peer;
    const struct route *planned;
    struct route *route;
    uint32_t bucket;
    uint64_t bytes;    /* of its first one */
    uint32_t messages; /* of the span, and before it, that were under way when it began */
    uint64_t since_ns;
};

static struct {
    bool is_begun;
    opal_mutex_t lock; /* guards what follows; a leaf */
    uint32_t next, generation;
    uint64_t clock_ns; /* what reading the clock takes */
    struct timer timer[TIMERS];
    struct span span;
} timers;

void timers_begin(void)
{
    OBJ_CONSTRUCT(&timers.lock, opal_mutex_t);
    timers.clock_ns = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before_ns = clock_now_ns(), taken_ns = clock_now_ns() - before_ns;
        if (taken_ns < timers.clock_ns)
            timers.clock_ns = taken_ns;
    }
    timers.is_begun = true;
}

void timers_end(void)
{
    if (timers.is_begun)
        OBJ_DESTRUCT(&timers.lock);
    timers.is_begun = false;
    atomic_store_explicit(&timers.span.left, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < TIMERS; i++)
        timers.timer[i].generation = 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* With the lock held. */
static void timer_start(struct outgoing *out, struct peer_class *class, const struct route *route,
                        uint64_t since_ns, uint32_t messages)
{
    uint32_t index = timers.next++ % TIMERS;
    timers.generation += timers.generation == UINT32_MAX ? 2 : 1; /* never 0 */
    timers.timer[index] = (struct timer){.generation = timers.generation,
                                         .peer = out->peer,
                                         .class = class,
                                         .route = route,
                                         .bytes = out->size,
                                         .since_ns = since_ns,
                                         .messages = messages};
    out->answer = (struct wire_handle){WIRE_TIMER_FIRST + index, timers.generation};
}

static uint64_t messages_between(const struct peer_class *class, enum class_buffer buffer,
                                 uint64_t bytes, uint64_t number)
{
    uint64_t part = number / EVERY_PART;
    uint64_t least = class_is_stream(buffer) ? EVERY_OF_SPANS : EVERY_FIRST;
    uint64_t most = bytes < EVERY_LARGE_BYTES ? EVERY_LAST : least;
    if (learning_is_promised(class, buffer, learned_bucket(bytes)))
        return class_is_stream(buffer) ? least : 1; /* the span under way is to end */
    return part < least ? least : part > most ? most : part;
}

static struct route *message_time(struct outgoing *out, struct peer_class *class,
                                  struct route *route, uint64_t between)
{
    struct route *chosen = learning_route(class, route, out->size, between, 1);
    OPAL_THREAD_LOCK(&timers.lock);
    timer_start(out, class, chosen, clock_now_ns(), 1);
    OPAL_THREAD_UNLOCK(&timers.lock);
    return chosen;
}

/* Messages of a span behind its first one; 0: none begins here. Most windows have few messages, so
 * one like the last is a span as a whole; of a longer one, or one of unknown length, a part is. */
static uint32_t span_length(const struct peer *peer, bool is_first)
{
    uint32_t last_window = atomic_load_explicit(&peer->last_window, memory_order_relaxed);
    uint32_t in_window = atomic_load_explicit(&peer->in_window, memory_order_relaxed);
    if (last_window > 1 && last_window <= SPAN_MESSAGES + 1 && in_window <= SPAN_MESSAGES + 1)
        return is_first ? last_window - 1 : 0;
    return is_first ? 0 : SPAN_MESSAGES;
}

static struct route *span_begin(struct outgoing *out, struct peer_class *class, struct route *route,
                                uint64_t between, uint32_t length)
{
    struct route *chosen = learning_route(class, route, out->size, between, length);
    OPAL_THREAD_LOCK(&timers.lock);
    struct span *span = &timers.span;
    span->peer = out->peer;
    span->planned = route;
    span->route = chosen;
    span->bucket = learned_bucket(out->size);
    span->bytes = out->size;
    span->messages = 1 + length + peer_under_way(out->peer);
    span->since_ns = clock_now_ns();
    atomic_store_explicit(&span->left, length, memory_order_relaxed);
    OPAL_THREAD_UNLOCK(&timers.lock);
    return chosen;
}

/* The route of the next message of the span; null: it is none, and one of another kind ends it. */
static struct route *span_next(struct outgoing *out, struct peer_class *class,
                               const struct route *planned)
{
    struct span *span = &timers.span;
    struct route *route = NULL;
    OPAL_THREAD_LOCK(&timers.lock);
    uint32_t left = atomic_load_explicit(&span->left, memory_order_relaxed);
    if (span->peer == out->peer && left) {
        /* A way that is tried was chosen for a size, and may not carry a larger one. */
        bool carries = span->route == span->planned || out->size <= span->bytes;
        if (carries && span->planned == planned && span->bucket == learned_bucket(out->size)) {
            route = span->route;
            if (--left == 0)
                timer_start(out, class, route, span->since_ns, span->messages);
        } else {
            left = 0;
        }
        atomic_store_explicit(&span->left, left, memory_order_relaxed);
    }
    OPAL_THREAD_UNLOCK(&timers.lock);
    return route;
}

/* A network is done with an eager message before the peer has it. So those that are on their way
 * are known by time alone: the ones before this message, if the peer has said nothing since and
 * they fill the lane still. The message is added to them. */
static bool follows_unseen(const struct outgoing *out, struct peer_class *class)
{
    struct peer *peer = out->peer;
    const struct model_lane *lane = &class->lanes[class->control];
    const struct model_lane_range *range = model_lane_range_at(lane, MODEL_BY_SEND, out->size);
    if (lane->can & MODEL_CAN_RING || !range)
        return false;
    uint64_t now_ns = clock_now_ns();
    uint64_t until_ns = atomic_load_explicit(&peer->fills_until_ns, memory_order_relaxed);
    uint32_t heard = peer_next_sequence(peer);
    bool follows = until_ns > now_ns &&
                   atomic_load_explicit(&peer->heard_before, memory_order_relaxed) == heard;
    double fills_s = range->overhead_send_s + (double) out->size / range->bandwidth_bytes_s;
    atomic_store_explicit(&peer->fills_until_ns,
                          (follows ? until_ns : now_ns) + (uint64_t) (1e9 * fills_s),
                          memory_order_relaxed);
    atomic_store_explicit(&peer->heard_before, heard, memory_order_relaxed);
    return follows;
}

/* Is more on its way to the peer, as far as it has said, than a message of that size? */
static bool is_ahead(const struct peer *peer, size_t bytes)
{
    double unused;
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (peer->lanes[i].returns && lane_under_way(&peer->lanes[i], 0, &unused) >= bytes)
            return true;
    return false;
}

static bool is_behind(const struct outgoing *out, struct peer_class *class)
{
    bool follows = follows_unseen(out, class);
    return follows || peer_under_way(out->peer) || is_ahead(out->peer, out->size);
}

/* The first message of a window of a stream follows none, but goes the way of the others: two ways
 * at once are slower than each. So one that follows none is a single one if the last did not follow
 * any either. */
static bool is_first_of_window(struct peer *peer, bool is_behind)
{
    uint32_t in_window = atomic_load_explicit(&peer->in_window, memory_order_relaxed);
    if (!is_behind)
        atomic_store_explicit(&peer->last_window, in_window, memory_order_relaxed);
    atomic_store_explicit(&peer->in_window, is_behind ? in_window + 1 : 1, memory_order_relaxed);
    return !is_behind && in_window > 1;
}

static enum class_buffer as_stream(enum class_buffer buffer)
{
    return buffer == CLASS_CONTIGUOUS ? CLASS_STREAM
           : buffer == CLASS_PACKED   ? CLASS_STREAM_PACKED
                                      : buffer;
}

static void plan_again(struct peer_class *class, enum class_buffer buffer)
{
    multilane_lock();
    if (learning_is_due(class, buffer))
        learning_plan(class, buffer);
    multilane_unlock();
}

/* Messages of other kinds than those that say something of the whole way are not timed: a
 * synchronous one waits for more, and one of a sender that leaves may find no one. */
static bool is_timed(const struct outgoing *out, const struct peer_class *class,
                     enum class_buffer buffer)
{
    return timers.is_begun &&
           (class_learns(class) || class->is_measured || reports_are_written()) &&
           !out->peer->is_self && !handle_is_set(out->answer) && buffer != CLASS_SYNC &&
           buffer != CLASS_SYNC_PACKED && buffer != CLASS_LEAVING;
}

struct route *timer_route(struct outgoing *out, enum class_buffer asked)
{
    struct peer_class *class = peer_class_now(out->peer);
    bool follows = is_behind(out, class), is_first = is_first_of_window(out->peer, follows);
    enum class_buffer buffer = follows || is_first ? as_stream(asked) : asked;
    bool is_stream = class_is_stream(buffer);
    uint32_t span = is_stream ? span_length(out->peer, is_first) : 0;
    struct route *route = class_route_at(class, buffer, out->size);
    struct tally *tally = &class->tally[buffer][learned_bucket(out->size)];
    uint64_t number = counter_add(&tally->messages, 1) + 1;
    struct route *of_span =
        OPAL_UNLIKELY(atomic_load_explicit(&timers.span.left, memory_order_relaxed))
            ? span_next(out, class, is_first ? NULL : route) /* the program may have computed */
            : NULL;
    if (of_span)
        route = of_span;
    else if ((span > 0 || !is_stream) &&
             (class->is_measured ||
              number >= atomic_load_explicit(&tally->timed_at, memory_order_relaxed)) &&
             is_timed(out, class, buffer)) {
        if (learning_is_due(class, buffer)) {
            plan_again(class, buffer);
            route = class_route_at(class, buffer, out->size);
        }
        uint64_t between = messages_between(class, buffer, out->size, number);
        atomic_store_explicit(&tally->timed_at, number + between, memory_order_relaxed);
        route = is_stream ? span_begin(out, class, route, between, span)
                          : message_time(out, class, route, between);
    }
    (void) route_count(route, out->size);
    return route;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A message that is as short as its answer takes as long. */
#define AS_ANSWER_BYTES 64

/* What a short message takes, as was seen, or else as the plan has it: the answer's part where the
 * clocks differ. */
static double answer_s(const struct peer_class *class)
{
    if (class->answer_s > 0)
        return class->answer_s;
    const struct model_lane *lane = &class->lanes[class->control];
    const struct model_lane_range *range = model_lane_range_at(lane, MODEL_BY_SEND, 1);
    return range ? range->latency_s + range->overhead_send_s + range->overhead_receive_s : 0;
}

/* From the start to the end at the receiver; 0: it says nothing. */
static double one_way_s(const struct timer *timer, uint64_t ended_ns, uint64_t now_ns)
{
    uint64_t taken_ns = now_ns - timer->since_ns;
    if (timer->class->placement != PROFILE_HOST) {
        if (ended_ns < timer->since_ns || ended_ns > now_ns)
            return 0; /* another time namespace */
        taken_ns = ended_ns - timer->since_ns;
        return taken_ns > timers.clock_ns ? 1e-9 * (double) (taken_ns - timers.clock_ns) : 0;
    }
    double seconds = 1e-9 * (double) taken_ns, answer = answer_s(timer->class);
    if (timer->bytes <= AS_ANSWER_BYTES && timer->messages == 1) {
        double *seen_s = &timer->class->answer_s;
        *seen_s =
            *seen_s > 0 ? *seen_s + (fmin(seconds / 2, 2 * *seen_s) - *seen_s) / 8 : seconds / 2;
        return seconds / 2;
    }
    return seconds > 2 * answer ? seconds - answer : seconds / 2;
}

void timer_answered(const struct peer *peer, const struct wire_time *time)
{
    uint32_t index = time->timer.index - WIRE_TIMER_FIRST;
    uint64_t now_ns = clock_now_ns();
    double seconds = 0;
    if (index >= TIMERS || !timers.is_begun)
        return;
    OPAL_THREAD_LOCK(&timers.lock);
    struct timer timer = timers.timer[index];
    bool is_its =
        timer.generation && timer.generation == time->timer.generation && timer.peer == peer;
    if (is_its) {
        timers.timer[index].generation = 0;
        seconds = one_way_s(&timer, time->ended_ns, now_ns) / timer.messages;
    }
    OPAL_THREAD_UNLOCK(&timers.lock);
    if (seconds > 0 && !(time->may_have_lain && timer.messages == 1))
        learning_add(timer.class, timer.route, timer.bytes, seconds);
}
