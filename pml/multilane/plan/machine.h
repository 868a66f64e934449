/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of this machine: by multilane-calibrate, in a profile; by earlier jobs; and by what
 * the first process of the job on the node has measured. */
#ifndef MULTILANE_MACHINE_H
#define MULTILANE_MACHINE_H

#include "common/lane/profile.h"
#include "common/lane/history.h"
#include "common/compat/pml.h"
#include "common/lane/startup.h"

/* Looks for the profile of pml_multilane_profile. Prints nothing: it runs in jobs without
 * Multilane too. */
void used_profile_load(void);

/* One line for reports: where the profile is and how old, or why there is none. */
const char *used_profile_story(void);

/* What is wrong with a profile that was found; null: nothing. */
const char *used_profile_complaint(void);

/* The profile in use, or null. */
const struct lane_file *used_profile(void);

/* Replaces the attributes of `lane` that the profile has measured, and names the source. False: it
 * has none of this lane. */
bool used_profile_apply(enum profile_placement placement, struct model_lane *lane);

void used_profile_fini(void);

/* --- of earlier jobs -------------------------------------------------------------------------- */

/* The history of this machine in this job: read at the start, written by the first process when it
 * ends. */

/* Reads it, where plans learn and measurements are wanted. */
void used_history_load(void);

const struct history *used_history(void);

/* What this job adds; kept until machine_end. */
struct history *used_history_added(void);

/* One line for reports. */
const char *used_history_story(void);

/* --- by the first process on the node --------------------------------------------------------- */

/* What messages inside this node cost: measured by the first process of the job on the node, and
 * read by the others. */

/* In the node's first process: measures, if there is no profile, and publishes. Call it once,
 * before processes read what others have published. */
void node_costs_publish(void);

/* Tells which processes there are, by which the first one of this node is found. */
void node_costs_find_first(ompi_proc_t *const *procs, size_t count);

/* A record of that name that the node's first process alone publishes. False: it has not, or it is
 * not known yet which that is. */
int node_record_send(const char *name, const void *record, size_t bytes);
bool node_record_read(const char *name, void *record, size_t bytes);

/* As the first process has measured them; all zero but for change_s: it has not. */
const struct startup_costs *node_costs(void);

/* Are the node's processors farther from each other than the system says? Those of a virtual
 * machine may be, for minutes. */
bool node_costs_are_apart(void);
/* Is that no longer so? It looks. */
bool node_costs_have_moved(void);

/* Writes what was added to the history, beside what other jobs have written meanwhile; and forgets
 * all but the profile. */
void machine_end(void);

#endif
