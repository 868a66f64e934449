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
static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void report(struct lane *lane)
{
    struct wire_seen seen = {.bytes = load(&lane->speed.received)};
    /* A report says something about its lane, so it never goes by another; the next one tells all
     * that a lost one did. */
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
    uint64_t received = __atomic_add_fetch(&lane->speed.received, size, __ATOMIC_RELAXED);
    uint64_t untold = received - load(&lane->speed.reported);
    if (untold >= REPORT_BYTES || (untold >= REPORT_MIN_BYTES &&
                                   clock_now_ns() - load(&lane->speed.reported_ns) >= REPORT_NS))
        report(lane);
}

void seen_flush(struct peer *peer)
{
    if (OPAL_LIKELY(peer->lane_count == 1))
        return;
    for (int i = 0; i < peer->lane_count; i++)
        if (load(&peer->lanes[i].speed.received) != load(&peer->lanes[i].speed.reported))
            report(&peer->lanes[i]);
}
