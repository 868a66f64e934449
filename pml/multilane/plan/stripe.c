/* SPDX-License-Identifier: BSD-3-Clause */
/* Speeds of lanes, measured during use.
 *
 * The receiver counts the striped bytes of each lane and sends the count back on that lane. What
 * was sent and not reported is under way. If something was under way all the time between two
 * reports, the lane was busy, and the bytes by the time are its speed. Completions of BTLs are
 * not used, because a completed send may stay in a kernel for a second; nor is the peer's clock.
 *
 * Where the BTL measures a lane, that is used instead: it sees single messages as well. The
 * receiver does not report such lanes. */
#include "plan/stripe.h"

#include <math.h>

#include "base/clock.h"
#include "base/multilane.h"

/* How long a piece should take, so that the last pieces of all lanes end together. A piece below
 * PIECE_MIN costs more than that gains. */
#define PIECE_S        1e-3
#define PIECE_MIN      ((size_t) 16 << 10)
#define PIECE_ALIGN    ((size_t) 4096) /* enough for every get and put */
#define FRAGMENT_ALIGN ((size_t) 64)
/* Pieces per lane of a message, where they do not get too short. */
#define PIECES_A_LANE 8

/* A piece given to a lane cannot move to another. So a lane gets only enough to be busy until
 * the next report, and the rest takes the lane that is free first. The window counts time,
 * because fast lanes need more, and at least some bytes, because reports may be late on a
 * crowded node. It is small while the speed is unknown. */
#define WINDOW_S      8e-3
#define WINDOW_BYTES  ((uint64_t) 4 << 20)
#define WINDOW_OF_NEW ((uint64_t) 512 << 10)

/* A shorter burst measures mostly latency. */
#define MEASURE_BYTES (64u << 10)

/* The time over which the speed is averaged. */
#define MEMORY_NS 100000000u
/* One sample makes a lane so many times slower at most. */
#define SLOWER_MOST 4

static void speed_init(struct lane_speed *speed, const struct model_lane_cost *cost)
{
    *speed = (struct lane_speed){.bytes_s = 1000000000};
    if (cost->range_count) {
        const struct model_lane_range *range = &cost->ranges[cost->range_count - 1];
        if (range->bandwidth_bytes_s < 1e15)
            atomic_init(&speed->bytes_s, (uint64_t) range->bandwidth_bytes_s);
        speed->latency_s = range->latency_s;
    }
}

void stripe_init(struct lane *lane, const struct model_lane *attributes)
{
    if (counter_read(&lane->speed.bytes_s))
        return;
    enum model_way way = attributes->cost[MODEL_BY_GET].range_count ? MODEL_BY_GET : MODEL_BY_PUT;
    speed_init(&lane->speed, &attributes->cost[MODEL_BY_SEND]);
    speed_init(&lane->copy_speed, &attributes->cost[way]);
}

double stripe_observed_speed(const struct lane *lane, bool copies)
{
    const struct lane_speed *speed = copies ? &lane->copy_speed : &lane->speed;
    if (!copies && lane_measures(lane))
        return lane_observed_bytes_s(lane);
    return counter_read(&speed->measured_ns) ? (double) counter_read(&speed->bytes_s) : 0;
}

uint64_t stripe_carried(const struct lane *lane, bool copies)
{
    const struct lane_speed *speed = copies ? &lane->copy_speed : &lane->speed;
    return counter_read(!copies && lane_measures(lane) ? &speed->sent : &speed->confirmed);
}

/* Bytes that were written off and then reported would make it negative for a moment. */
static uint64_t under_way(const struct lane_speed *speed)
{
    uint64_t sent = counter_read(&speed->sent);
    uint64_t gone = counter_read(&speed->confirmed) + counter_read(&speed->written_off);
    return sent > gone ? sent - gone : 0;
}

void stripe_lane_lost(struct lane *lane)
{
    struct lane_speed *speed = &lane->speed;
    counter_set(&speed->written_off, counter_read(&speed->sent) - counter_read(&speed->confirmed));
}

