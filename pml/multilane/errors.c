/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens when a lane fails. */
#include "errors.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/compat/btl.h"
#include "lane.h"
#include "multilane.h"
#include "peer.h"

/* BTLs report lost connections while everybody is leaving; nobody needs to hear of it. */
static bool is_ending(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

static void process_lost(ompi_proc_t *proc, const char *sentence)
{
    opal_output(0, "%s", sentence);
    if (!compat_proc_failed(proc))
        ompi_mpi_errors_are_fatal_comm_handler(NULL, NULL, (char *) sentence);
}

static void describe(char *text, size_t size, mca_btl_base_module_t *btl, ompi_proc_t *proc,
                     const char *what, const char *why)
{
    char *host = proc ? compat_proc_hostname(&proc->super) : NULL;
    if (proc)
        snprintf(
            text, size,
            "multilane: lane %s to rank %u of job %u on %s %s: %s. What it carried may be lost, so "
            "that process counts as failed.",
            btl->btl_component->btl_version.mca_component_name, proc->super.proc_name.vpid,
            proc->super.proc_name.jobid, host ? host : "an unknown host", what, why);
    else
        snprintf(text, size, "multilane: lane %s %s: %s.",
                 btl->btl_component->btl_version.mca_component_name, what, why);
    free(host);
}

void lane_failed(struct lane *lane, const char *what, int rc)
{
    char text[512];
    if (is_ending())
        return;
    describe(text, sizeof(text), lane->btl, lane->peer->proc, what, opal_strerror(rc));
    process_lost(lane->peer->proc, text);
}

void btl_failed(mca_btl_base_module_t *btl, const char *what, int rc)
{
    char text[512];
    if (is_ending())
        return;
    describe(text, sizeof(text), btl, NULL, what, opal_strerror(rc));
    process_lost(NULL, text);
}

void errors_from_btl(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info)
{
    char text[512];
    (void) flags;
    if (is_ending())
        return;
    describe(text, sizeof(text), btl, (ompi_proc_t *) proc, "reported an error",
             info && *info ? info : "no reason given");
    process_lost((ompi_proc_t *) proc, text);
}
