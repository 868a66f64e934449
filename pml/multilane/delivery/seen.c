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

static void report(struct lane *lane)
{
    struct wire_seen seen = {.bytes = counter_read(&lane->speed.received)};
    /* A report must go by its own lane. A lost report does no harm: the next one holds the sum. */
    if (lane->returns && (lane_state(lane) == LANE_BROKEN ||
                          !control_send_bare(lane, WIRE_SEEN, &seen, sizeof(seen))))
        return;
    counter_set(&lane->speed.reported, seen.bytes);
    counter_set(&lane->speed.reported_ns, clock_now_ns());
    if (!lane->returns)
        control_send(lane, WIRE_SEEN, &seen, sizeof(seen));
}

static bool is_due(const struct lane_speed *speed, uint64_t untold)
{
    return untold >= REPORT_BYTES ||
           (untold >= REPORT_MIN_BYTES &&
            clock_now_ns() - counter_read(&speed->reported_ns) >= REPORT_NS);
}

void seen_on_lane(struct lane *lane, size_t size)
{
    if (!lane || lane_measures(lane))
        return;
    uint64_t received =
        atomic_fetch_add_explicit(&lane->speed.received, size, memory_order_relaxed) + size;
    if (is_due(&lane->speed, received - counter_read(&lane->speed.reported)))
        report(lane);
}

void seen_flush(struct peer *peer)
{
    for (int i = 0; i < peer_lane_count(peer); i++) {
        struct lane_speed *speed = &peer->lanes[i].speed;
        if (OPAL_UNLIKELY(counter_read(&speed->received) != counter_read(&speed->reported)))
            report(&peer->lanes[i]);
    }
}
