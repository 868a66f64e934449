/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing and reading of what was measured. */
#include "plan/node_costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/multilane.h"
#include "base/parameters.h"
#include "common/compat/modex.h"
#include "common/lane/crowd.h"
#include "common/lane/startup_measure.h"
#include "plan/used_history.h"
#include "plan/used_profile.h"

static struct {
    bool is_known; /* `first` is */
    bool was_read;
    opal_process_name_t first;
    struct startup_costs costs; /* all zero: not measured */
} node;

static mca_base_component_t record_named(const char *name)
{
    mca_base_component_t named = mca_pml_multilane_component.pmlm_version;
    snprintf(named.mca_component_name, sizeof(named.mca_component_name), "multilane_%s", name);
    return named;
}

int node_record_send(const char *name, const void *record, size_t bytes)
{
    const mca_base_component_t named = record_named(name);
    return modex_send(&named, record, bytes);
}

bool node_record_read(const char *name, void *record, size_t bytes)
{
    const mca_base_component_t named = record_named(name);
    void *data = NULL;
    size_t found = 0;
    bool is_read = node.is_known &&
                   modex_recv(&named, &node.first, &data, &found) == OPAL_SUCCESS && found == bytes;
    if (is_read)
        memcpy(record, data, bytes);
    free(data);
    return is_read;
}

static bool is_wanted(void)
{
    return !used_profile() && (!parameters.profile || strcmp(parameters.profile, "none") != 0) &&
           ompi_process_info.num_local_peers > 0;
}

static void costs_find(uint32_t processes)
{
    const bool is_crowded = processes > crowd_processors(processes);
    const struct history_starts *starts = &used_history()->starts[is_crowded];
    struct startup_costs costs = {.change_s = is_crowded ? STARTUP_CHANGE_S : 0};
    if (!history_has_starts(starts)) {
        (void) startup_measure(processes, &costs);
        used_history_add_start(is_crowded, &costs);
    }
    /* One that was measured on a busy node is outvoted. */
    if (!history_costs(starts, &node.costs))
        node.costs = costs;
}

void node_costs_publish(void)
{
    if (ompi_process_info.my_local_rank != 0)
        return;
    if (is_wanted())
        costs_find((uint32_t) ompi_process_info.num_local_peers + 1);
    node.was_read = true;
    /* Also what was not measured: the others ask. */
    (void) node_record_send("node", &node.costs, sizeof(node.costs));
}

void node_costs_meet(ompi_proc_t *const *procs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        opal_process_name_t name = procs[i]->super.proc_name;
        if (name.jobid == multilane.me.jobid &&
            OPAL_PROC_ON_LOCAL_NODE(procs[i]->super.proc_flags) &&
            (!node.is_known || name.vpid < node.first.vpid)) {
            node.first = name;
            node.is_known = true;
        }
    }
}

const struct startup_costs *node_costs(void)
{
    if (!node.was_read && node.is_known) {
        node.was_read = true;
        (void) node_record_read("node", &node.costs, sizeof(node.costs));
    }
    return &node.costs;
}

void node_costs_fini(void)
{
    memset(&node, 0, sizeof(node));
}
