/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile in use, the history of the node, and the costs measured at the start. Every process
 * reads the file itself: a few KiB, in the page cache after the first read; passing it on would
 * cost more. */
#include "plan/costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/compat/version.h"
#include "base/parameters.h"
#include "base/multilane.h"
#include "common/model/number.h"
#include "common/compat/modex.h"
#include "common/lane/crowd.h"
#include "common/lane/startup_measure.h"

/* Not by malloc: a tool may open and close MPI_T many times, which unloads the component and tells
 * it nothing. */
static struct {
    bool looked;
    bool is_used; /* the profile that follows */
    struct lane_file profile;
    char story[PROFILE_PATH_CHARS + 128];
    struct error_text complaint;
} measured;

/* Takes the file, if it is for this machine; else sets the story to why not. */
static enum profile_state take(const char *path, const struct fingerprint *here, bool is_own)
{
    struct error_text why = {""};
    memset(&measured.profile, 0, sizeof(measured.profile));
    enum profile_state state = profile_read(path, here, is_own, &measured.profile, &why);
    measured.is_used = state == PROFILE_READ;
    if (measured.is_used) {
        snprintf(measured.story, sizeof(measured.story), "profile %s of %s", path,
                 measured.profile.profile.made);
        return state;
    }
    snprintf(measured.story, sizeof(measured.story), "no profile: %s", why.text);
    if (state == PROFILE_REFUSED)
        measured.complaint = why;
    return state;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void look_around(const struct fingerprint *here)
{
    char path[PROFILE_PATH_CHARS];
    enum profile_state state = PROFILE_ABSENT;
    for (int i = 0; i < PROFILE_FOLDERS && state == PROFILE_ABSENT; i++) {
        profile_path((enum profile_folder) i, MULTILANE_SITE_DIR, here, path);
        if (path[0] && is_there(path))
            state = take(path, here, i == PROFILE_OF_USER);
    }
    if (state == PROFILE_ABSENT)
        snprintf(measured.story, sizeof(measured.story),
                 "no profile of this machine; mpirun -n 2 multilane-calibrate makes one");
}

/* To read it of the kernel takes a while, so once. */
static const struct fingerprint *here(void)
{
    static struct fingerprint found;

    if (!found.processors[0])
        fingerprint_take(version_built, &found);
    return &found;
}

void used_profile_load(void)
{
    const char *name = parameters.profile;
    if (measured.looked)
        return;
    measured.looked = true;
    if (!name || strcmp(name, "auto") == 0) {
        look_around(here());
    } else if (strcmp(name, "none") == 0) {
        snprintf(measured.story, sizeof(measured.story),
                 "no profile: pml_multilane_profile is none");
    } else if (take(name, here(), false) == PROFILE_ABSENT) {
        /* A user that names a file wants it. */
        fail_with(&measured.complaint, "pml_multilane_profile: %.200s: there is no such file",
                  name);
    }
}

const char *used_profile_story(void)
{
    return measured.story;
}

const char *used_profile_complaint(void)
{
    return measured.complaint.text[0] ? measured.complaint.text : NULL;
}

const struct lane_file *used_profile(void)
{
    return measured.is_used ? &measured.profile : NULL;
}

bool used_profile_apply(enum profile_placement placement, struct model_lane *lane)
{
    return measured.is_used && profile_apply(&measured.profile, placement, lane);
}

void used_profile_fini(void)
{
    measured.looked = measured.is_used = false;
    measured.story[0] = measured.complaint.text[0] = '\0';
}

/* --- of earlier jobs -------------------------------------------------------------------------- */

/* What earlier jobs have learned, and what this one adds. */

static struct {
    char path[PROFILE_PATH_CHARS]; /* empty: none is kept */
    char story[PROFILE_PATH_CHARS + 64];
    struct history before, added;
    struct startup_costs start; /* that this job adds */
    uint32_t start_kind;
    bool has_start;
} used;

void used_history_load(void)
{
    snprintf(used.story, sizeof(used.story), "nothing from earlier jobs");
    if (!parameters.learn || (parameters.profile && strcmp(parameters.profile, "none") == 0))
        return;
    history_path(here(), used.path);
    (void) history_read(used.path, &used.before);
    uint32_t starts = 0;
    for (uint32_t kind = 0; kind < HISTORY_KINDS; kind++)
        starts += used.before.starts[kind].count;
    if (starts || used.before.way_count)
        snprintf(used.story, sizeof(used.story), "%u start%s and %u time%s of earlier jobs: %s",
                 starts, number_plural(starts), used.before.way_count,
                 number_plural(used.before.way_count), used.path);
}

const struct history *used_history(void)
{
    return &used.before;
}

/* What this job adds; kept until machine_end. */
static void used_history_add_start(uint32_t kind, const struct startup_costs *costs)
{
    history_add_start(&used.before, kind, costs);
    used.start = *costs;
    used.start_kind = kind;
    used.has_start = true;
}

struct history *used_history_added(void)
{
    return &used.added;
}

const char *used_history_story(void)
{
    return used.story;
}

/* --- by the first process on the node --------------------------------------------------------- */

/* Publishing and reading of what was measured. */

static struct {
    bool is_known; /* `first` is */
    bool was_read;
    bool has_looked; /* how far processors are from each other */
    opal_process_name_t first;
    struct node_record {
        struct startup_costs costs; /* all zero: not measured */
        uint32_t are_apart;
    } record;
} node;

int node_record_send(const char *name, const void *record, size_t bytes)
{
    return modex_send("node", name, record, bytes);
}

bool node_record_read(const char *name, void *record, size_t bytes)
{
    void *data = NULL;
    size_t found = 0;
    bool is_read = node.is_known &&
                   modex_recv("node", name, &node.first, &data, &found) == OPAL_SUCCESS &&
                   found == bytes;
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

/* Nothing was measured with processors that are apart: what goes through the ring takes longer by
 * as much as an empty message, and the kernel's copies do not. */
static void costs_apart(const struct history_starts *near, double empty_s,
                        struct startup_costs *costs)
{
    if (!history_costs(near, costs))
        return;
    for (int i = 0; i < STARTUP_SIZES; i++)
        costs->ring_s[i] *= empty_s / costs->empty_s;
    costs->empty_s = empty_s;
}

static void costs_find(uint32_t processes)
{
    const bool is_crowded = processes > crowd_processors(processes);
    const struct history *history = used_history();
    struct startup_costs costs = {.change_s = is_crowded ? STARTUP_CHANGE_S : 0};
    /* In a crowd another core is hardly ever free, and looking takes 8 ms. */
    double empty_s = is_crowded ? 0 : startup_empty_s();
    uint32_t kind = history_kind(history, is_crowded, empty_s);
    node.has_looked = empty_s > 0;
    if (!history_has_starts(&history->starts[kind])) {
        if (startup_measure(processes, &costs))
            empty_s = costs.empty_s;
        used_history_add_start(kind, &costs);
        kind = history_kind(history, is_crowded, empty_s);
    }
    /* One that was measured on a busy node is outvoted. */
    if (!history_costs(&history->starts[kind], &costs) && (kind & HISTORY_IS_APART))
        costs_apart(&history->starts[kind & HISTORY_CROWDED], empty_s, &costs);
    node.record.costs = costs;
    node.record.are_apart = kind & HISTORY_IS_APART;
}

void node_costs_publish(void)
{
    if (ompi_process_info.my_local_rank != 0)
        return;
    if (is_wanted())
        costs_find((uint32_t) ompi_process_info.num_local_peers + 1);
    node.was_read = true;
    /* Also what was not measured: the others ask. */
    (void) node_record_send("node", &node.record, sizeof(node.record));
}

void node_costs_find_first(ompi_proc_t *const *procs, size_t count)
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

static const struct node_record *record_now(void)
{
    if (!node.was_read && node.is_known) {
        node.was_read = true;
        (void) node_record_read("node", &node.record, sizeof(node.record));
    }
    return &node.record;
}

const struct startup_costs *node_costs(void)
{
    return &record_now()->costs;
}

bool node_costs_are_apart(void)
{
    return record_now()->are_apart;
}

bool node_costs_have_moved(void)
{
    double empty_s = node.has_looked ? startup_empty_s() : 0;
    bool are_apart = history_kind(used_history(), false, empty_s) & HISTORY_IS_APART;
    return empty_s > 0 && are_apart != node_costs_are_apart();
}

void machine_end(void)
{
    struct history now;
    if (used.path[0] && multilane.me.vpid == 0 && (used.has_start || used.added.way_count)) {
        bool is_known = history_read(used.path, &now);
        if (used.has_start)
            history_add_start(&now, used.start_kind, &used.start);
        for (uint32_t i = 0; i < used.added.way_count; i++)
            history_add_way(&now, &used.added.ways[i]);
        if (is_known)
            (void) history_write(used.path, &now); /* else the next job begins as this one did */
        history_free(&now);
    }
    history_free(&used.before);
    history_free(&used.added);
    memset(&used, 0, sizeof(used));
    memset(&node, 0, sizeof(node));
}
