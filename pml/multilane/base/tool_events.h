/* SPDX-License-Identifier: BSD-3-Clause */
/* What a tool can wait for by MPI_T, in an Open MPI that has events (6.0). */
#ifndef MULTILANE_TOOL_EVENTS_H
#define MULTILANE_TOOL_EVENTS_H

#include "common/compat/pml.h"
#include "multilane/page.h"

enum tool_event {
    TOOL_LANE_LOST = PAGE_LANE_LOST, /* kept in the black box as well */
    TOOL_LANE_RETURNED = PAGE_LANE_RETURNED,
    TOOL_LANE_WORSE = PAGE_LANE_WORSE,
    TOOL_PEER_SUSPECTED = PAGE_PEER_SUSPECTED,
    TOOL_PLAN_CHANGED = PAGE_PLAN_CHANGED,
    TOOL_EVENTS = PAGE_CHANGES
};

int tool_events_register(const mca_base_component_t *component);

/* Toward the peer of that name; `lane` is an index among its lanes, or -1. No lock is held: the
 * tools are called now, in this thread. */
void tool_event_raise(enum tool_event event, const opal_process_name_t *peer, int lane);

#endif