/* When would a piece that is sent now arrive? */
static double arrival_s(const struct lane_speed *speed, size_t size)
{
    return (double) (under_way(speed) + size) / (double) counter_read(&speed->bytes_s) +
           speed->latency_s;
}

static size_t piece_of(double bytes_s, size_t most, size_t left)
{
    double piece = bytes_s * PIECE_S;
    size_t size = piece < (double) most ? (size_t) piece : most;
    size = size < PIECE_MIN ? PIECE_MIN : size & ~(PIECE_ALIGN - 1);
    return size < left ? size : left;
}

static bool has_enough(const struct lane_speed *speed)
{
    uint64_t window = WINDOW_OF_NEW;
    if (counter_read(&speed->measured_ns)) {
        window = (uint64_t) ((double) counter_read(&speed->bytes_s) * WINDOW_S);
        if (window < WINDOW_BYTES)
            window = WINDOW_BYTES;
    }
    return under_way(speed) >= window;
}

/* The lane on which the next piece arrives first. */
struct choice {
    size_t most, left; /* of a piece, of the message */
    double best_s;
    size_t size;
    int index; /* below 0: no lane yet */
};

static struct choice choice_of(size_t total, size_t left, int lanes)
{
    return (struct choice){.most = total / (PIECES_A_LANE * (size_t) lanes),
                           .left = left,
                           .best_s = INFINITY,
                           .size = left,
                           .index = -1};
}

static void choice_offer(struct choice *choice, int index, size_t piece, double lane_s)
{
    if (lane_s >= choice->best_s)
        return;
    choice->index = index;
    choice->best_s = lane_s;
    choice->size = piece;
}

static void choice_weigh(struct choice *choice, int index, const struct lane_speed *speed)
{
    size_t piece = piece_of((double) counter_read(&speed->bytes_s), choice->most, choice->left);
    choice_offer(choice, index, piece, arrival_s(speed, piece));
}

/* A lane that its BTL measures: until then by what is declared. */
static double measured_bytes_s(const struct lane *lane)
{
    double bytes_s = lane_observed_bytes_s(lane);
    return bytes_s > 0 ? bytes_s : (double) counter_read(&lane->speed.bytes_s);
}

static void choice_weigh_lane(struct choice *choice, int index, const struct lane *lane)
{
    if (!lane_measures(lane)) {
        choice_weigh(choice, index, &lane->speed);
        return;
    }
    double lane_s;
    size_t piece = piece_of(measured_bytes_s(lane), choice->most, choice->left);
    (void) lane_under_way(lane, piece, &lane_s);
    choice_offer(choice, index, piece, lane_s);
}

/* What is gained by less is lost again where messages come out of turn. */
#define TURNS_S 20e-6

struct lane *stripe_instead(struct lane *lane, size_t size)
{
    struct lane *best = lane;
    double best_s, other_s;
    size_t length = size + WIRE_EAGER_HEADER_MAX;
    if (OPAL_UNLIKELY(!lane_is_up(lane)))
        return peer_lane_instead(lane, 0);
    if (peer_lane_count(lane->peer) == 1)
        return lane;
    (void) lane_under_way(lane, length, &best_s);
    best_s -= TURNS_S;
    if (best_s <= 0)
        return lane;
    /* Of those that the plan takes for large messages and that may carry short ones: the user or a
     * program may have left others out. */
    struct peer_class *class = peer_class_now(lane->peer);
    const struct route *route = class_route_at(class, CLASS_CONTIGUOUS, SIZE_MAX);
    for (int i = 0; i < route->lane_count; i++) {
        struct lane *other = route_lane(route, lane->peer, i);
        if (other->extension != lane->extension || !lane_carries(other) || !lane_is_up(other) ||
            other->btl->btl_max_send_size < length ||
            !(class->lanes[other->index].use & MODEL_USE_EAGER))
            continue;
        (void) lane_under_way(other, length, &other_s);
        if (other_s < best_s) {
            best = other;
            best_s = other_s;
        }
    }
    return best;
}

