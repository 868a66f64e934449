/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a lane's state. */
#include "delivery/health.h"

#include <stdio.h>

#include "base/parameters.h"
#include "delivery/schedule.h"

bool health_set(struct delivery *delivery, struct lane *lane, enum lane_state state,
                const char *why)
{
    if (lane_state(lane) == state || lane_state(lane) == LANE_BROKEN)
        return false;
    atomic_store_explicit(&lane->health.state, (uint8_t) state,
                          memory_order_relaxed); /* lane_state */
    lane->health.has_changed = true;
    lane->health.asked = 0;
    lane->health.contrast_ns = 0;
    lane->health.pause_ns = (uint64_t) parameters.suspect_ms * 1000000;
    lane->health.asked_ns = active_time_ns();
    snprintf(lane->health.why, sizeof(lane->health.why), "%s", why);
    schedule_add(delivery);
    return true;
}

void health_answered(struct delivery *delivery, struct lane *lane, uint32_t ask)
{
    struct lane_health *mine = &lane->health;
    if (lane_state(lane) == LANE_SILENT)
        health_set(delivery, lane, LANE_UP, "answers again");
    if (mine->asked && (int32_t) (ask - mine->asked) >= 0) {
        mine->asked = 0;
        mine->contrast_ns = 0;
    }
    for (int i = 0; i < peer_lane_count(delivery->peer); i++) {
        struct lane_health *other = &delivery->peer->lanes[i].health;
        if (other->asked && !other->contrast_ns)
            other->contrast_ns = active_time_ns();
    }
}
