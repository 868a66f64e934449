/* SPDX-License-Identifier: BSD-3-Clause */
/* The costs that plans are made of: of lanes, of this machine, of its devices. */
#ifndef MULTILANE_COSTS_H
#define MULTILANE_COSTS_H

#include "common/lane/profile.h"
#include "common/lane/history.h"
#include "common/compat/pml.h"
#include "common/lane/startup.h"
#include "common/memory/memory.h"
#include "common/model/lane.h"
#include "common/model/number.h"
#include "common/model/protocol.h"
#include "peer/peer.h"

/* --- attributes.c ----------------------------------------------------------------------------- */

/* The attributes of a lane for the model, and their sources. */

/* The network device behind a BTL module: name, card, distance. */

struct nic {
    struct nic *next;
    const mca_btl_base_module_t *btl;
    char name[40]; /* empty: none, or unknown */
    uint32_t card;
    uint32_t distance;   /* from this process: 0 is near, 1 far */
    bool is_on_bus;      /* a device of its own, not a virtual one */
    double bus_bytes_s;  /* what its bus carries; 0: not known */
    double link_bytes_s; /* and the link of a network device, by the kernel */
};

void nics_fini(void);

/* The peer's placement: same cache, same node, or another host. */
enum profile_placement attributes_placement(const struct peer *peer);

/* What a peer has to know of this end's lanes. */
void attributes_publish(struct record_ends *ends);

/* Gathers the attributes of a lane from all sources; the strongest wins. False: they are
 * impossible, which is reported. `group`: shared by the lanes to this peer, or 0. */
bool attributes_of_lane(const struct lane *lane, uint32_t group, struct model_lane *out);

/* The strongest source: what the user says of lanes of this BTL, ours or another. */
void attributes_of_user(const char *btl, bool is_ours, struct model_lane *out);

/* A lane of the module of which nothing is known but its name and what the user says. */
void attributes_of_user_alone(mca_btl_base_module_t *btl, struct model_lane *out);

/* --- machine.c -------------------------------------------------------------------------------- */

/* What is known of this machine: by multilane-calibrate, in a profile; by earlier jobs; and by what
 * the first process of the job on the node has measured. */

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

/* --- machine.c: of earlier jobs --------------------------------------------------------------- */

/* The history of this machine in this job: read at the start, written by the first process when it
 * ends. */

/* Reads it, where plans learn and measurements are wanted. */
void used_history_load(void);

const struct history *used_history(void);

/* What this job adds; kept until machine_end. */
struct history *used_history_added(void);

/* One line for reports. */
const char *used_history_story(void);

/* --- machine.c: by the first process on the node ---------------------------------------------- */

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

/* --- device_costs.c --------------------------------------------------------------------------- */

/* What device memory costs: measured at the first buffer on a device, once a node for each device
 * and pair of devices, and shared by the processes of the node. */

/* In the node's first process: the place where measurements are shared. Call it once, before
 * processes read what others have published. */
void device_costs_publish(void);

/* A buffer of this process lies on a device. The first time it measures, for 5 ms at most, or waits
 * for a process of the node that does. */
void device_costs_use(const struct memory *memory);

/* A device of another process's matters: from here on what the node has measured is known. */
void device_costs_look(void);

/* Progress calls it: measures again with another process of the device, when both are in MPI. */
int device_costs_progress(void);

/* A number that grows when more is known. Any thread may ask, without a lock. */
uint32_t device_costs_changes(void);

/* A copy between the host and a device, the slower direction and device. */
struct cost_line device_costs_copy(void);
/* Puts what was measured into the lane of device memory, to another process or this one. What was
 * not costs so much that nothing takes it by itself. */
void device_costs_apply(struct model_lane *lane, bool is_self);

/* The same lane between host and device: a copy there is what its gets and puts are, unless the
 * user says something else of it. */
void device_costs_mix(struct model_lane *lane);

/* For reports, one line. */
struct words device_costs_text(void);

void device_costs_fini(void);

#endif