/* The route's only lane, or for a short message one like it that is less busy; or, where it is left
 * out since the message began and still works, the one for control messages, which takes a piece as
 * well. */
static struct lane *only_lane(const struct route *route, struct peer *peer, size_t total)
{
    struct lane *only = route_lane(route, peer, 0);
    if (OPAL_LIKELY(!lane_is_lost(only)))
        return only->returns ? stripe_instead(only, total) : only;
    struct lane *other = peer_control_lane(peer);
    return lane_is_lost(other) ? only : other;
}

/* The plan says how many lanes a message is worth. Of lanes that are alike but for speeds that only
 * their BTL has measured, it cannot say which: the fastest of all that large messages take. In
 * `fastest`; else the route's own. */
static const struct route *fastest_route(const struct route *route, struct peer *peer,
                                         struct route *fastest)
{
    struct peer_class *class = peer_class_now(peer);
    const struct route *all = class_route_at(class, CLASS_CONTIGUOUS, SIZE_MAX);
    const struct lane *first = route_lane(route, peer, 0);
    double bytes_s[MODEL_LANES_MAX];
    if (!first->returns || !lane_measures(first) || all->lane_count <= route->lane_count)
        return route;
    for (int i = 0; i < all->lane_count; i++) {
        struct lane *lane = route_lane(all, peer, i);
        if (lane->extension != first->extension || class->lanes[lane->index].use != MODEL_USE_BOTH)
            return route;
        bytes_s[i] = lane_carries(lane) ? measured_bytes_s(lane) : 0;
    }
    fastest->lane_count = 0;
    for (int i = 0; i < all->lane_count; i++) {
        int faster = 0;
        for (int j = 0; j < all->lane_count; j++)
            faster += bytes_s[j] > bytes_s[i] || (j < i && bytes_s[j] == bytes_s[i]);
        if (faster < route->lane_count)
            fastest->lanes[fastest->lane_count++] = all->lanes[i];
    }
    return fastest;
}

struct lane *stripe_choose(const struct route *route, struct peer *peer, size_t total, size_t *size,
                           bool waits)
{
    if (OPAL_LIKELY(route->lane_count == 1))
        return only_lane(route, peer, total);
    struct route fastest;
    route = fastest_route(route, peer, &fastest);
    struct choice choice = choice_of(total, *size, route->lane_count);
    for (int i = 0; i < route->lane_count; i++)
        if (lane_carries(route_lane(route, peer, i)))
            choice_weigh_lane(&choice, i, route_lane(route, peer, i));
    if (choice.index < 0)
        return stripe_whole(route, peer, total);
    struct lane *best = route_lane(route, peer, choice.index);
    /* Never waits for a lane that may break or is measured: bytes are never reported. */
    if (waits && !best->returns && !lane_measures(best) && has_enough(&best->speed))
        return NULL;
    *size = choice.size;
    return best;
}

size_t stripe_fragment(size_t left, size_t most)
{
    size_t fragments = (left + most - 1) / most;
    if (fragments < 2)
        return left;
    size_t share = (left + fragments - 1) / fragments;
    share = (share + FRAGMENT_ALIGN - 1) & ~(FRAGMENT_ALIGN - 1);
    return share < most ? share : most;
}

int stripe_choose_copy(struct lane *const *lanes, int count, size_t total, size_t *size)
{
    if (OPAL_LIKELY(count == 1))
        return 0;
    struct choice choice = choice_of(total, *size, count);
    for (int i = 0; i < count; i++)
        if (lane_carries(lanes[i]))
            choice_weigh(&choice, i, &lanes[i]->copy_speed);
    *size = choice.size;
    if (choice.index < 0)
        return 0;
    return has_enough(&lanes[choice.index]->copy_speed) ? -1 : choice.index;
}

/* What is seen from here on says how fast it is. */
static void since_now(struct lane_speed *speed)
{
    counter_set(&speed->since_bytes, counter_read(&speed->confirmed));
    counter_set(&speed->since_ns, clock_now_ns());
}

