/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured of this machine's lanes: by multilane-calibrate, in a profile, or else by this
 * process when it met its first peer. */
#ifndef MULTILANE_USED_PROFILE_H
#define MULTILANE_USED_PROFILE_H

#include "common/lane/profile.h"

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

#endif
