/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for pml/multilane/liveness/errors.c in the fuzzer's build: a failed lane does not end
 * the job, so that the fuzzer can go on. */
#include "liveness/liveness.h"

#include "errors_standin.h"
#include "lane/lane.h"

uint64_t errors_standin_count;

static void lane_counted(struct lane *lane, const char *what, int rc)
{
    (void) lane;
    (void) what;
    (void) rc;
    errors_standin_count++;
}

static void btl_counted(mca_btl_base_module_t *btl, const char *what, int rc)
{
    (void) btl;
    (void) what;
    (void) rc;
    errors_standin_count++;
}

void errors_begin(void)
{
    lane_events = (struct lane_events){.failed = lane_counted, .btl_failed = btl_counted};
}

void lane_say(const struct lane *lane, const char *change, const char *why, bool last)
{
    (void) lane;
    (void) change;
    (void) why;
    (void) last;
}

bool mpi_is_ending(void)
{
    return false;
}

void peer_lost(struct peer *peer, const char *why)
{
    (void) peer;
    (void) why;
    errors_standin_count++;
}

void errors_peer_gave_up(struct peer *peer)
{
    peer_lost(peer, "it has given up this process");
}

void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info)
{
    (void) btl;
    (void) flags;
    (void) proc;
    (void) info;
    errors_standin_count++;
}