static void speed_sent(struct lane_speed *speed, size_t size)
{
    if (under_way(speed) == 0) /* it was idle */
        since_now(speed);
    atomic_fetch_add_explicit(&speed->sent, size, memory_order_relaxed);
}

void stripe_sent(struct lane *lane, size_t size)
{
    speed_sent(&lane->speed, size);
}

void stripe_copying(struct lane *lane, size_t size)
{
    if (peer_lane_count(lane->peer) > 1)
        speed_sent(&lane->copy_speed, size);
}

/* `total` bytes have arrived since the lane exists. */
static void speed_observed(struct lane_speed *speed, uint64_t total)
{
    uint64_t now = clock_now_ns(), since = counter_read(&speed->since_ns);
    uint64_t before = counter_read(&speed->since_bytes);
    if (now <= since || total <= before) /* another thread has observed what came later */
        return;
    uint64_t bytes = total - before;
    double average = (double) counter_read(&speed->bytes_s);
    double sample = (double) bytes * 1e9 / (double) (now - since);
    /* Too few bytes, or the lane may have waited for more or for its report: then the sample is
     * only a lower bound. Keep measuring. */
    uint64_t measured = counter_read(&speed->measured_ns);
    bool may_have_waited = measured && under_way(speed) == 0;
    if (sample <= average && (bytes < MEASURE_BYTES || may_have_waited))
        return;
    /* Samples are weighted by their time, so the average is bytes by time, also where many
     * reports come at once. The first sample counts alone. */
    /* A process may have been stopped meanwhile: what is really slow shows again and again. */
    double least = measured ? average / SLOWER_MOST : 0;
    measured += now - since;
    average += (double) (now - since) / (double) measured * (sample - average);
    average = average < least ? least : average;
    counter_set(&speed->measured_ns, measured < MEMORY_NS ? measured : MEMORY_NS);
    counter_set(&speed->bytes_s, average > 1e3 ? (uint64_t) average : 1000);
    counter_set(&speed->since_bytes, total);
    counter_set(&speed->since_ns, now);
}

void stripe_received(struct lane *lane, const struct wire_received *received)
{
    struct lane_speed *speed = &lane->speed;
    if (received->bytes > counter_read(&speed->sent) ||
        received->bytes < counter_read(&speed->confirmed))
        return; /* an old report, or impossible */
    if (received->bytes == counter_read(&speed->confirmed))
        return;
    counter_set(&speed->confirmed, received->bytes);
    uint64_t unconfirmed = counter_read(&speed->sent) - received->bytes;
    if (OPAL_UNLIKELY(counter_read(&speed->written_off) > unconfirmed)) /* some has come */
        counter_set(&speed->written_off, unconfirmed);
    speed_observed(speed, received->bytes);
}

void stripe_copied(struct lane *lane, size_t size)
{
    if (peer_lane_count(lane->peer) == 1)
        return;
    struct lane_speed *speed = &lane->copy_speed;
    uint64_t seen = atomic_fetch_add_explicit(&speed->confirmed, size, memory_order_relaxed) + size;
    if (OPAL_UNLIKELY(seen > counter_read(&speed->sent))) { /* it began when there was one lane */
        counter_set(&speed->sent, seen);
        since_now(speed);
        return;
    }
    speed_observed(speed, seen);
}

void stripe_copy_failed(struct lane *lane, size_t size)
{
    if (peer_lane_count(lane->peer) == 1)
        return;
    stripe_not_copying(lane, size);
    since_now(&lane->copy_speed);
}

void stripe_not_copying(struct lane *lane, size_t size)
{
    struct lane_speed *speed = &lane->copy_speed;
    /* Else it began when there was one lane. */
    if (peer_lane_count(lane->peer) > 1 && under_way(speed) >= size)
        atomic_fetch_sub_explicit(&speed->sent, size, memory_order_relaxed);
}
