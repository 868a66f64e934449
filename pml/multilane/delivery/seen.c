/* SPDX-License-Identifier: BSD-3-Clause */
/* When striped bytes are reported. */
#include "delivery/seen.h"

#include "base/clock.h"
#include "delivery/control.h"

/* A report for so many bytes, or, where a lane is slow, for less after this time: often enough for
 * the sender to see a lane that changes, rare beside the data. */
#define REPORT_BYTES     (256u << 10)
#define REPORT_MIN_BYTES (16u << 10)
#define REPORT_NS        500000u

/* Relaxed, as all words of a lane's speed are: see stripe.c. */
static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static void report(struct lane *lane)
{
    struct wire_seen seen = {.bytes = load(&lane->speed.received)};
    /* A report must go by its own lane. A lost report does no harm: the next one holds the sum. */
    if (lane->framed && (lane_state(lane) == LANE_BROKEN ||
                         !control_send_bare(lane, WIRE_SEEN, &seen, sizeof(seen))))
        return;
    store(&lane->speed.reported, seen.bytes);
    store(&lane->speed.reported_ns, clock_now_ns());
    if (!lane->framed)
        control_send(lane, WIRE_SEEN, &seen, sizeof(seen));
}

void seen_on_lane(struct lane *lane, size_t size)
{
    if (!lane)
        return;
    uint64_t received =
        atomic_fetch_add_explicit(&lane->speed.received, size, memory_order_relaxed) + size;
    uint64_t untold = received - load(&lane->speed.reported);
    if (untold >= REPORT_BYTES || (untold >= REPORT_MIN_BYTES &&
                                   clock_now_ns() - load(&lane->speed.reported_ns) >= REPORT_NS))
        report(lane);
}

void seen_flush(struct peer *peer)
{
    if (OPAL_LIKELY(peer_lane_count(peer) == 1))
        return;
    for (int i = 0; i < peer_lane_count(peer); i++)
        if (load(&peer->lanes[i].speed.received) != load(&peer->lanes[i].speed.reported))
            report(&peer->lanes[i]);
}
