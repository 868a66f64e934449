/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one request. */
#include "request.h"

#include "common/ring/ring.h"

/* The lane that brings the answer is looked at this often for each turn of Open MPI's progress,
 * whose round over all components costs more than one look. */
#define LOOKS_PER_PROGRESS 16
/* After so many turns the answer is not near, and Open MPI's own loop does better: it yields, it
 * sleeps, it knows of failed processes. */
#define TURNS 256

void request_look(struct lane *lane)
{
    if (!lane || opal_progress_yield_when_idle)
        return;
    for (int look = 0; look < LOOKS_PER_PROGRESS && !lane_poll(lane); look++)
        ring_relax();
}

void request_wait(ompi_request_t *request, struct lane *lane)
{
    if (lane && !opal_progress_yield_when_idle) {
        for (int turn = 0; turn < TURNS; turn++) {
            for (int look = 0; look < LOOKS_PER_PROGRESS; look++) {
                if (REQUEST_COMPLETE(request)) {
                    opal_atomic_rmb();
                    return;
                }
                if (!lane_poll(lane))
                    ring_relax();
            }
            opal_progress();
        }
    }
    ompi_request_wait_completion(request);
}
