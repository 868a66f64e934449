/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles: lane files that multilane-calibrate wrote, found by the machine's fingerprint. */
#ifndef COMMON_LANE_PROFILE_H
#define COMMON_LANE_PROFILE_H

#include <stdbool.h>

#include "common/lane/lane_file.h"
#include "common/file/whole_file.h"

#define PROFILE_PATH_CHARS WHOLE_FILE_PATH_CHARS

/* Where two processes are to each other; a lane is measured for each. In a profile the lane "shm"
 * between two processes that share a cache is called "shm@cache". */
enum profile_placement {
    PROFILE_CACHE, /* bound to cores that share a cache */
    PROFILE_NODE,  /* elsewhere on one node, or not bound */
    PROFILE_HOST,  /* on two nodes */
    PROFILE_PLACEMENTS
};

const char *profile_placement_name(enum profile_placement placement);

/* Where the profile of such a machine is looked for, in this order: in the user's cache folder
 * ($XDG_CACHE_HOME/multilane, else ~/.cache/multilane), in the folder of the site. Empty where
 * there is no such folder. */
enum profile_folder { PROFILE_OF_USER, PROFILE_OF_SITE, PROFILE_FOLDERS };
void profile_path(enum profile_folder folder, const char *site_folder,
                  const struct fingerprint *machine, char path[PROFILE_PATH_CHARS]);

enum profile_state {
    PROFILE_ABSENT, /* not measured yet */
    PROFILE_READ,
    PROFILE_REFUSED /* *error says why */
};

/* Reads one file. It is refused if it is no profile, one of another machine or, where it is to be
 * this user's alone (`is_own`), another user's. */
enum profile_state profile_read(const char *path, const struct fingerprint *here, bool is_own,
                                struct lane_file *file, struct error_text *error);

/* Replaces the costs of `lane` by those that were measured for a lane of this name at this
 * placement, or, inside a node, at the other placement there. Abilities and limits stay. False: it
 * was not measured. */
bool profile_apply(const struct lane_file *profile, enum profile_placement placement,
                   struct model_lane *lane);

/* The lanes of the profile at this placement, under the names that they have in jobs, as the lanes
 * of a peer there: in one group inside a node, and where they were measured not to add up. Returns
 * how many; `group` is what they carry together, bandwidth 0 where that was not measured. */
uint32_t profile_lanes(const struct lane_file *profile, enum profile_placement placement,
                       struct model_lane lanes[MODEL_LANES_MAX], struct model_group *group);

/* The group of a peer's lanes: inside a node all are driven by the same cores and do not add up,
 * nor do others that were measured together and carried less than each alone. 0: they add up. */
#define PROFILE_GROUP UINT32_MAX
uint32_t profile_group(const struct model_group *group, enum profile_placement placement);

/* What all lanes at this placement were measured to carry together where that is less than what
 * each carries alone (the group of the placement's name); 0: not measured, or they add up. */
double profile_together(const struct lane_file *profile, enum profile_placement placement);

#endif
