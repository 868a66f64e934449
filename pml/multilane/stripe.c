/* SPDX-License-Identifier: BSD-3-Clause */
/* Speeds of lanes, measured while they are used.
 *
 * The receiver counts the striped bytes of each lane and sends the count back on that lane. What
 * the sender has sent and not seen reported is under way; between two reports with something under
 * way all the time the lane was busy, so their distance in time is its speed. No clock of the peer
 * and no completion of a BTL is believed: a completed send may sit in a kernel for a second. */
#include "stripe.h"

#include <time.h>

#include "multilane.h"

/* A report for so many bytes: often enough to follow a lane that changes, rare beside them. */
#define REPORT_BYTES (256u << 10)

/* Pieces shorter than this cost more than finishing together wins. */
#define PIECE_MIN ((size_t) 16 << 10)
/* A message is cut into so many pieces a lane, where they do not get too short. */
#define PIECES_A_LANE 8

/* How far back the average of a lane's speed reaches. */
#define MEMORY_NS 100000000u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* All words of a lane's speed are read and written relaxed: each is a number of its own, written by
 * whoever sends or reads on the lane, and a stale one makes a piece take the second best lane. */
static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void stripe_init(struct lane *lane, const struct model_lane *attributes)
{
    const struct model_lane_cost *cost = &attributes->cost[MODEL_BY_SEND];
    lane->speed = (struct lane_speed){.bytes_s = 1000000000};
    if (cost->range_count) {
        const struct model_lane_range *range = &cost->ranges[cost->range_count - 1];
        if (range->bandwidth_bytes_s < 1e15)
            lane->speed.bytes_s = (uint64_t) range->bandwidth_bytes_s;
        lane->speed.latency_s = range->latency_s;
    }
}

/* When would a piece be there that is sent now? */
static double arrival_s(const struct lane *lane, size_t size)
{
    uint64_t under_way = load(&lane->speed.sent) - load(&lane->speed.seen);
    return (double) (under_way + size) / (double) load(&lane->speed.bytes_s) +
           lane->speed.latency_s;
}

struct lane *stripe_choose(const struct route *route, struct peer *peer, size_t total, size_t *size)
{
    struct lane *best = route_lane(route, peer, 0);
    if (OPAL_LIKELY(route->lane_count == 1))
        return best;
    size_t piece = total / (PIECES_A_LANE * (size_t) route->lane_count);
    if (piece < PIECE_MIN)
        piece = PIECE_MIN;
    if (*size > piece)
        *size = piece;
    double best_s = arrival_s(best, *size);
    for (int i = 1; i < route->lane_count; i++) {
        struct lane *lane = route_lane(route, peer, i);
        double lane_s = arrival_s(lane, *size);
        if (lane_s < best_s) {
            best = lane;
            best_s = lane_s;
        }
    }
    return best;
}

void stripe_sent(struct lane *lane, size_t size)
{
    if (lane->peer->lane_count == 1)
        return;
    struct lane_speed *speed = &lane->speed;
    uint64_t before = __atomic_fetch_add(&speed->sent, size, __ATOMIC_RELAXED);
    if (before == load(&speed->seen)) /* it was idle: what follows is measured from here */
        store(&speed->busy_since_ns, now_ns());
}

static void report(struct lane *lane)
{
    unsigned char bytes[WIRE_CONTROL_MAX];
    struct wire_seen seen = {.bytes = load(&lane->speed.received)};
    unsigned char *end = peer_write_base(lane->peer, bytes, WIRE_SEEN, 0);
    memcpy(end, &seen, sizeof(seen));
    store(&lane->speed.reported, seen.bytes);
    lane_send_control(lane, bytes, (size_t) (end + sizeof(seen) - bytes));
}

void stripe_received(struct lane *lane, size_t size)
{
    if (!lane || lane->peer->lane_count == 1)
        return;
    uint64_t received = __atomic_add_fetch(&lane->speed.received, size, __ATOMIC_RELAXED);
    if (received - load(&lane->speed.reported) >= REPORT_BYTES)
        report(lane);
}

void stripe_flush(struct peer *peer)
{
    if (OPAL_LIKELY(peer->lane_count == 1))
        return;
    for (int i = 0; i < peer->lane_count; i++)
        if (load(&peer->lanes[i].speed.received) != load(&peer->lanes[i].speed.reported))
            report(&peer->lanes[i]);
}

void stripe_seen(struct lane *lane, const struct wire_seen *seen)
{
    struct lane_speed *speed = &lane->speed;
    uint64_t before = load(&speed->seen), sent = load(&speed->sent);
    if (seen->bytes > sent || seen->bytes <= before)
        return; /* overtaken by a later report, or nonsense that would only mislead us */
    uint64_t now = now_ns(), since = load(&speed->busy_since_ns);
    store(&speed->seen, seen->bytes);
    store(&speed->busy_since_ns, now);
    /* A short burst tells of latency, not of speed. */
    if (seen->bytes - before < REPORT_BYTES / 2 || now <= since)
        return;
    double sample = (double) (seen->bytes - before) * 1e9 / (double) (now - since);
    /* Each sample counts by how long it took: so the average is bytes by time also where reports
     * come in a heap, because nobody looked for them for a while. The first one counts alone. */
    uint64_t measured = load(&speed->measured_ns) + (now - since);
    double average = (double) load(&speed->bytes_s);
    average += (double) (now - since) / (double) measured * (sample - average);
    store(&speed->measured_ns, measured < MEMORY_NS ? measured : MEMORY_NS);
    store(&speed->bytes_s, average > 1e3 ? (uint64_t) average : 1000);
}
