/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that a tool waits for by MPI_T. Open MPI has them from 6.0 on; in earlier ones there is
 * none, and raising does nothing. */
#ifndef MULTILANE_COMPAT_TOOL_EVENT_H
#define MULTILANE_COMPAT_TOOL_EVENT_H

#include <stdint.h>

#include "common/compat/compat.h"
#include "opal/mca/mca.h"

/* What each event carries, one MPI_T element a member. */
struct compat_event_data {
    uint32_t job;
    uint32_t rank; /* the peer's, in its job */
    int32_t lane;  /* among those to the peer, from 1, as messages print it; 0: none of them */
};

/* Null in *event: this Open MPI has no events. Returns an error of Open MPI's. */
int compat_event_register(const mca_base_component_t *component, const char *name, const char *help,
                          void **event);

/* Calls the tools that wait for it; `event` may be null. No lock is held, since they may call
 * MPI_T. */
void compat_event_raise(void *event, const struct compat_event_data *data);

#endif
