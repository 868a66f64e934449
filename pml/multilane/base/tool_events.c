/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of events for tools. */
#include "base/tool_events.h"

#include "base/own_page.h"
#include "common/compat/tool_event.h"

static struct {
    const char *name, *help;
    void *event; /* of Open MPI; written at registration, before there are threads */
} events[TOOL_EVENTS] = {
    [TOOL_LANE_LOST] = {"lane_lost", "A lane to a peer was left out", NULL},
    [TOOL_LANE_RETURNED] = {"lane_returned", "A lane that was left out is used again", NULL},
    [TOOL_LANE_WORSE] = {"lane_worse",
                         "A lane to a peer carries less, or loses more, than it did before", NULL},
    [TOOL_PEER_SUSPECTED] =
        {"peer_suspected",
         "Nothing that is under way to a peer over a lane has arrived for half of "
         "pml_multilane_suspect_ms, and it is asked over each lane",
         NULL},
    [TOOL_PLAN_CHANGED] = {"plan_changed", "Later messages to a peer follow another plan", NULL},
};

int tool_events_register(const mca_base_component_t *component)
{
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < TOOL_EVENTS && rc == OMPI_SUCCESS; i++)
        rc = compat_event_register(component, events[i].name, events[i].help, &events[i].event);
    return rc;
}

void tool_event_raise(enum tool_event event, const opal_process_name_t *peer, int lane)
{
    struct compat_event_data data = {.job = peer->jobid, .rank = peer->vpid, .lane = lane + 1};
    compat_event_raise(events[event].event, &data);
    if (!own_events)
        return;
    struct page_event *kept = own_event_new(PAGE_EVENT_LANE);
    kept->rank = (int32_t) peer->vpid;
    kept->tag = lane;
    kept->first = (uint16_t) event;
}
