/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of failed lanes to the layers above, which set this table once, before there are
 * lanes. */
#ifndef MULTILANE_LANE_EVENTS_H
#define MULTILANE_LANE_EVENTS_H

#include "multilane/extension.h"

#include "common/compat/pml.h"

struct lane;

/* Any thread may call these, also in a callback of a BTL. They only mark the failure; progress
 * acts on it. */
struct lane_events {
    void (*lane_failed)(struct lane *lane, const char *what, int rc);
    void (*btl_failed)(mca_btl_base_module_t *btl, const char *what, int rc);
    /* Something is to go by a lane that has not been proven to lead to its peer. */
    void (*unproven)(struct lane *lane);
    /* So many bytes that came by a lane, or by several (null), have a wrong sum; they come again.
     */
    void (*wrong)(struct lane *lane, size_t bytes);
    /* A lane that broke gives a message back, see return_to in multilane/extension.h. */
    multilane_returned returned;
};

extern __attribute__((visibility("hidden"))) struct lane_events lane_events;

/* A lane to a known peer failed while doing `what`, with Open MPI's error `rc`. */
static inline void lane_failed(struct lane *lane, const char *what, int rc)
{
    lane_events.lane_failed(lane, what, rc);
}

/* A BTL failed toward an unknown process. */
static inline void btl_failed(mca_btl_base_module_t *btl, const char *what, int rc)
{
    lane_events.btl_failed(btl, what, rc);
}

#endif
